"""The frames of exchanges as sent, in an unnamed file, for the details view.

Rules: blocks of frames are compressed; the position of an exchange takes 8 bytes of memory. Frames
are decoded again by the same decoder as the capture. Beyond the byte limit bodies are left out,
with a note.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from threading import Lock
from typing import Final, NamedTuple

import msgspec
import zstandard

from dissectors.conversations.conversation import Conversation, Direction, Pdu, pdu_of
from dissectors.decode.exchange import Exchange
from dissectors.findings import FindingKind
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.framing.frame import Frame
from dissectors.remoting.framing.frame_decoder import KEEP_ALL
from dissectors.remoting.header_codec import BINARY_TYPE, JSON_TYPE, decode_header

from .disk import BlobFile

BLOCK: Final = 256 * 1024
"""bytes that are compressed together"""
MOST_BYTES: Final = 8 * 1024**3
"""bytes of frames that are kept with their bodies, before compression"""
_PART: Final = 65_536
"""exchanges per file; a full file is dropped at a time if not all are kept"""


class KeptFrame(NamedTuple):
    """A command as it was sent, and where."""

    key: bytes
    """addresses and ports"""
    serialize_type: int
    header: bytes
    body: bytes
    body_length: int
    missing: int
    offset: int
    packet: int
    ts: int
    findings: list[tuple[str, str]]
    """kind and detail"""
    lengths: tuple[int, int] = (0, 0)
    """bytes of header and frame, if not in RocketMQ's own framing"""
    command: RemotingCommand | None = None
    """decoded header, if not in RocketMQ's own framing"""


class KeptExchange(NamedTuple):
    """An exchange with its frames as sent."""

    conversation: int
    request: KeptFrame | None
    response: KeptFrame | None
    whole: bool
    """bodies were kept"""


class _Part(BlobFile):
    """Blocks of exchanges."""

    def __init__(self) -> None:
        super().__init__()
        self.place = array("I")
        """per exchange: block number and position in the block"""
        self.bytes = 0
        """bytes of its frames, before compression"""


class FrameStore:
    """The frames of all exchanges, by number from 0."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.left_out = 0
        """exchanges without bodies"""
        self._most = most_bytes
        self._parts: dict[int, _Part] = {}
        self._waiting: list[KeptExchange] = []
        self._waiting_bytes = 0
        self._bytes = 0
        self._count = 0
        self._lock = Lock()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[KeptExchange])

    def add(self, exchanges: Sequence[Exchange]) -> None:
        """Add exchanges, in row order."""
        with self._lock:
            for exchange in exchanges:
                whole = self._bytes < self._most
                kept = KeptExchange(
                    exchange.conversation,
                    None if exchange.request is None else _kept(exchange.request, whole),
                    None if exchange.response is None else _kept(exchange.response, whole),
                    whole,
                )
                self.left_out += not whole
                size = _size(kept)
                self._bytes += size
                self._waiting_bytes += size
                self._waiting.append(kept)
                self._count += 1
                # Also at the end of a part: all exchanges of a block are in the same file.
                if self._waiting_bytes >= BLOCK or self._count % _PART == 0:
                    self._write()

    def exchange(self, number: int) -> KeptExchange | None:
        """Return the frames of an exchange, or None if they are not stored."""
        with self._lock:
            first = self._count - len(self._waiting)
            if number >= first:
                return self._waiting[number - first] if number < self._count else None
            part = self._parts.get(number // _PART)
            if part is None:
                return None
            at = 2 * (number % _PART)
            block, place = part.place[at], part.place[at + 1]
            data = part.read(block)
        return self._decoder.decode(zstandard.decompress(data))[place]

    def drop_before(self, number: int) -> None:
        """Drop the files with only exchanges before `number`."""
        with self._lock:
            for key in [key for key in self._parts if (key + 1) * _PART <= number]:
                self._bytes -= self._parts.pop(key).bytes

    def close(self) -> None:
        """Drop all files."""
        with self._lock:
            self._parts.clear()
            self._waiting = []

    def _write(self) -> None:
        """Write buffered frames; the caller holds the lock."""
        first = self._count - len(self._waiting)
        part = self._parts.setdefault(first // _PART, _Part())
        data = zstandard.ZstdCompressor(level=1).compress(self._encoder.encode(self._waiting))
        for place in range(len(self._waiting)):
            part.place.extend((len(part), place))
        part.add([data])
        part.bytes += self._waiting_bytes
        self._waiting = []
        self._waiting_bytes = 0


def _kept(pdu: Pdu, whole: bool) -> KeptFrame:
    binary = pdu.command.serialize_type != "JSON"
    return KeptFrame(
        pdu.direction.key,
        BINARY_TYPE if binary else JSON_TYPE,
        pdu.header,
        pdu.body if whole else b"",
        pdu.body_length,
        pdu.missing,
        pdu.offset,
        pdu.packet,
        pdu.ts,
        [(info.kind.name, info.detail) for info in pdu.findings or ()],
        (pdu.header_length, pdu.frame_bytes),
        None if pdu.header else pdu.command,
    )


def _size(kept: KeptExchange) -> int:
    return sum(
        len(frame.header) + len(frame.body) + 80
        for frame in (kept.request, kept.response)
        if frame is not None
    )


def exchange_of(kept: KeptExchange) -> Exchange:
    """Return the exchange as it was decoded, from its frames."""
    some = kept.request or kept.response
    assert some is not None
    conversation = Conversation(kept.conversation, some.key, KEEP_ALL, [])
    first = conversation.first
    second = conversation.second
    request = None if kept.request is None else _pdu(first, kept.request)
    # `some.key`, from which the conversation was made, is the direction of a lone response
    responding = first if kept.request is None else second
    response = None if kept.response is None else _pdu(responding, kept.response)
    return Exchange(request, response)


def _pdu(direction: Direction, kept: KeptFrame) -> Pdu:
    command = kept.command or decode_header(kept.serialize_type, kept.header)
    assert command is not None, "it was decoded before"
    frame = Frame(
        kept.offset,
        kept.packet,
        kept.ts,
        kept.serialize_type,
        kept.header,
        kept.body,
        kept.body_length,
        kept.missing,
    )
    pdu = pdu_of(direction, frame, command)
    pdu.header_length, pdu.frame_bytes = kept.lengths
    for kind, detail in kept.findings:
        pdu.say(FindingKind[kind], detail)
    return pdu
