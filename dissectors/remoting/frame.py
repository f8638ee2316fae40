"""Frames out of a stream: the prefix layout and the limits, spelled once.

A frame is four bytes total length (not counting themselves), one byte serialization type, three
bytes header length, header, body. `FrameDecoder` is told everything that can happen to a stream:
data, gap, end. It never invents a byte. A hole in a body of known length does not lose the frame
boundary; any other hole does, and so does a prefix that cannot be one: then the decoder looks for
the next bytes that are certainly a frame's prefix and header.

RocketMQ: NettyDecoder, RemotingCommand.decode.
"""

from __future__ import annotations

import re
from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from ..expert import ExpertInfo, ExpertKind
from .header_codec import BINARY_TYPE, JSON_TYPE, MIN_BINARY_HEADER, is_header

PREFIX: Final = 8
"""bytes of total length, serialization type and header length"""
MAX_FRAME: Final = 16 * 1024 * 1024
"""largest frame with its four length bytes: RocketMQ's com.rocketmq.remoting.frameMaxLength"""
MAX_SOUGHT_HEADER: Final = 64 * 1024
"""largest header that is believed while looking for a frame; properties are at most 32 KiB"""
KEPT_UNSYNCHRONIZED: Final = PREFIX
"""bytes kept while looking for a frame: a prefix may straddle two segments"""

KEEP_NONE: Final = 0
"""bodies are passed over"""
KEEP_MESSAGES: Final = 1
"""only bodies of which the messages are counted are kept"""
KEEP_ALL: Final = 2
"""all bodies are kept"""

_CANDIDATE: Final = re.compile(rb"(?=\x00[\x00-\xff]{3}(?:\x00[\x00-\xff]{3}\{|\x01\x00))")
"""what a frame begins with: total length below 16 MiB, type, header length, first byte"""
_COUNTED: Final = re.compile(rb'nextBeginOffset|restNum|"m":"true"|"batch":"true"')
"""ext fields of the frames with several messages: pull and pop responses, batch sends"""


@final
class Frame:
    """One frame as the stream has it."""

    __slots__ = (
        "body",
        "body_length",
        "header",
        "missing",
        "offset",
        "packet",
        "serialize_type",
        "ts",
    )

    def __init__(
        self,
        offset: i64,
        packet: i64,
        ts: i64,
        serialize_type: i64,
        header: bytes,
        body: bytes,
        body_length: i64,
        missing: i64,
    ) -> None:
        self.offset: i64 = offset
        """offset in the stream of the frame's first byte"""
        self.packet: i64 = packet
        """the last packet that was needed for it"""
        self.ts: i64 = ts
        """time of that packet"""
        self.serialize_type: i64 = serialize_type
        """0 JSON, 1 ROCKETMQ"""
        self.header = header
        self.body = body
        """the body up to the first hole; empty where bodies are not kept"""
        self.body_length: i64 = body_length
        """bytes of the body on the wire"""
        self.missing: i64 = missing
        """bytes of the body that the capture does not have"""


@final
class FrameDecoder:
    """Pieces of one direction in, frames out."""

    __slots__ = (
        "_body",
        "_body_left",
        "_body_length",
        "_conversation",
        "_experts",
        "_head",
        "_header",
        "_keep",
        "_keeping",
        "_missing",
        "_offset",
        "_packet",
        "_pieces",
        "_sought_from",
        "_ts",
        "_type",
        "_window",
        "held",
        "searched",
        "synchronized",
    )

    def __init__(
        self, conversation: i64, experts: list[ExpertInfo], keep: i64, synchronized: bool
    ) -> None:
        self.synchronized = synchronized
        """the next byte is known to belong to a frame"""
        self.searched: i64 = 0
        """bytes that were searched in vain since the last frame"""
        self.held: i64 = 0
        """bytes of the body that are held"""
        self._conversation: i64 = conversation
        self._experts = experts
        self._keep: i64 = keep
        self._head = b""
        self._header = b""
        self._type: i64 = 0
        self._body: list[bytes] = []
        self._body_left: i64 = -1
        self._body_length: i64 = 0
        self._keeping = False
        self._missing: i64 = 0
        self._offset: i64 = 0
        self._packet: i64 = 0
        self._ts: i64 = 0
        self._window = b""
        self._pieces: list[tuple[int, int, int]] = []
        self._sought_from: i64 = -1

    def receive(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> None:
        """The next bytes of the stream: `data[at:end]`, at `offset`, brought by `packet`."""
        shift: i64 = offset - at
        while at < end:
            if self._body_left > 0:
                at = self._receive_body(data, at, end, packet, ts, out)
            elif not self.synchronized:
                self._search(data, at, end, at + shift, packet, ts, out)
                return
            elif self._head:
                at = self._receive_head(data, at, end, packet, ts, out)
            else:
                at = self._receive_frame(data, at, end, shift, packet, ts, out)

    def receive_gap(self, offset: i64, length: i64, packet: i64, ts: i64, out: list[Frame]) -> None:
        """Bytes that the capture does not have; a length of 0 means that it is not known."""
        if self._body_left > 0 and (length > 0 or self._missing > 0):
            lost: i64 = min(self._body_left, length) if length else self._body_left
            self._missing += lost
            self._body_left -= lost
            self._keeping = False
            length -= lost
            if self._body_left == 0:
                self._note_packet(packet, ts)
                self._give(out)
            if length == 0:
                return
        self._lose()

    def finish(self, out: list[Frame]) -> None:
        """The stream has ended; a frame that is cut inside its body is given out as it is."""
        if self._body_left > 0:
            self._say(ExpertKind.FRAME_CUT, f"{self._body_left} bytes of the body are missing")
            self._missing += self._body_left
            self._body_left = 0
            self._give(out)
        elif self._head and self.synchronized:
            self._say(ExpertKind.FRAME_CUT, f"only {len(self._head)} bytes of it are there")
        self._lose()

    def drop_body(self) -> None:
        """Gives up the body that is being held: too much memory is in use."""
        self._body = []
        self._keeping = False
        self.held = 0

    # -- inside ---------------------------------------------------------------------------------

    def _receive_frame(
        self,
        data: bytes,
        at: i64,
        end: i64,
        shift: i64,
        packet: i64,
        ts: i64,
        out: list[Frame],
    ) -> i64:
        """A frame begins here; gives the place behind what was used."""
        self._offset = at + shift
        self._packet = packet
        self._ts = ts
        if end - at < PREFIX:
            self._head = data[at:end]
            return end
        prefix = read_i64_be(data, at)
        header_end: i64 = at + PREFIX + (prefix & 0xFFFFFF)
        if not _is_prefix(prefix):
            return self._bad_prefix(prefix, data, at, end, out)
        if header_end > end:
            self._head = data[at:end]
            return end
        first: i64 = data[at + PREFIX]
        kind: i64 = (prefix >> 24) & 0xFF
        if kind == JSON_TYPE and first != 0x7B:
            return self._bad_prefix(prefix, data, at, end, out)
        self._begin(prefix, data[at + PREFIX : header_end], out)
        return header_end

    def _receive_head(
        self, data: bytes, at: i64, end: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> i64:
        """Adds to a prefix or header that began in an earlier piece."""
        need: i64 = PREFIX
        if len(self._head) >= PREFIX:
            need += read_i64_be(self._head, 0) & 0xFFFFFF
        take: i64 = min(need - len(self._head), end - at)
        head = self._head + data[at : at + take]
        self._head = head
        self._note_packet(packet, ts)
        if len(head) < need:
            return at + take
        prefix = read_i64_be(head, 0)
        if need == PREFIX and _is_prefix(prefix):
            return at + take  # the header is next
        if need == PREFIX or ((prefix >> 24) & 0xFF == JSON_TYPE and head[PREFIX] != 0x7B):
            self._bad_head(prefix, out)
            return at + take
        self._head = b""
        self._begin(prefix, head[PREFIX:], out)
        return at + take

    def _begin(self, prefix: i64, header: bytes, out: list[Frame]) -> None:
        """The header is complete: the body follows, if there is one."""
        total: i64 = prefix >> 32
        self._type = (prefix >> 24) & 0xFF
        self._header = header
        self._missing = 0
        self._body_length = total - 4 - (prefix & 0xFFFFFF)
        self._body_left = self._body_length
        self._keeping = self._keep == KEEP_ALL or (
            self._keep == KEEP_MESSAGES
            and self._body_length > 0
            and _COUNTED.search(header) is not None
        )
        if self._body_left == 0:
            self._give(out)

    def _receive_body(
        self, data: bytes, at: i64, end: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> i64:
        take: i64 = min(self._body_left, end - at)
        if self._keeping:
            self._body.append(data[at : at + take])
            self.held += take
        self._body_left -= take
        self._note_packet(packet, ts)
        if self._body_left == 0:
            self._give(out)
        return at + take

    def _note_packet(self, packet: i64, ts: i64) -> None:
        if packet > self._packet:
            self._packet = packet
            self._ts = ts

    def _give(self, out: list[Frame]) -> None:
        body = b""
        if self._body:
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
            self.held = 0
        out.append(
            Frame(
                self._offset,
                self._packet,
                self._ts,
                self._type,
                self._header,
                body,
                self._body_length,
                self._missing,
            )
        )
        self._body_left = -1
        self.searched = 0

    def _lose(self) -> None:
        """The frame boundary is lost; what was begun cannot be finished."""
        self.synchronized = False
        self._head = b""
        self._body = []
        self._body_left = -1
        self.held = 0
        self._window = b""
        self._pieces = []
        self._sought_from = -1

    def _bad_prefix(self, prefix: i64, data: bytes, at: i64, end: i64, out: list[Frame]) -> i64:
        """What stands here is no prefix: look for the next one behind its first byte."""
        self._say_bad(prefix)
        self._lose()
        self._search(data, at + 1, end, self._offset + 1, self._packet, self._ts, out)
        return end

    def _bad_head(self, prefix: i64, out: list[Frame]) -> None:
        head = self._head
        self._say_bad(prefix)
        self._lose()
        offset: i64 = self._offset + 1
        self._search(head, 1, len(head), offset, self._packet, self._ts, out)

    def _say_bad(self, prefix: i64) -> None:
        total: i64 = prefix >> 32
        if total + 4 > MAX_FRAME:
            self._say(ExpertKind.FRAME_TOO_LARGE, f"{total} bytes")
        else:
            self._say(ExpertKind.BAD_FRAME, f"prefix {prefix & 0xFFFFFFFFFFFFFFFF:016x}")

    def _say(self, kind: ExpertKind, detail: str) -> None:
        self._experts.append(
            ExpertInfo(kind, detail, self._ts, self._packet, self._conversation, self._offset)
        )

    # -- looking for a frame --------------------------------------------------------------------

    def _search(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> None:
        """Looks for bytes that are certainly a frame; keeps those that may become one."""
        if self._sought_from < 0 or not self._window:
            self._sought_from = offset
        self._pieces.append((offset, packet, ts))
        window = self._window + data[at:end] if self._window else data[at:end]
        self.searched += end - at
        place: i64 = 0
        while True:
            found = _CANDIDATE.search(window, place)
            if found is None:
                place = max(place, len(window) - KEPT_UNSYNCHRONIZED)
                break
            place = found.start()
            verdict: i64 = _certain(window, place)
            if verdict > 0:
                self._found(window, place, out)
                return
            if verdict < 0:
                break
            place += 1
        self._window = window[place:]
        self._sought_from += place
        while len(self._pieces) > 1 and self._pieces[1][0] <= self._sought_from:
            del self._pieces[0]

    def _found(self, window: bytes, place: i64, out: list[Frame]) -> None:
        """A frame begins at this place of the window: decoding goes on from there."""
        start: i64 = self._sought_from
        pieces = self._pieces
        self._lose()
        self.synchronized = True
        self.searched = 0
        stop: i64 = len(window)
        self._offset = start + place
        for index in range(len(pieces)):
            offset, packet, ts = pieces[index]
            low: i64 = max(place, offset - start)
            high: i64 = stop
            if index + 1 < len(pieces):
                high = pieces[index + 1][0] - start
            if low >= high:
                continue
            if low == place:
                self._packet = packet
                self._ts = ts
                self._say(ExpertKind.RESYNCHRONIZED, "a frame begins here")
            self.receive(window, low, high, start + low, packet, ts, out)


def _is_prefix(prefix: i64) -> bool:
    """Whether eight bytes can be a frame's prefix."""
    total: i64 = prefix >> 32
    kind: i64 = (prefix >> 24) & 0xFF
    header: i64 = prefix & 0xFFFFFF
    if total + 4 > MAX_FRAME or header > total - 4:
        return False
    if kind == JSON_TYPE:
        return header >= 2
    return kind == BINARY_TYPE and header >= MIN_BINARY_HEADER


def _certain(window: bytes, place: i64) -> i64:
    """1: a frame's prefix and header stand here; 0: they do not; -1: more bytes must tell."""
    prefix = read_i64_be(window, place)
    size: i64 = prefix & 0xFFFFFF
    if not _is_prefix(prefix) or size > MAX_SOUGHT_HEADER:
        return 0
    end: i64 = place + PREFIX + size
    if end > len(window):
        return -1
    return 1 if is_header((prefix >> 24) & 0xFF, window[place + PREFIX : end]) else 0


def encode_frame(serialize_type: int, header: bytes, body: bytes = b"") -> bytes:
    """A frame as bytes. Raises ValueError where it is over the frame limit."""
    total = 4 + len(header) + len(body)
    if total + 4 > MAX_FRAME:
        raise ValueError(f"a frame of {total + 4} bytes: at most {MAX_FRAME} are accepted")
    prefix = total.to_bytes(4, "big") + bytes((serialize_type,)) + len(header).to_bytes(3, "big")
    return prefix + header + body
