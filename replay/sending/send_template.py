"""The headers of sends to one queue, of which only a few values differ.

Of the ext fields of a send, in the order in which the header class writes them, the first five and
those from the tenth on are common; sysFlag, born time, flag and properties are the message's.
RocketMQ: RemotingCommand.encodeHeader, RocketMQSerializable, SendMessageRequestHeaderV2.encode.
"""

from __future__ import annotations

import struct
from typing import Final, Protocol

import msgspec

from dissectors.remoting.command import ROCKETMQ, RemotingCommand
from dissectors.remoting.framing.layout import MAX_FRAME
from dissectors.remoting.header_codec import encode_header

_VARYING: Final = slice(5, 9)
_PREFIX: Final = struct.Struct(">II")
_encode_json: Final = msgspec.json.Encoder().encode


class SentMessage(Protocol):
    """What a template needs to know of a message."""

    @property
    def sys_flag(self) -> int:
        """Compression and transaction bits."""

    @property
    def flag(self) -> int:
        """The application's flag."""

    @property
    def properties(self) -> str:
        """Properties as they travel."""

    @property
    def properties_json(self) -> str:
        """The same, quoted as JSON."""


class JsonTemplate:
    """What the JSON headers of all requests to one queue have in common."""

    __slots__ = ("_end", "_parts")

    def __init__(self, command: RemotingCommand) -> None:
        names = list(command.ext_fields)[_VARYING]
        members = [f'"{name}":{quoted(text)}' for name, text in command.ext_fields.items()]
        before = "".join(member + "," for member in members[:5])
        after = "".join("," + member for member in members[9:])
        self._parts = (
            f'{{"code":{command.code},"extFields":{{{before}"{names[0]}":"',
            f'","{names[1]}":"',
            f'","{names[2]}":"',
            f'","{names[3]}":',
            f'{after}}},"flag":{command.flag},"language":{quoted(command.language)},"opaque":',
        )
        self._end = f',"serializeTypeCurrentRPC":"JSON","version":{command.version}}}'

    def header(self, message: SentMessage, born_ms: int, opaque: int) -> bytes:
        """Return the header of one request."""
        head, born, flag, properties, tail = self._parts
        return (
            f"{head}{message.sys_flag}{born}{born_ms}{flag}{message.flag}{properties}"
            f"{message.properties_json}{tail}{opaque}{self._end}"
        ).encode()


class BinaryTemplate:
    """What the binary headers of all requests to one queue have in common."""

    __slots__ = ("_after", "_before", "_head", "_keys", "_length", "_tail")

    def __init__(self, command: RemotingCommand) -> None:
        entries = [_entry(name, text) for name, text in command.ext_fields.items()]
        fixed = encode_header(
            RemotingCommand(
                command.code,
                0,
                command.flag,
                command.language,
                command.version,
                serialize_type=ROCKETMQ,
            )
        )
        self._before, self._after = fixed[:5], fixed[9:17]
        self._head, self._tail = b"".join(entries[:5]), b"".join(entries[9:])
        names = list(command.ext_fields)[_VARYING]
        self._keys = tuple(len(name).to_bytes(2, "big") + name.encode() for name in names)
        lengths = sum(len(key) + 4 for key in self._keys)
        self._length = len(self._head) + len(self._tail) + lengths

    def header(self, message: SentMessage, born_ms: int, opaque: int) -> bytes:
        """Return the header of one request."""
        values = (
            b"%d" % message.sys_flag,
            b"%d" % born_ms,
            b"%d" % message.flag,
            message.properties.encode("utf-8", "surrogatepass"),
        )
        length = self._length
        number = (opaque & 0xFFFFFFFF).to_bytes(4, "big")
        parts = [
            self._before,
            number,
            self._after,
            b"",
            self._head,
        ]
        for key, value in zip(self._keys, values, strict=True):
            parts += (key, len(value).to_bytes(4, "big"), value)
            length += len(value)
        parts[3] = length.to_bytes(4, "big")
        parts.append(self._tail)
        return b"".join(parts)


def _entry(name: str, text: str) -> bytes:
    key, value = name.encode(), text.encode("utf-8", "surrogatepass")
    return len(key).to_bytes(2, "big") + key + len(value).to_bytes(4, "big") + value


def quoted(text: str) -> str:
    """Return a text as JSON."""
    return _encode_json(text).decode()


def frame_of(kind: int, header: bytes, body: bytes) -> bytes:
    """Return a frame. Raises ValueError where it is over the frame limit."""
    size = len(header)
    total = 4 + size + len(body)
    if total + 4 > MAX_FRAME:
        raise ValueError(f"a frame of {total + 4} bytes: at most {MAX_FRAME} are accepted")
    return b"".join((_PREFIX.pack(total, kind << 24 | size), header, body))
