"""HTTP/2 as two ends write it: frames, header blocks, calls of gRPC."""

from __future__ import annotations

from collections.abc import Sequence

from hpack import Encoder

from dissectors.http2.frame import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS


def http2_frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


class Http2Writer:
    """What one end writes."""

    def __init__(self, is_client: bool = True) -> None:
        self.encoder = Encoder()
        self.data = bytearray(PREFACE if is_client else b"")
        self.data += http2_frame(SETTINGS, 0, 0)

    def headers(
        self, stream: int, headers: Sequence[tuple[str, str]], *, ends: bool = False
    ) -> None:
        """A header block in one frame."""
        flags = END_HEADERS | (END_STREAM if ends else 0)
        self.data += http2_frame(HEADERS, flags, stream, self.encoder.encode(headers))

    def message(
        self, stream: int, data: bytes, *, ends: bool = False, packed: bool = False
    ) -> None:
        """A message of gRPC in one DATA frame."""
        prefixed = bytes((packed,)) + len(data).to_bytes(4) + data
        self.data += http2_frame(DATA, END_STREAM if ends else 0, stream, prefixed)

    def call(self, stream: int, method: str, data: bytes) -> None:
        """A unary request."""
        path = f"/apache.rocketmq.v2.MessagingService/{method}"
        fixed = [(":method", "POST"), (":scheme", "http")]
        self.headers(stream, [*fixed, (":path", path), ("x-mq-client-id", "me")])
        self.message(stream, data, ends=True)

    def answer(self, stream: int, data: bytes, status: str = "0") -> None:
        """A unary response."""
        self.headers(stream, [(":status", "200")])
        self.message(stream, data)
        self.headers(stream, [("grpc-status", status)], ends=True)
