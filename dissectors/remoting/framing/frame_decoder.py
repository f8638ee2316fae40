"""Cut a stream into frames, despite losses.

A hole in a body of known length keeps the frame boundary; any other hole, or an invalid prefix,
loses it: then the decoder searches for the next bytes that are certainly a prefix and a header.
RocketMQ: NettyDecoder, RemotingCommand.decode.
"""

from __future__ import annotations

import re
from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from ...findings import Finding, FindingKind
from ..header_codec import BINARY_TYPE, first_code_of
from ..row_bodies import CARRYING_REQUESTS, MESSAGE_FIELDS, WANTED_REQUESTS, WANTED_RESPONSE
from .frame import (
    MAX_FRAME,
    PREFIX,
    Frame,
    header_length_of,
    is_no_json,
    is_prefix,
    total_of,
    type_of,
)
from .search import PART_COST, FrameSearch, Range

_SEVERAL: Final = tuple([name.encode() for name in MESSAGE_FIELDS])
_WANTED: Final = frozenset(WANTED_REQUESTS)
_CARRYING: Final = frozenset(CARRYING_REQUESTS)
_FIRST: Final = re.compile(rb'\{"code":-?[0-9]+,')
"""start of a header as Java writes it, or nearly"""
_BINARY_CODES: Final = tuple([code.to_bytes(2, "big") for code in WANTED_REQUESTS])
_BINARY_SUCCESS: Final = WANTED_RESPONSE.to_bytes(2, "big")
# fastjson ignores case, `_`, and `-` in member names, and accepts single quotes or none.
_CODE: Final = rb"(?i)[\"']?_?c[_-]?o[_-]?d[_-]?e_?[\"']?\s*:\s*[\"']?(?:%b)(?:\.0*)?[\"']?\s*[,}]"
_ANY_CODE: Final = re.compile(_CODE % b"|".join([b"%d" % code for code in WANTED_REQUESTS]))
_SUCCESS: Final = re.compile(_CODE % b"%d" % WANTED_RESPONSE)
"""success responses; a route has no ext fields to recognise it by"""
ROUTE_LIMIT: Final = 1024 * 1024
"""maximum body bytes of a possible route; a thousand brokers need some 100 KiB"""


def is_wanted(serialize_type: i64, header: bytes, body_length: i64) -> bool:
    """Return whether a row needs the body after an undecoded header."""
    code: i64 = first_code_of(header)
    if code > 0 or (code < 0 and _FIRST.match(header) is not None):
        # Written by Java, and not a success response: a batch send, or a heartbeat for its groups.
        return code > 0 and int(code) in _WANTED
    for name in _SEVERAL:
        if header.find(name) >= 0:  # `in` first tries the name as a number: five times as long
            return True
    route = body_length <= ROUTE_LIMIT
    if serialize_type == BINARY_TYPE:
        if header.startswith(_BINARY_CODES):
            return True
        return route and header.startswith(_BINARY_SUCCESS)
    if route and _SUCCESS.search(header) is not None:
        return True
    return _ANY_CODE.search(header) is not None


def may_carry(header: bytes) -> bool:
    """Return whether the body after a header may have messages, or is wanted by `is_wanted`."""
    code: i64 = first_code_of(header)
    return code <= 0 or int(code) in _CARRYING


KEEP_NONE: Final = 0
"""skip bodies"""
KEEP_MESSAGES: Final = 1
"""keep only bodies that rows need: messages to count, groups and brokers to name"""
KEEP_ALL: Final = 2
"""keep all bodies"""
KEEP_CARRIED: Final = 3
"""keep only bodies that rows need, or that contain messages"""

MANY_PARTS: Final = 1024
"""number of parts of a head or body after which they are joined"""
_NO_PARTS: Final[list[bytes]] = []
_NO_RANGES: Final[list[Range]] = []
"""shared empty list, never modified: most streams hold nothing"""


@final
class FrameDecoder:
    """Cuts pieces of one direction into frames."""

    __slots__ = (
        "_again",
        "_body",
        "_body_left",
        "_body_length",
        "_conversation",
        "_findings",
        "_head",
        "_head_need",
        "_head_size",
        "_header",
        "_joined",
        "_keeping",
        "_missing",
        "_offset",
        "_packet",
        "_ts",
        "_type",
        "held",
        "keep",
        "search",
        "synchronized",
        "too_long",
    )

    def __init__(
        self, conversation: i64, findings: list[Finding], keep: i64, synchronized: bool
    ) -> None:
        self.synchronized = synchronized
        """the next byte is known to be in a frame"""
        self.held: i64 = 0
        """held bytes of the body"""
        self.too_long: i64 = 0
        """declared length of the first oversized frame, or 0"""
        self._conversation: i64 = conversation
        self._findings = findings
        self.keep: i64 = keep
        """which bodies are kept"""
        self._head = _NO_PARTS
        self._head_size: i64 = 0
        self._head_need: i64 = 0
        self._again = _NO_RANGES
        self._header = b""
        self._type: i64 = 0
        self._body = _NO_PARTS
        self._body_left: i64 = -1
        self._body_length: i64 = 0
        self._keeping = False
        self._missing: i64 = 0
        self._offset: i64 = 0
        self._packet: i64 = 0
        self._ts: i64 = 0
        self.search = FrameSearch()
        """finds the next frame where the boundary is lost"""
        self._joined: i64 = 0

    @property
    def held_bytes(self) -> i64:
        """Held bytes of heads, bodies, and search data."""
        return self.held + self._head_size + self.search.held_bytes

    @property
    def inside(self) -> bool:
        """Whether the next byte continues a frame."""
        return self._head_size > 0 or self._body_left > 0

    @property
    def held_memory(self) -> i64:
        """Approximate memory bytes of the held data."""
        parts: i64 = len(self._head) + len(self._body) + self.search.held_parts
        return self.held_bytes + PART_COST * parts

    def receive(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> None:
        """Receive the next bytes of the stream: `data[at:end]`, at `offset`, from `packet`."""
        used = self._consume(data, at, end, offset, packet, ts, out)
        if not self._again:
            return
        # A frame was found in kept bytes: read them again, then the rest. `todo` is a stack.
        rest = Range(data, used, end, offset + used - at, packet, ts)
        self._read_again([rest, *self._taken_again()], out)

    def _read_again(self, todo: list[Range], out: list[Frame]) -> None:
        while todo:
            part = todo.pop()
            used = self._consume(
                part.data, part.at, part.end, part.offset, part.packet, part.ts, out
            )
            part.offset += used - part.at
            part.at = used
            if used < part.end:
                todo.append(part)
            todo.extend(self._taken_again())

    def _taken_again(self) -> list[Range]:
        """Return the kept bytes to read again, last first."""
        again = self._again
        self._again = _NO_RANGES
        again.reverse()
        return again

    def _consume(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> i64:
        """Read to the end, or until kept bytes must be read again."""
        shift: i64 = offset - at
        while at < end:
            if self._body_left > 0:
                at = self._receive_body(data, at, end, packet, ts, out)
            elif not self.synchronized:
                self._look(data, at, end, at + shift, packet, ts)
                at = end
            elif self._head_size:
                at = self._receive_head(data, at, end, packet, ts, out)
            else:
                at = self._receive_frame(data, at, end, shift, packet, ts, out)
            if self._again:
                return at
        return at

    def receive_gap(self, length: i64, packet: i64, ts: i64, out: list[Frame]) -> None:
        """Note bytes that were not captured; 0: unknown number."""
        # Candidates that wait for the missing bytes will never be complete.
        self._settle(out)
        if self._body_left > 0:
            if length == 0:
                length = self._body_left + 1  # perhaps the next frame is missing, too
            lost: i64 = min(self._body_left, length)
            self._missing += lost
            self._body_left -= lost
            # Bytes after the hole must not be joined to those before it.
            self._keeping = False
            length -= lost
            if self._body_left == 0:
                self._note_packet(packet, ts)
                self._give(out)
            if length == 0:
                return
        self._lose()

    def finish(self, out: list[Frame]) -> None:
        """Finish the stream; emit a frame that is truncated in its body."""
        self._settle(out)
        if self._body_left > 0:
            self._report(FindingKind.FRAME_CUT, f"{self._body_left} bytes of the body are missing")
            self._missing += self._body_left
            self._body_left = 0
            self._give(out)
        elif self._head_size and self.synchronized:
            self._report(
                FindingKind.FRAME_CUT, f"only {self._head_size} bytes of the frame are there"
            )
        self._lose()

    def release(self) -> None:
        """Drop held data to save memory; the rest of a frame's body is skipped."""
        if self._body_left > 0:
            self._body = _NO_PARTS
            self._keeping = False
            self.held = 0
        else:
            self._lose()

    def forget(self) -> None:
        """Drop all held data, because nothing of this stream will be decoded."""
        self._lose()

    # -- internals ------------------------------------------------------------------------------

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
        """Begin a frame; return the place after the consumed bytes."""
        self._offset = at + shift
        self._packet = packet
        self._ts = ts
        if end - at < PREFIX:
            self._await_head(data[at:end], PREFIX)
            return end
        prefix = read_i64_be(data, at)
        header_end: i64 = at + PREFIX + header_length_of(prefix)
        fits = header_end <= end
        # Random bytes may be a valid prefix; the start of the header often tells at once.
        if not is_prefix(prefix) or (fits and is_no_json(prefix, data, at + PREFIX)):
            self._lose_prefix(prefix)
            self._look(data, at + 1, end, self._offset + 1, packet, ts)
            return end
        if not fits:
            self._await_head(data[at:end], header_end - at)
            return end
        self._begin(prefix, data[at + PREFIX : header_end], out)
        return header_end

    def _receive_head(
        self, data: bytes, at: i64, end: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> i64:
        """Continue a prefix or header that began in an earlier piece."""
        take: i64 = min(self._head_need - self._head_size, end - at)
        self._append(self._head, data[at : at + take])
        self._head_size += take
        self._note_packet(packet, ts)
        at += take
        if self._head_size < self._head_need:
            return at
        head = b"".join(self._head)
        prefix = read_i64_be(head, 0)
        if self._head_need == PREFIX and is_prefix(prefix):  # now the header is awaited
            self._head = [head]
            self._joined = 0
            self._head_need = PREFIX + header_length_of(prefix)
        elif self._head_need == PREFIX or is_no_json(prefix, head, PREFIX):
            self._lose_prefix(prefix)
            self._look(head, 1, len(head), self._offset + 1, self._packet, self._ts)
        else:
            self._head = _NO_PARTS
            self._head_size = 0
            self._begin(prefix, head[PREFIX:], out)
        return at

    def _await_head(self, part: bytes, need: i64) -> None:
        self._head = [part]
        self._joined = 0
        self._head_size = len(part)
        self._head_need = need

    def _begin(self, prefix: i64, header: bytes, out: list[Frame]) -> None:
        """Start the body, if any, after a complete header."""
        total: i64 = total_of(prefix)
        self._type = type_of(prefix)
        self._header = header
        self._missing = 0
        self._joined = 0
        self._body_length = total - 4 - header_length_of(prefix)
        self._body_left = self._body_length
        if self.keep == KEEP_ALL:
            self._keeping = True
        elif self.keep == KEEP_NONE or self._body_length == 0:
            self._keeping = False
        elif self.keep == KEEP_CARRIED:
            self._keeping = may_carry(header)
        else:
            self._keeping = is_wanted(self._type, header, self._body_length)
        if self._body_left == 0:
            self._give(out)

    def _receive_body(
        self, data: bytes, at: i64, end: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> i64:
        take: i64 = min(self._body_left, end - at)
        if self._keeping:
            if self._body:
                self._append(self._body, data[at : at + take])
            else:
                self._body = [data[at : at + take]]
            self.held += take
        self._body_left -= take
        self._note_packet(packet, ts)
        if self._body_left == 0:
            self._give(out)
        return at + take

    def _append(self, parts: list[bytes], part: bytes) -> None:
        """Append to a head or body; many small parts are joined to save memory."""
        parts.append(part)
        # `_joined` is the number of parts that are joined ones: no byte is joined twice.
        if len(parts) - self._joined >= MANY_PARTS:
            parts[self._joined :] = [b"".join(parts[self._joined :])]
            self._joined += 1

    def _note_packet(self, packet: i64, ts: i64) -> None:
        if packet > self._packet:
            self._packet = packet
            self._ts = ts

    def _give(self, out: list[Frame]) -> None:
        body = b""
        if self._body:
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = _NO_PARTS
            self.held = 0
        at, packet, ts, lost = self._offset, self._packet, self._ts, self._missing
        frame = Frame(at, packet, ts, self._type, self._header, body, self._body_length, lost)
        out.append(frame)
        self._body_left = -1

    def _lose(self) -> None:
        """Drop the current frame: the frame boundary is lost."""
        self.synchronized = False
        self._head = _NO_PARTS
        self._head_size = 0
        self._body = _NO_PARTS
        self._body_left = -1
        self.held = 0
        self.search.clear()

    def _lose_prefix(self, prefix: i64) -> None:
        """Search for the next prefix after the first byte of an invalid one."""
        total: i64 = total_of(prefix)
        if total + 4 > MAX_FRAME:
            self._report(FindingKind.FRAME_TOO_LARGE, f"{total} bytes")
            if self.too_long == 0:
                self.too_long = total
        else:
            high: i64 = total & 0xFFFFFFFF
            low: i64 = prefix & 0xFFFFFFFF
            self._report(FindingKind.BAD_FRAME, f"prefix {int(high):08x}{int(low):08x}")
        self._lose()

    def _look(self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64) -> None:
        """Search for a frame in these and the kept bytes."""
        self._resume_at(self.search.receive(data, at, end, offset, packet, ts))

    def _settle(self, out: list[Frame]) -> None:
        """Search for frames inside data that will not be completed."""
        while not self.synchronized:
            ranges = self.search.settle()
            if not ranges:
                return
            self._resume_at(ranges)
            self._read_again(self._taken_again(), out)

    def _resume_at(self, ranges: list[Range]) -> None:
        """Continue decoding at the start of the ranges."""
        if not ranges:
            return
        first = ranges[0]
        self._lose()
        self.synchronized = True
        self._offset = first.offset
        self._packet = first.packet
        self._ts = first.ts
        # At the start of a stream, nothing was skipped.
        if first.offset > 0:
            self._report(FindingKind.RESYNCHRONIZED, "a frame begins here")
        self._again = ranges

    def _report(self, kind: FindingKind, detail: str) -> None:
        self._findings.append(
            Finding(kind, detail, self._ts, self._packet, self._conversation, self._offset)
        )
