"""Compressed captures for several processes: decompressed once, by a thread of the process that
started them, and handed to each by its pipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Thread
from typing import IO, Final

import msgspec

from ..tcp.source import CaptureError, Source
from .children import Child, read_message


class FedChunk(msgspec.Struct, array_like=True):
    """A chunk of a capture, or what its end says."""

    bytes_read: int
    """of the capture as it is stored"""
    compression: str | None
    data: bytes = b""
    is_end: bool = False
    problem: str | None = None
    """at the end: why it came early"""
    error: list[str] | None = None
    """at the end: path, reason and hint where the capture cannot be opened"""


_DECODER: Final = msgspec.msgpack.Decoder(FedChunk)


class FedSource:
    """One capture, as a process gets it from who started it."""

    size: int | None = None

    def __init__(self, name: str, pieces: IO[bytes]) -> None:
        self.name = name
        self.compression: str | None = None
        self.problem: str | None = None
        self.bytes_read = 0
        self._pieces = pieces
        self._is_over = False

    def chunks(self) -> Iterator[bytes]:
        """Give the chunks as they come; raise CaptureError where the capture cannot be opened."""
        while True:
            piece = self._next()
            if piece.error is not None:
                path, reason, hint = piece.error
                raise CaptureError(path, reason, hint=hint)
            self.compression, self.bytes_read = piece.compression, piece.bytes_read
            if piece.is_end:
                self.problem = piece.problem
                return
            yield piece.data

    def close(self) -> None:
        """Pass over what comes of it still: the next capture follows."""
        while not self._is_over:
            self._next()

    def _next(self) -> FedChunk:
        message = read_message(self._pieces)
        if message is None:
            raise EOFError("nobody reads the captures any more")
        piece = _DECODER.decode(message)
        self._is_over = piece.is_end
        return piece


class Feeder:
    """Reads captures and hands them to processes, in a thread."""

    def __init__(self, sources: Sequence[Source], children: Sequence[Child]) -> None:
        """Begin; the children have been told what to do."""
        self._sources = sources
        self._children = children
        self._stopped = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Read no more; the children must have ended, as it may be writing to one."""
        self._stopped = True
        self._thread.join()

    def _run(self) -> None:
        for source in self._sources:
            try:
                for chunk in source.chunks():
                    self._write(FedChunk(source.bytes_read, source.compression, chunk))
                    if self._stopped:
                        return
                end = FedChunk(source.bytes_read, source.compression, b"", True, source.problem)
            except CaptureError as error:
                end = FedChunk(0, None, b"", True, None, [error.path, error.reason, error.hint])
            finally:
                source.close()
            self._write(end)

    def _write(self, piece: FedChunk) -> None:
        message = msgspec.msgpack.encode(piece)
        for child in self._children:
            child.write(message)
