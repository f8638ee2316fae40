"""Frames out of a stream, whatever happens to it.

`FrameDecoder` is told everything that can happen to a stream:
data, gap, end. It never invents a byte. A hole in a body of known length does not lose the frame
boundary; any other hole does, and so does a prefix that cannot be one: then the decoder looks for
the next bytes that are certainly a frame's prefix and header.

RocketMQ: NettyDecoder, RemotingCommand.decode.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from ...expert import ExpertInfo, ExpertKind
from .frame import Frame
from .layout import MAX_FRAME, PREFIX, header_length_of, is_no_json, is_prefix, total_of, type_of
from .search import PART_COST, FrameSearch, Range
from .wanted_bodies import is_wanted, may_carry

KEEP_NONE: Final = 0
"""bodies are passed over"""
KEEP_MESSAGES: Final = 1
"""only bodies are kept of which a row says something: messages to count, groups and brokers to
name"""
KEEP_ALL: Final = 2
"""all bodies are kept"""
KEEP_CARRIED: Final = 3
"""only bodies are kept of which a row says something, or in which there are messages"""

MANY_PARTS: Final = 1024
"""parts of a head or a body that are joined to one"""
_NO_PARTS: Final[list[bytes]] = []
_NO_RANGES: Final[list[Range]] = []
"""nothing is held: one list for all streams, which nobody adds to, because most hold nothing"""


@final
class FrameDecoder:
    """Pieces of one direction in, frames out."""

    __slots__ = (
        "_again",
        "_body",
        "_body_left",
        "_body_length",
        "_conversation",
        "_experts",
        "_head",
        "_head_need",
        "_head_size",
        "_header",
        "_joined",
        "_keeping",
        "_missing",
        "_offset",
        "_packet",
        "_search",
        "_ts",
        "_type",
        "held",
        "keep",
        "synchronized",
        "too_long",
    )

    def __init__(
        self, conversation: i64, experts: list[ExpertInfo], keep: i64, synchronized: bool
    ) -> None:
        self.synchronized = synchronized
        """the next byte is known to belong to a frame"""
        self.held: i64 = 0
        """bytes of the body that are held"""
        self.too_long: i64 = 0
        """declared length of the first frame that is longer than any may be; 0: none"""
        self._conversation: i64 = conversation
        self._experts = experts
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
        self._search = FrameSearch()
        self._joined: i64 = 0

    @property
    def held_bytes(self) -> i64:
        """Bytes of heads, bodies and what is searched that are held."""
        return self.held + self._head_size + self._search.held_bytes

    @property
    def held_memory(self) -> i64:
        """Bytes of memory that they take, about."""
        parts: i64 = len(self._head) + len(self._body) + self._search.held_parts
        return self.held_bytes + PART_COST * parts

    @property
    def started(self) -> bool:
        """Whether offset 0 is known to be where the stream starts."""
        return self._search.started

    @started.setter
    def started(self, started: bool) -> None:
        self._search.started = started

    @property
    def searched(self) -> i64:
        """Bytes that were searched without success since the last frame."""
        return self._search.searched

    @property
    def earliest_sought(self) -> i64:
        """Id of the packet from which on bytes are kept that may become frames; -1: none are."""
        return self._search.earliest_held

    @property
    def work(self) -> i64:
        """Bytes looked at, joined or judged while frames were looked for."""
        return self._search.work

    def receive(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> None:
        """Receive the next bytes of the stream: `data[at:end]`, at `offset`, brought by
        `packet`.
        """
        used = self._consume(data, at, end, offset, packet, ts, out)
        if not self._again:
            return
        # A frame was found in bytes that were kept: they, then the rest, are read once more.
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
        """Return the kept bytes to read once more, last first."""
        again = self._again
        self._again = _NO_RANGES
        again.reverse()
        return again

    def _consume(
        self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64, out: list[Frame]
    ) -> i64:
        """Read until the end, or until kept bytes must be read once more."""
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
        """Note bytes that the capture does not have; 0: how many cannot be known."""
        self._settle(out)
        if self._body_left > 0:
            if length == 0:
                length = self._body_left + 1
            lost: i64 = min(self._body_left, length)
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
        """Finish the stream; a frame that is cut inside its body is given out as it is."""
        self._settle(out)
        if self._body_left > 0:
            self._say(ExpertKind.FRAME_CUT, f"{self._body_left} bytes of the body are missing")
            self._missing += self._body_left
            self._body_left = 0
            self._give(out)
        elif self._head_size and self.synchronized:
            self._say(ExpertKind.FRAME_CUT, f"only {self._head_size} bytes of it are there")
        self._lose()

    def release(self) -> None:
        """Give up what is being held: too much memory is in use. A frame's body is passed over."""
        if self._body_left > 0:
            self._body = _NO_PARTS
            self._keeping = False
            self.held = 0
        else:
            self._lose()

    def forget(self) -> None:
        """Give up all that is held, as nothing of this stream will be decoded."""
        self._lose()

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
        """Begin a frame here; return the place behind what was used."""
        self._offset = at + shift
        self._packet = packet
        self._ts = ts
        if end - at < PREFIX:
            self._await_head(data[at:end], PREFIX)
            return end
        prefix = read_i64_be(data, at)
        header_end: i64 = at + PREFIX + header_length_of(prefix)
        fits = header_end <= end
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
        """Add to a prefix or header that began in an earlier piece."""
        take: i64 = min(self._head_need - self._head_size, end - at)
        self._append(self._head, data[at : at + take])
        self._head_size += take
        self._note_packet(packet, ts)
        at += take
        if self._head_size < self._head_need:
            return at
        head = b"".join(self._head)
        prefix = read_i64_be(head, 0)
        if self._head_need == PREFIX and is_prefix(prefix):
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
        """Go on to the body once the header is complete, if there is one."""
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
        """Add to a head or a body; many small parts take more room than their bytes: joined."""
        parts.append(part)
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
        """Give up the frame that was begun: the frame boundary is lost."""
        self.synchronized = False
        self._head = _NO_PARTS
        self._head_size = 0
        self._body = _NO_PARTS
        self._body_left = -1
        self.held = 0
        self._search.clear()

    def _lose_prefix(self, prefix: i64) -> None:
        """Look for the next prefix behind the first byte of what is none."""
        total: i64 = total_of(prefix)
        if total + 4 > MAX_FRAME:
            self._say(ExpertKind.FRAME_TOO_LARGE, f"{total} bytes")
            if self.too_long == 0:
                self.too_long = total
        else:
            high: i64 = total & 0xFFFFFFFF
            low: i64 = prefix & 0xFFFFFFFF
            self._say(ExpertKind.BAD_FRAME, f"prefix {int(high):08x}{int(low):08x}")
        self._lose()

    def _look(self, data: bytes, at: i64, end: i64, offset: i64, packet: i64, ts: i64) -> None:
        """Look for a frame in these bytes and those that were kept."""
        self._found(self._search.receive(data, at, end, offset, packet, ts))

    def _settle(self, out: list[Frame]) -> None:
        """Look for frames behind the start of what will not be completed."""
        while not self.synchronized:
            ranges = self._search.settle()
            if not ranges:
                return
            self._found(ranges)
            self._read_again(self._taken_again(), out)

    def _found(self, ranges: list[Range]) -> None:
        """Go on decoding where the ranges begin."""
        if not ranges:
            return
        first = ranges[0]
        self._lose()
        self.synchronized = True
        self._offset = first.offset
        self._packet = first.packet
        self._ts = first.ts
        if first.offset > 0:
            self._say(ExpertKind.RESYNCHRONIZED, "a frame begins here")
        self._again = ranges

    def _say(self, kind: ExpertKind, detail: str) -> None:
        self._experts.append(
            ExpertInfo(kind, detail, self._ts, self._packet, self._conversation, self._offset)
        )
