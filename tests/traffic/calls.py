"""Calls of gRPC on one connection, as strategies for hypothesis: what both ends say, in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from dissectors.http2.frame import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    RST_STREAM,
)

from .http2 import Http2Writer, http2_frame
from .talk import Talk, Tcp

OK = b"\x0a\x06\x08\xa0\x9c\x01\x12\x00"
"""a status of code OK"""
PATH = "/apache.rocketmq.v2.MessagingService/"
CANCEL = 8


def part(number: int, value: bytes | str | int) -> bytes:
    """One field of a message of Protocol Buffers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """A number as Protocol Buffers write it."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*made, value))


def message(key: str, body: bytes) -> bytes:
    """A message as a producer sends it and a consumer gets it."""
    return part(1, part(2, "Orders")) + part(3, part(3, key)) + part(4, body)


@dataclass
class Calls:
    """What both ends say."""

    said: list[tuple[int, bytes]] = field(default_factory=list)
    """who (0 the client) and bytes of HTTP/2"""
    client: Http2Writer = field(default_factory=Http2Writer)
    server: Http2Writer = field(default_factory=lambda: Http2Writer(is_client=False))
    stream: int = 1
    """number of the next stream"""

    def begin(self, method: str, *, client_id: str = "me") -> int:
        """Headers of a request; returns its stream."""
        stream, self.stream = self.stream, self.stream + 2
        self.headers(
            0,
            stream,
            [
                *((":method", "POST"), (":scheme", "http"), (":path", PATH + method)),
                *(("x-mq-client-id", client_id), ("x-mq-request-id", f"request-{stream}")),
            ],
        )
        return stream

    def headers(
        self,
        side: int,
        stream: int,
        headers: list[tuple[str, str]],
        *,
        ends: bool = False,
        cut: int = 0,
    ) -> None:
        """A header block; behind `cut` bytes of it come in a continuation."""
        block = (self.client, self.server)[side].encoder.encode(headers)
        flags = END_STREAM if ends else 0
        if cut and cut < len(block):
            data = http2_frame(HEADERS, flags, stream, block[:cut])
            data += http2_frame(CONTINUATION, END_HEADERS, stream, block[cut:])
        else:
            data = http2_frame(HEADERS, flags | END_HEADERS, stream, block)
        self._say(side, data)

    def data(
        self,
        side: int,
        stream: int,
        data: bytes,
        *,
        ends: bool = False,
        size: int = 16384,
        padding: int = 0,
    ) -> None:
        """A message, cut into frames of `size` bytes, each with so much padding."""
        prefixed = b"\0" + len(data).to_bytes(4) + data
        for at in range(0, len(prefixed), size):
            payload = prefixed[at : at + size]
            flags = END_STREAM if ends and at + size >= len(prefixed) else 0
            if padding:
                payload, flags = bytes((padding,)) + payload + bytes(padding), flags | PADDED
            self._say(side, http2_frame(DATA, flags, stream, payload))

    def reset(self, side: int, stream: int) -> None:
        """One end gives a stream up."""
        self._say(side, http2_frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4)))

    def talk(self, **form: int) -> Talk:
        """The connection, each thing said in segments of its own."""
        talk = Talk(**form).open()  # type: ignore[arg-type]
        for side, data in self.said:
            talk.say(side, data)
        return talk

    def _say(self, side: int, data: bytes) -> None:
        writer = (self.client, self.server)[side]
        self.said.append((side, bytes(writer.data) + data))  # with what begins a connection
        writer.data.clear()


_BODY = st.builds(
    lambda seed, size: bytes((seed * 31 + index * 7) & 0xFF for index in range(size)),
    st.integers(0, 255),
    st.sampled_from([0, 5, 100, 1448, 3000]),
)


@st.composite
def calls(draw: st.DrawFn, max_size: int = 8) -> Calls:
    """Calls of several methods, up to three at a time, answered in any order, or not."""
    made = Calls()
    if draw(st.booleans()):
        _announce(draw, made)
    waiting: list[tuple[int, str]] = []
    for number in range(draw(st.integers(1, max_size))):
        method = draw(
            st.sampled_from(["SendMessage", "SendMessage", "ReceiveMessage", "AckMessage"])
        )
        stream = made.begin(method)
        if method == "SendMessage":
            asked = part(1, message(f"key-{number}", draw(_BODY)))
        else:
            asked = part(1, part(2, "team")) + part(2, part(2, "Orders"))
            asked = asked if method == "AckMessage" else part(1, part(2, "team"))
        made.data(0, stream, asked, ends=True, **draw(_FORM))
        waiting.append((stream, method))
        while len(waiting) > 2 or (waiting and draw(st.booleans())):
            _answer(draw, made, *waiting.pop(draw(st.integers(0, len(waiting) - 1))))
    for stream, method in waiting:
        if draw(st.booleans()):
            _answer(draw, made, stream, method)
    return made


_FORM = st.fixed_dictionaries(
    {"size": st.sampled_from([16384, 700, 100, 11]), "padding": st.sampled_from([0, 0, 0, 9])}
).map(lambda form: {**form, "size": 700} if form["padding"] else form)


def _announce(draw: st.DrawFn, made: Calls) -> None:
    """A telemetry stream, which stays open: settings, theirs, and something that is asked."""
    stream = made.begin("Telemetry")
    made.data(0, stream, part(2, part(1, 1)))
    made.headers(1, stream, [(":status", "200"), ("content-type", "application/grpc")])
    made.data(1, stream, OK + part(2, part(1, 1)), **draw(_FORM))
    if draw(st.booleans()):
        made.data(1, stream, part(5, part(1, message("half", b"x")) + part(2, "transaction")))


def _answer(draw: st.DrawFn, made: Calls, stream: int, method: str) -> None:
    how = draw(st.sampled_from(["answers", "answers", "answers", "fails", "gives up"]))
    if how == "gives up":
        made.reset(draw(st.sampled_from([0, 1])), stream)
        return
    status = [(":status", "200"), ("content-type", "application/grpc")]
    if how == "fails":
        failed = [*status, ("grpc-status", "14"), ("grpc-message", f"gone-{stream}")]
        made.headers(1, stream, failed, ends=True, cut=draw(st.sampled_from([0, 2])))
        return
    made.headers(1, stream, status, cut=draw(st.sampled_from([0, 0, 1])))
    if method == "ReceiveMessage":
        for number in range(draw(st.integers(0, 3))):
            made.data(1, stream, part(2, message(f"got-{number}", draw(_BODY))), **draw(_FORM))
    made.data(1, stream, OK, **draw(_FORM))
    made.headers(1, stream, [("grpc-status", "0")], ends=True)


def rejoined(draw: st.DrawFn, made: Calls, mss: int, *, often: bool = False) -> list[Tcp]:
    """The connection with what an end says joined as its writes may be, and cut anywhere.

    `often`: joined wherever that is possible, so that there are few packets.
    """
    talk = Talk(mss=mss).open()
    runs: list[tuple[int, bytes]] = []
    for side, data in made.said:
        if runs and runs[-1][0] == side and (often or draw(st.booleans())):
            runs[-1] = (side, runs[-1][1] + data)
        else:
            runs.append((side, data))
    sizes = st.lists(st.sampled_from([1, 2, 5, 8, 9, 10, 14, 40, 700]), max_size=6)
    for side, data in runs:
        talk.say(side, data, sizes=draw(sizes), acked=draw(st.booleans()))
    return talk.segments
