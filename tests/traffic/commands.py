"""RocketMQ commands as bytes, in both serializations."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field, replace

LANGUAGES = {"JAVA": 0, "CPP": 1, "DOTNET": 2, "PYTHON": 3, "DELPHI": 4, "ERLANG": 5, "RUBY": 6}

SEND_MESSAGE = 10
PULL_MESSAGE = 11
SEND_MESSAGE_V2 = 310
POP_MESSAGE = 200050
NOTIFY_CONSUMER_IDS_CHANGED = 40
HEART_BEAT = 34
GET_ROUTEINFO = 105
UPDATE_CONSUMER_OFFSET = 15


@dataclass(frozen=True)
class Command:
    """A command as its sender means it."""

    code: int
    opaque: int
    flag: int = 0
    ext: dict[str, str] = field(default_factory=dict)
    remark: str | None = None
    body: bytes = b""
    language: str = "JAVA"
    version: int = 401
    binary: bool = False

    @property
    def header(self) -> bytes:
        return _binary(self) if self.binary else _json(self)

    @property
    def frame(self) -> bytes:
        return frame(self.header, self.body, int(self.binary))

    def answer(self, code: int = 0, **members: object) -> Command:
        """The response to this request."""
        response = Command(code, self.opaque, 1, binary=self.binary)
        return replace(response, **members)  # type: ignore[arg-type]


def frame(header: bytes, body: bytes = b"", kind: int = 0, total: int | None = None) -> bytes:
    """A frame; `total` is for lies about its length."""
    length = 4 + len(header) + len(body) if total is None else total
    return struct.pack(">II", length, kind << 24 | len(header)) + header + body


def _json(command: Command) -> bytes:
    members: dict[str, object] = {"code": command.code}
    if command.ext:
        members["extFields"] = command.ext
    members["flag"] = command.flag
    members["language"] = command.language
    members["opaque"] = command.opaque
    if command.remark is not None:
        members["remark"] = command.remark
    members["serializeTypeCurrentRPC"] = "JSON"
    members["version"] = command.version
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()


def _binary(command: Command) -> bytes:
    remark = (command.remark or "").encode()
    fields = b""
    for name, value in command.ext.items():
        key, content = name.encode(), value.encode()
        fields += struct.pack(">H", len(key)) + key + struct.pack(">I", len(content)) + content
    return (
        struct.pack(
            ">HBHiiI",
            command.code & 0xFFFF,
            LANGUAGES[command.language],
            command.version,
            command.opaque,
            command.flag,
            len(remark),
        )
        + remark
        + struct.pack(">I", len(fields))
        + fields
    )


def send(opaque: int, body: bytes = b"hello", **members: object) -> Command:
    """A V2 send of one message."""
    ext = {
        "a": "producers",
        "b": "Orders",
        "c": "TBW102",
        "d": "4",
        "e": "2",
        "f": "0",
        "g": "1795168800000",
        "h": "0",
        "i": f"UNIQ_KEY\x010A000005{opaque & 0xFFFFFFFF:024X}\x02TAGS\x01created\x02",
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "broker-a",
    }
    return replace(Command(SEND_MESSAGE_V2, opaque, ext=ext, body=body), **members)  # type: ignore[arg-type]


def sent(opaque: int, offset: int = 0) -> Command:
    """The response to a send."""
    ext = {"msgId": "0A00000100002A9F00000000000000FF", "queueId": "2", "queueOffset": str(offset)}
    return Command(0, opaque, 1, ext=ext, version=401)


def route_query(opaque: int, topic: str = "Orders") -> Command:
    """What a client asks a NameServer first."""
    return Command(GET_ROUTEINFO, opaque, ext={"topic": topic})
