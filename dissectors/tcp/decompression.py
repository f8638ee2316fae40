"""Streaming decompression of gzip, zstd, lz4, and xz, with any number of concatenated streams.

If a stream is truncated or damaged, everything before that point is returned, and the reason is in
`problem`. RFC 1952 (gzip), RFC 8878 (zstd), the LZ4 frame format, the .xz file format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ..budget import FREE_BYTES

READ = 64 * 1024
"""compressed bytes read at a time"""
MAX_ZSTD_WINDOW = 1 << 27
"""largest accepted zstd window, bytes; as needed by `zstd --long=27`"""
MAX_XZ_MEMORY = 1 << 28
"""memory limit of one xz stream, bytes; `xz -9` needs a quarter of it"""
MOST_TIMES: Final = 256
"""maximum expansion ratio, besides `FREE_BYTES`: captures compress to a tenth, and those of one
message sent repeatedly to a hundredth; zstd reaches 32,768"""


class Readable(Protocol):
    """Source of compressed bytes."""

    def read(self, size: int, /) -> bytes: ...


class Machine(Protocol):
    """Decompressor of one stream, with the interface of Python's own decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes: ...


class _Gzip:
    """Adapter for zlib, which reports the need for input differently."""

    def __init__(self) -> None:
        import zlib

        self._inflate = zlib.decompressobj(wbits=31)  # a gzip header, nothing else
        self._full = False

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._inflate.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        output = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        # Input may be used up while output is still waiting inside zlib.
        self._full = len(output) >= max_length
        return output


class _Zstd:
    """Adapter for zstandard, which returns all output at once: the excess is buffered here."""

    def __init__(self) -> None:
        import zstandard

        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
        self._machine = decompressor.decompressobj()
        self._output = b""
        self._at = 0

    @property
    def eof(self) -> bool:
        return self._machine.eof and self.needs_input

    @property
    def needs_input(self) -> bool:
        return self._at >= len(self._output)

    @property
    def unused_data(self) -> bytes:
        return self._machine.unused_data

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        if self.needs_input:
            self._output = self._machine.decompress(data)
            self._at = 0
        start = self._at
        self._at = min(start + max_length, len(self._output))
        return self._output[start : self._at]


def _lz4() -> Machine:
    import lz4.frame

    machine: Machine = lz4.frame.LZ4FrameDecompressor()
    return machine


def _xz() -> Machine:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)


COMPRESSIONS: tuple[tuple[bytes, str, Callable[[], Machine], int], ...] = (
    (b"\x1f\x8b", "gzip", _Gzip, 4096),
    (b"\x28\xb5\x2f\xfd", "zstd", _Zstd, 1024),
    (b"\x04\x22\x4d\x18", "lz4", _lz4, 4096),
    (b"\xfd7zXZ\x00", "xz", _xz, 4096),
)
"""magic bytes, name, decompressor, and input size per call of each supported compression; output of
a damaged input block is lost, and for zstd, where it may be 32 MiB, it is buffered"""


class DecompressedStream:
    """Decompressed bytes of a source; `problem` is set at the end if they ended early."""

    def __init__(self, stored: Readable, which: int, most_times: int = MOST_TIMES) -> None:
        """`most_times` limits the expansion ratio, besides `FREE_BYTES`."""
        self._magic, self.name, self._new, self._slice = COMPRESSIONS[which]
        self.problem: str | None = None
        self._stored = stored
        self._most_times = most_times
        self._room = FREE_BYTES
        self._machine = self._new()
        self._input = b""
        self._at = 0
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        parts: list[bytes] = []
        while size > 0 and not self._ended:
            try:
                part = self._next(size)
            except Exception as error:  # each library has its own errors, imported on use
                self._end(f"the {self.name} stream is damaged: {error}")
                break
            if part:  # an empty stream adds nothing
                parts.append(part)
                size -= len(part)
                self._room -= len(part)
                if self._room < 0:  # a few bytes can expand to very many: a decompression bomb
                    self._end(
                        f"the {self.name} stream becomes more than {self._most_times} times its"
                        " size; decompress it first, or raise --max-ratio"
                    )
        return b"".join(parts)

    def _end(self, problem: str | None) -> None:
        self.problem = problem
        self._ended = True

    def _next(self, size: int) -> bytes:
        machine = self._machine
        if machine.eof:
            self._next_stream()
            return b""
        if not machine.needs_input:
            return machine.decompress(b"", size)
        if not self._fill(1):
            self._end(f"the {self.name} stream ends early")
            return b""
        data = self._input[self._at : self._at + self._slice]
        self._at += len(data)
        return machine.decompress(data, size)

    def _fill(self, need: int) -> bool:
        """Fill the buffer to `need` bytes; return False at the end of the input."""
        while len(self._input) - self._at < need:
            more = self._stored.read(READ)
            if not more:
                return False
            self._room += self._most_times * len(more)
            self._input = self._input[self._at :] + more
            self._at = 0
        return True

    def _next_stream(self) -> None:
        """Continue after the end of a stream: with the next stream, or with zero padding.

        gzip files from tapes, and xz files as their format allows, are padded with zeros.
        """
        self._at -= len(self._machine.unused_data or b"")  # unused end of the last input
        while self._fill(1) and not self._input[self._at]:
            rest = self._input[self._at :].lstrip(b"\0")
            self._at = len(self._input) - len(rest)
        if not self._fill(1):
            self._end(None)
        elif self._fill(len(self._magic)) and self._input.startswith(self._magic, self._at):
            self._machine = self._new()
        else:
            self._end(f"what follows the {self.name} stream is not {self.name}")
