"""Compressed message bodies: zlib streams, LZ4 and zstd frames, with bounded output.

Decompression never raises because of the data, never exceeds the limit, and returns the readable
part of damaged data with the problem. The LZ4 and zstd libraries are imported on first use.
RocketMQ: CompressorFactory, ZlibCompressor, Lz4Compressor, ZstdCompressor.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

DEFAULT_LIMIT: Final = 4 * 1024 * 1024
"""Maximum output bytes: RocketMQ's largest message body (maxMessageSize) is 4 MiB."""

ZSTD_WINDOW_LIMIT: Final = 8 * 1024 * 1024
"""Maximum window bytes of a zstd frame: enough for every level below --ultra."""

DEFAULT_LEVEL: Final = 5
"""The level that RocketMQ's producers use (rocketmq.message.compressLevel)."""

_SALVAGE_INPUT: Final = 4096
_SALVAGE_OUTPUT: Final = 65536
_ZSTD_RLE_BLOCK: Final = 1


@dataclass(frozen=True, slots=True)
class DecompressedBody:
    """A decompressed body."""

    data: bytes
    """Output up to the limit; the readable part if there is a problem."""
    truncated: bool = False
    """Whether the output exceeds the limit."""
    problem: str | None = None
    """Problem of the data, or None."""


def decompress(data: bytes, kind: str, limit: int = DEFAULT_LIMIT) -> DecompressedBody:
    """Decompress a body of a kind ("zlib", "lz4", "zstd"), up to `limit` bytes."""
    reader = _READERS.get(kind)
    if reader is None:
        return DecompressedBody(b"", problem=f"compression {kind} is not known")
    # Never 0, which zlib takes as no limit.
    output, problem = reader(bytes(data), max(limit, 0) + 1)  # one more shows that there is more
    if len(output) > limit:
        return DecompressedBody(output[: max(limit, 0)], truncated=True)
    return DecompressedBody(output, problem=problem)


def compress(data: bytes, kind: str, level: int = DEFAULT_LEVEL) -> bytes:
    """Compress `data` like a producer; raise ValueError for an unknown kind."""
    if kind == "zlib":
        return zlib.compress(data, level)
    if kind == "lz4":
        import lz4.frame

        return bytes(lz4.frame.compress(data))
    if kind == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=level).compress(data)
    raise ValueError(f"compression {kind!r} is not one of {', '.join(_READERS)}")


def _ending(finished: bool, unused: int) -> str | None:
    if not finished:
        return "the compressed data ends too soon"
    return f"{unused} bytes follow the compressed data" if unused else None


def _read_zlib(data: bytes, most: int) -> tuple[bytes, str | None]:
    machine = zlib.decompressobj()
    try:
        output = machine.decompress(data, most)
    except zlib.error as error:
        return _salvage_zlib(data, most), f"zlib data is damaged: {error}"
    return output, _ending(machine.eof, len(machine.unused_data))


def _salvage_zlib(data: bytes, most: int) -> bytes:
    """Return the output before the damage: whole slices first, then the bad slice byte by byte."""
    machine = zlib.decompressobj()
    pieces: list[bytes] = []
    room = most
    for at in range(0, len(data), _SALVAGE_INPUT):
        part = data[at : at + _SALVAGE_INPUT]
        saved = machine.copy()  # a failed call loses the output of its whole slice
        try:
            piece = machine.decompress(part, room)
        except zlib.error:
            return b"".join(pieces) + _salvage_slice(saved, part, room)
        pieces.append(piece)
        room -= len(piece)
        if room <= 0:
            break
    return b"".join(pieces)


def _salvage_slice(machine: zlib._Decompress, part: bytes, room: int) -> bytes:
    pieces: list[bytes] = []
    try:
        for at in range(len(part)):
            if room <= 0:
                break
            pieces.append(machine.decompress(part[at : at + 1], room))
            room -= len(pieces[-1])
    except zlib.error:
        pass
    return b"".join(pieces)


def _read_lz4(data: bytes, most: int) -> tuple[bytes, str | None]:
    import lz4.frame

    machine = lz4.frame.LZ4FrameDecompressor()
    try:
        output = bytes(machine.decompress(data, max_length=most))
    except (RuntimeError, ValueError, EOFError, MemoryError) as error:
        return _salvage_lz4(data, most), f"LZ4 data is damaged: {error}"
    return output, _ending(machine.eof, len(machine.unused_data or b""))


def _salvage_lz4(data: bytes, most: int) -> bytes:
    """Return the output of the blocks before the damage."""
    import lz4.frame

    machine = lz4.frame.LZ4FrameDecompressor()
    output = bytearray()
    try:
        for at in range(0, len(data), _SALVAGE_INPUT):
            piece = machine.decompress(data[at : at + _SALVAGE_INPUT], max_length=_SALVAGE_OUTPUT)
            output += piece
            # The decompressor holds back what exceeds the maximum.
            while len(piece) == _SALVAGE_OUTPUT and len(output) < most:
                piece = machine.decompress(b"", max_length=_SALVAGE_OUTPUT)
                output += piece
            if machine.eof or len(output) >= most:
                break
    except (RuntimeError, ValueError, EOFError, MemoryError):
        pass
    return bytes(output[:most])


def _read_zstd(data: bytes, most: int) -> tuple[bytes, str | None]:
    import zstandard

    # The window of a frame with a single segment is as large as its content.
    window = max(ZSTD_WINDOW_LIMIT, most)
    machine = zstandard.ZstdDecompressor(max_window_size=window)
    size = _zstd_frame_size(data)
    reader = machine.stream_reader(data[:size], read_across_frames=False)
    output = bytearray()
    try:
        while len(output) < most:
            piece = reader.read(min(_SALVAGE_OUTPUT, most - len(output)))
            if not piece:
                break
            output += piece
    except (zstandard.ZstdError, ValueError, MemoryError) as error:
        return bytes(output), f"zstd data is damaged: {error}"
    if len(output) >= most:
        return bytes(output), None
    return bytes(output), _ending(size is not None, len(data) - (size or 0))


def _zstd_frame_size(data: bytes) -> int | None:
    """Return the size of the frame at the start by its block headers, or None if it is truncated.

    The library's reader does not report truncated data, so this tells complete frames apart.
    """
    import zstandard

    try:
        at = zstandard.frame_header_size(data)
        checksum = 4 if zstandard.get_frame_parameters(data).has_checksum else 0
    except (zstandard.ZstdError, ValueError):
        return None
    last = 0
    while not last:
        header = int.from_bytes(data[at : at + 3], "little")
        if at + 3 > len(data):
            return None
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _ZSTD_RLE_BLOCK else size)
    return at + checksum if at + checksum <= len(data) else None


_READERS: Final[dict[str, Callable[[bytes, int], tuple[bytes, str | None]]]] = {
    "zlib": _read_zlib,
    "lz4": _read_lz4,
    "zstd": _read_zstd,
}
