"""Compressed captures for several processes.

A thread of the parent decompresses each capture once and writes it to the pipes of all children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Thread
from typing import IO, Final

import msgspec

from ..tcp.source import CaptureError, Source
from .children import Child, read_message


class FedChunk(msgspec.Struct, array_like=True):
    """A chunk of a capture, or its end."""

    bytes_read: int
    """stored bytes of the capture read so far"""
    compression: str | None
    data: bytes | None = None
    """None: the end of the capture"""
    problem: str | None = None
    """at the end: why the capture ended early"""
    error: list[str] | None = None
    """at the end: path, reason, and hint if the capture cannot be opened"""


_DECODER: Final = msgspec.msgpack.Decoder(FedChunk)


class FedSource:
    """One capture, as a child receives it from its parent."""

    size: int | None = None

    def __init__(self, name: str, pieces: IO[bytes]) -> None:
        self.name = name
        self.compression: str | None = None
        self.problem: str | None = None
        self.bytes_read = 0
        self._pieces = pieces
        self._is_over = False

    def chunks(self) -> Iterator[bytes]:
        """Yield the chunks as they arrive; raise CaptureError if the capture cannot be opened."""
        while True:
            piece = self._next()
            if piece.error is not None:
                path, reason, hint = piece.error
                raise CaptureError(path, reason, hint=hint)
            self.compression, self.bytes_read = piece.compression, piece.bytes_read
            if piece.data is None:
                self.problem = piece.problem
                return
            yield piece.data

    def close(self) -> None:
        """Skip the rest of this capture: the next one follows."""
        while not self._is_over:
            self._next()

    def _next(self) -> FedChunk:
        message = read_message(self._pieces)
        if message is None:
            raise EOFError("nobody reads the captures any more")
        piece = _DECODER.decode(message)
        self._is_over = piece.data is None
        return piece


class Feeder:
    """Reads captures in a thread and writes them to the child processes."""

    def __init__(self, sources: Sequence[Source], children: Sequence[Child]) -> None:
        """Start the thread; the children must already have their task."""
        self._sources = sources
        self._children = children
        self._stopped = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop reading; the children must have ended, since the thread may be writing to one."""
        self._stopped = True
        self._thread.join()

    def _run(self) -> None:
        for source in self._sources:
            try:
                for chunk in source.chunks():
                    self._write(FedChunk(source.bytes_read, source.compression, chunk))
                    if self._stopped:
                        return
                end = FedChunk(source.bytes_read, source.compression, None, source.problem)
            except CaptureError as error:
                end = FedChunk(0, None, error=[error.path, error.reason, error.hint])
            finally:
                source.close()
            self._write(end)

    def _write(self, piece: FedChunk) -> None:
        # A full pipe blocks here until its child has read: the slowest child sets the pace.
        message = msgspec.msgpack.encode(piece)
        for child in self._children:
            child.write(message)
