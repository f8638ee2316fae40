"""Rewrite connections without remoting commands: gRPC calls, and replication.

Rules: a separate pass over the packets of these connections, read like the decoder does. Data that
is not understood is not emitted, and becomes zeros. Messages are held until complete, with a common
limit; commit log bytes until a record is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..foreign import Unreadable
from ..grpc.call_stream import HeldBytes
from ..grpc.calls import METHODS_BY_PATH, MOST_HELD, MOST_STREAMS
from ..grpc.definition import Method
from ..grpc.pieces import LARGEST
from ..grpc.pieces import PREFIX as MESSAGE_PREFIX
from ..http2.connection import Http2End, StreamEvent, unpadded
from ..http2.frame import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HAS_PRIORITY,
    HEAD,
    HEADERS,
    PADDED,
    PING,
    PREFACE,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    FrameCutter,
    Http2Frame,
    StreamPlace,
)
from ..remoting.messages.record_layout import MAGIC_FILLER, RECORD_MAGICS, SIZE_AND_MAGIC
from ..replication.layouts import (
    MAX_TRANSFER,
    MIN_RECORD,
    OLD_HANDSHAKE,
    RECORD_HEAD,
    RECORD_MAGIC,
    Header,
    is_record_at,
)
from ..replication.progress import Reading
from ..replication.streams import MasterStream, SlaveStream
from ..tcp.reassembly import Data, Piece
from .calls import FREE, CallRewriter, rewritten_block
from .frames import FrameRewriter
from .pseudonyms import Pseudonyms

Put = Callable[[int, bytes, int], None]
"""Receives rewritten bytes of a direction: offset, bytes, and id of their last packet."""
_COPIED: Final = frozenset((PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE))
_MOST_PADDING: Final = 255
_MOST_RECORD: Final = 4 * MAX_TRANSFER


class _Pieces:
    """Held bytes and their places."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self.data = bytearray()
        self._ranges: list[tuple[int, int]] = []

    def add(self, offset: int, data: bytes) -> None:
        self.data += data
        self._ranges.append((offset, len(data)))

    def give(self, new: bytes | None, size: int, packet: int) -> None:
        """Release the first bytes, replaced by `new`, or dropped if None."""
        at = 0
        while at < size:
            offset, length = self._ranges[0]
            take = min(length, size - at)
            if new is not None:
                self._put(offset, new[at : at + take], packet)
            if take == length:
                self._ranges.pop(0)
            else:
                self._ranges[0] = (offset + take, length - take)
            at += take
        del self.data[:size]


class _Side:
    """One side of an HTTP/2 stream."""

    def __init__(self, put: Put) -> None:
        self.pieces = _Pieces(put)
        self.skip = 0
        """remaining bytes of a message with a hole"""
        self.is_broken = False


class _Frames(Http2End):
    """One end of a connection, read like the decoder does, with its frames."""

    def __init__(
        self, joined: bool, put: Put, take: Callable[[Http2Frame, list[StreamEvent]], None]
    ) -> None:
        super().__init__(joined)
        self._put = put
        self._give = take

    def receive_gap(self, length: int, place: StreamPlace, out: list[StreamEvent]) -> None:
        """Continue after bytes that were not captured."""
        losses, cutter = self.losses, self._cutter
        super().receive_gap(length, place, out)
        if self.losses != losses:
            self.cut(cutter, place.offset - length, place.packet)

    def cut(self, cutter: FrameCutter | None, offset: int, packet: int) -> None:
        """Emit the head of an incomplete frame, up to an offset."""
        head, size = (cutter or self._cutter).begun
        if len(head) == HEAD:
            self._put(offset - size, head, packet)

    def _take(self, frame: Http2Frame, out: list[StreamEvent]) -> None:
        before = len(out)
        super()._take(frame, out)
        self._give(frame, out[before:])


class _CallEnd:
    """One end of a connection with calls."""

    def __init__(self, streams: CallStreams, put: Put) -> None:
        self._streams = streams
        self._put = put
        self.lost_to = 0
        """the newest stream with data before its method was known"""
        self._end: _Frames | None = None
        self._at = 0
        self._block: list[Http2Frame] = []
        self.sides: dict[int, _Side] = {}
        self.is_client = False

    def receive(self, piece: Piece) -> None:
        """Rewrite the frames that a piece completes."""
        offset = int(piece.offset)
        if self._end is None:
            self._end = _Frames(not self._is_start(piece), self._put, self._frame)
            self._at = offset
        events: list[StreamEvent] = []
        if offset > self._at:
            place = StreamPlace(int(piece.packet), int(piece.ts), offset)
            self._end.receive_gap(offset - self._at, place, events)
        if isinstance(piece, Data):
            data = piece.data[piece.start : piece.end]
            self._at = offset + len(data)
            place = StreamPlace(int(piece.packet), int(piece.ts), self._at)
            if offset == 0 and data.startswith(PREFACE):
                self.is_client = True
                self._put(0, PREFACE, int(piece.packet))
            self._end.receive(data, place, events)
        else:
            self._at = offset + int(piece.length)
            place = StreamPlace(int(piece.packet), int(piece.ts), self._at)
            if piece.length:
                self._end.receive_gap(int(piece.length), place, events)
            else:
                self._end.stop("bytes are missing")

    def side(self, stream: int) -> _Side:
        """Return its side of a stream."""
        side = self.sides.get(stream)
        if side is None:
            side = self.sides[stream] = _Side(self._put)
            side.is_broken = stream <= self.lost_to
        return side

    def finish(self) -> None:
        """Rewrite incomplete data."""
        if self._end is not None:
            self._end.cut(None, self._at, 0)

    def _is_start(self, piece: Piece) -> bool:
        if not isinstance(piece, Data) or piece.offset:
            return False
        head = piece.data[piece.start : piece.end]
        # A client begins with the preface, a server with SETTINGS that acknowledge nothing.
        return head.startswith(PREFACE[:HEAD]) or head[3:9] == bytes((SETTINGS, 0, 0, 0, 0, 0))

    def _frame(self, frame: Http2Frame, events: list[StreamEvent]) -> None:
        start = frame.place.offset - HEAD - len(frame.payload) - frame.missing
        kind, payload, packet = frame.type, frame.payload, frame.place.packet
        head = _head_of(frame, len(payload) + frame.missing, frame.flags)
        if kind in (HEADERS, CONTINUATION):
            if kind == HEADERS:
                self._block.clear()
            self._block.append(frame)
            for event in events:
                self._headers(event)
        elif kind == DATA:
            for event in events:
                self._data(event, start, head, payload)
        elif kind in _COPIED:
            self._put(start, head + payload, packet)
            if kind == RST_STREAM:
                self._streams.close(frame.stream, packet)
        # Its payload is opaque: the sender may put anything into it.
        elif kind == PING:
            self._put(start, head + bytes(len(payload)), packet)
        elif kind == GOAWAY:
            reason = self._streams.said(payload[8:])
            self._put(start, head + payload[:8] + reason, packet)
        elif kind != PUSH_PROMISE:  # its header block is not rewritten, so its bytes become zeros
            self._streams.drop("frames of HTTP/2 that no definition has", len(payload))
            self._put(start, head + bytes(len(payload)), packet)

    def _headers(self, event: StreamEvent) -> None:
        frames = self._block
        payloads = [frame.payload for frame in frames]
        first = frames[0]
        padding = 0
        fixed = b""
        if first.flags & PADDED and first.payload:
            payloads[0], _ = unpadded(first)
            padding = len(first.payload) - 1 - len(payloads[0])
        if first.flags & HAS_PRIORITY:
            fixed, payloads[0] = payloads[0][:5], payloads[0][5:]
        if event.headers and any(name == ":method" for name, _ in event.headers):
            self.is_client = True
            self._streams.open(event)
        try:
            block = self._streams.block(b"".join(payloads), event)
        except Unreadable:
            return  # nothing is emitted, so the block becomes zeros
        # What the block became shorter is padding of its first frame.
        short = sum(map(len, payloads)) - len(block)
        is_padded = bool(first.flags & PADDED) or short > 0
        if short and not first.flags & PADDED:
            padding -= 1  # the byte with the padding length
        padding += short
        if padding > _MOST_PADDING or short > len(payloads[0]):
            self._streams.drop("header blocks that became too short", len(block))
            if self._end is not None:
                self._end.stop("a header block that became too short")
            return
        at = 0
        for place, frame in enumerate(frames):
            size = len(payloads[place]) - (short if place == 0 else 0)
            data = block[at : at + size]
            at += size
            flags = frame.flags
            if place == 0 and is_padded:
                flags |= PADDED
                data = bytes((padding,)) + fixed + data + bytes(padding)
            elif place == 0:
                data = fixed + data
            start = frame.place.offset - HEAD - len(frame.payload)
            self._put(start, _head_of(frame, len(data), flags) + data, frame.place.packet)
        if event.ended and not self.is_client:
            self._streams.close(event.stream, event.place.packet)

    def _data(self, event: StreamEvent, start: int, head: bytes, payload: bytes) -> None:
        packet = event.place.packet
        begin = start + HEAD
        if head[4] & PADDED and payload:
            head += payload[:1]
            begin += 1
            padding = len(payload) - 1 - len(event.data)
            if padding > 0 and not event.missing:
                self._put(begin + len(event.data), bytes(padding), packet)
        self._put(start, head, packet)
        if not self._streams.cut(self, event, begin):
            self._streams.drop("messages of gRPC of which the method is not known", len(event.data))
        if event.ended and not self.is_client:
            self._streams.close(event.stream, packet)


def _head_of(frame: Http2Frame, length: int, flags: int) -> bytes:
    return length.to_bytes(3) + bytes((frame.type, flags)) + frame.stream.to_bytes(4)


class CallStreams:
    """Rewrites both directions of a connection with calls."""

    def __init__(
        self, names: Pseudonyms, frames: FrameRewriter, held: HeldBytes, first: Put, second: Put
    ) -> None:
        """`held`: counts held bytes of all connections."""
        self._names = names
        self._frames = frames
        self._calls = CallRewriter(names, frames)
        self._methods: dict[int, Method] = {}
        self._held = held
        self._ends = (_CallEnd(self, first), _CallEnd(self, second))

    def take(self, is_first: bool, pieces: list[Piece], started: bool) -> None:  # noqa: ARG002
        """Rewrite the data that these pieces of a direction complete."""
        end = self._ends[0 if is_first else 1]
        for piece in pieces:
            end.receive(piece)

    def finish(self) -> None:
        """Rewrite incomplete data at the end."""
        for stream in list(self._methods):
            self.close(stream, 0)
        for end in self._ends:
            end.finish()

    def drop(self, what: str, size: int) -> None:
        """Count dropped bytes."""
        self._frames.dropped[what] += size

    def said(self, data: bytes) -> bytes:
        """Rewrite a text of a server."""
        return self._frames.changed(data, self._names.remark)

    def open(self, event: StreamEvent) -> None:
        """Record the method of a stream."""
        method = METHODS_BY_PATH.get(dict(event.headers).get(":path", ""))
        if method is not None:
            if len(self._methods) >= MOST_STREAMS:
                self.close(next(iter(self._methods)), event.place.packet)
            self._methods[event.stream] = method

    def block(self, block: bytes, event: StreamEvent) -> bytes:
        """Return a rewritten header block, at most as long."""

        def change(name: str, value: str) -> tuple[str, str, bool]:
            new = self._calls.header(name, value) if value else value
            return known(name, self._calls.header_name(name)), known(value, new), name in FREE

        def known(text: str, new: str) -> str:
            if "\ufffd" not in text:
                return new
            # Its bytes are unknown here: what seems unchanged would keep them.
            self.drop("texts that are not UTF-8", len(text))
            return "x" * len(text)

        new, cut = rewritten_block(block, event.headers, change)
        if cut:
            self.drop("texts of gRPC metadata that became longer, cut", cut)
        return new

    def cut(self, end: _CallEnd, event: StreamEvent, begin: int) -> bool:
        """Rewrite the messages that data completes; return False if message boundaries are lost."""
        method = self._methods.get(event.stream)
        if method is None:
            end.lost_to = max(end.lost_to, event.stream)
            return False
        side = end.side(event.stream)
        if side.is_broken:
            return False
        type_name = method.asks if end.is_client else method.gives
        data, packet, pieces = event.data, event.place.packet, side.pieces
        before = len(pieces.data)
        passed = min(side.skip, len(data))
        side.skip -= passed
        pieces.add(begin + passed, data[passed:])
        self._messages(type_name, pieces, packet)
        if len(pieces.data) > LARGEST or self._held.bytes > MOST_HELD:
            side.is_broken = True
            pieces.give(None, len(pieces.data), packet)
        elif event.missing > side.skip:
            # A hole inside a message of known length keeps the boundaries of those after it.
            held, left = len(pieces.data), event.missing - side.skip
            whole = MESSAGE_PREFIX + int.from_bytes(pieces.data[1:MESSAGE_PREFIX])
            side.is_broken = held < MESSAGE_PREFIX or held + left > whole
            side.skip = max(whole - held - left, 0)
            self._part(type_name, pieces, packet)
        else:
            side.skip -= event.missing
        self._held.bytes += len(pieces.data) - before
        return True

    def close(self, stream: int, packet: int) -> None:
        """Forget a stream that has ended; its incomplete data stays as far as it goes."""
        method = self._methods.pop(stream, None)
        for end in self._ends:
            side = end.sides.pop(stream, None)
            if side is not None and method is not None:
                self._held.bytes -= len(side.pieces.data)
                type_name = method.asks if end.is_client else method.gives
                self._part(type_name, side.pieces, packet)

    def _messages(self, type_name: str, pieces: _Pieces, packet: int) -> None:
        held = pieces.data
        while len(held) >= MESSAGE_PREFIX:
            size = MESSAGE_PREFIX + int.from_bytes(held[1:MESSAGE_PREFIX])
            if size > len(held):
                return
            self._give(type_name, pieces, size, packet)

    def _part(self, type_name: str, pieces: _Pieces, packet: int) -> None:
        """Rewrite the beginning of an incomplete message."""
        if len(pieces.data) >= MESSAGE_PREFIX:
            self._give(type_name, pieces, len(pieces.data), packet)
        else:
            pieces.give(None, len(pieces.data), packet)

    def _give(self, type_name: str, pieces: _Pieces, size: int, packet: int) -> None:
        prefix = bytes(pieces.data[:MESSAGE_PREFIX])
        data = bytes(pieces.data[MESSAGE_PREFIX:size])
        if prefix[0]:
            self.drop("messages that gRPC compressed", len(data))
            new = bytes(len(data))
        else:
            new = self._calls.message(type_name, data)
        pieces.give(prefix + new, size, packet)


class _LogBytes:
    """Rewrites the commit log of a master, record by record."""

    def __init__(self, frames: FrameRewriter, held: HeldBytes, put: Put) -> None:
        self._frames = frames
        self._held = held
        self._pieces = _Pieces(put)
        self._next = -1
        self._begin = 0
        self._found = False
        self._filler = 0

    def receive(self, physical: int, offset: int, data: bytes, packet: int) -> None:
        """Add log bytes with their physical offset and stream offset."""
        pieces = self._pieces
        if physical != self._next:
            self.lose(packet)
            self._begin = physical
        self._next = physical + len(data)
        pieces.add(offset, data)
        self._held.bytes += len(data)
        if self._held.bytes > MOST_HELD:
            self.lose(packet)
        while pieces.data:
            if self._filler:
                size = min(self._filler, len(pieces.data))
                self._filler -= size
                self._give(bytes(size), size, packet)
            elif not self._found:
                if not self._search(packet):
                    return
            elif not self._record(packet):
                return

    def _record(self, packet: int) -> bool:
        """Rewrite the first record; return False if it is incomplete."""
        data = self._pieces.data
        if len(data) < SIZE_AND_MAGIC.size:
            return False
        size, magic = SIZE_AND_MAGIC.unpack_from(data)
        if magic == MAGIC_FILLER and size >= SIZE_AND_MAGIC.size:
            self._filler = size - SIZE_AND_MAGIC.size
            self._give(bytes(data[: SIZE_AND_MAGIC.size]), SIZE_AND_MAGIC.size, packet)
            return True
        if magic not in RECORD_MAGICS or not MIN_RECORD <= size <= _MOST_RECORD:
            self._found = False
            return True
        if size > len(data):
            return False
        self._give(self._frames.record(bytes(data[:size])), size, packet)
        return True

    def _search(self, packet: int) -> bool:
        data = bytes(self._pieces.data)
        for match in RECORD_MAGIC.finditer(data):
            at = match.start() - 4
            if at < 0 or at + RECORD_HEAD > len(data):
                continue
            if is_record_at(data, at, self._begin + at):
                self._give(None, at, packet)
                self._found = True
                return True
        self._give(None, max(len(data) - RECORD_HEAD + 1, 0), packet)
        return False

    def lose(self, packet: int) -> None:
        """Continue elsewhere; of an incomplete record the first fields stay."""
        data = self._pieces.data
        if self._found and not self._filler and len(data) >= RECORD_HEAD:
            head = data[:8] + bytes(4) + data[12:RECORD_HEAD]  # without the CRC of its body
            self._give(bytes(head), RECORD_HEAD, packet)
        self._give(None, len(data), packet)
        self._found = False
        self._filler = 0

    def _give(self, new: bytes | None, size: int, packet: int) -> None:
        self._pieces.give(new, size, packet)
        self._held.bytes -= size
        self._begin += size


class _Master(MasterStream):
    """Stream of a master, read like the decoder does, with the places of its contents."""

    def __init__(
        self,
        auto_switch: bool,
        reading: Reading,
        frames: FrameRewriter,
        held: HeldBytes,
        put: Put,
    ) -> None:
        super().__init__(auto_switch, reading)
        self._put = put
        self._log = _LogBytes(frames, held, put)
        self._header: Header | None = None
        self._packet = 0

    def receive(self, data: bytes, offset: int, packet: int, ts: int) -> None:
        """Rewrite the next bytes of the stream, at `offset`."""
        self._packet = packet
        super().receive(data, offset, packet, ts)

    def finish(self) -> None:
        """Rewrite incomplete data."""
        self._log.lose(self._packet)

    def _receive_data(self, data: bytes, at: int, offset: int, ts: int) -> int:
        stop = super()._receive_data(data, at, offset, ts)
        header = self._header
        if header is not None:
            physical = header.offset + header.size - self._left - (stop - at)
            self._log.receive(physical, offset + at, data[at:stop], self._packet)
        return stop

    def _receive_head(self, data: bytes, at: int, offset: int, packet: int, ts: int) -> int:
        before = self._head
        stop = super()._receive_head(data, at, offset, packet, ts)
        if not self._head and self.synchronized:
            head = before + data[at:stop]
            self._put(offset + stop - len(head), head, packet)
        return stop

    def _begin(self, header: Header, packet: int, ts: int) -> None:
        self._header = header
        super()._begin(header, packet, ts)

    def _search(self, data: bytes, offset: int, packet: int, ts: int) -> bytes:
        window = self._window + data
        rest = super()._search(data, offset, packet, ts)
        header = self._header
        if self.synchronized and header is not None:
            stop = len(window) - len(rest)
            whole = 0 if self._left else header.size
            start = stop - whole - self._size
            base = offset + len(data) - len(window)
            if start >= 0:
                self._put(base + start, window[start : start + self._size], packet)
                if whole:
                    body = window[stop - whole : stop]
                    self._log.receive(header.offset, base + stop - whole, body, packet)
        return rest


class _Slave(SlaveStream):
    """Stream of a slave, read like the decoder does."""

    def __init__(
        self,
        auto_switch: bool,
        reading: Reading,
        frames: FrameRewriter,
        names: Pseudonyms,
        put: Put,
    ) -> None:
        super().__init__(auto_switch, reading)
        self._put = put
        self._frames = frames
        self._names = names

    def _take(self, head: bytes, offset: int, packet: int, ts: int) -> None:
        super()._take(head, offset, packet, ts)
        if not self.synchronized:
            return
        if len(head) == OLD_HANDSHAKE.size:
            *numbers, length, address = OLD_HANDSHAKE.unpack(head)
            new = self._frames.changed(address[:length], self._names.value)
            head = OLD_HANDSHAKE.pack(*numbers, length, new)
        self._put(offset, head, packet)


class ReplicationStreams(Reading):
    """Rewrites both directions of a connection between a slave and its master."""

    def __init__(
        self,
        auto_switch: bool,
        master_first: bool,
        names: Pseudonyms,
        frames: FrameRewriter,
        held: HeldBytes,
        master: Put,
        slave: Put,
    ) -> None:
        super().__init__(0, auto_switch, master_first)
        self.certain = True
        self._master: _Master = _Master(auto_switch, self, frames, held, master)
        self._slave = _Slave(auto_switch, self, frames, names, slave)

    def finish(self) -> None:
        """Rewrite incomplete data at the end."""
        self._master.finish()

    def take(self, is_first: bool, pieces: list[Piece], started: bool) -> None:
        """Rewrite these pieces of a direction; `started`: the stream begins at offset 0."""
        for piece in pieces:
            if isinstance(piece, Data):
                data = piece.data[piece.start : piece.end]
                place = int(piece.offset), int(piece.packet), int(piece.ts)
                self.receive(is_first, data, *place, started)
            else:
                self.receive_gap(is_first, int(piece.length))
