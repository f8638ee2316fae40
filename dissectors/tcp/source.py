"""The bytes of a capture, wherever they come from: file, standard input, compressed, still growing.

A `ByteSource` gives chunks in order and never more than `CHUNK` bytes at a time, so memory does
not depend on the file. A compressed file that ends early or is damaged ends the chunks; the reason
is then in `problem`. Errors are raised only for what the user did: a name that cannot be opened.
"""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol, cast

CHUNK = 256 * 1024
"""bytes of one read: larger chunks fall out of the processor's cache and are slower"""
FOLLOW_INTERVAL = 0.2
"""seconds between two looks at a file that is still being written"""
MAX_ZSTD_WINDOW = 1 << 27
"""largest zstd window accepted, bytes; what `zstd --long=27` needs, and no more memory than that"""

CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar")
COMPRESSED_SUFFIXES = (".gz", ".zst", ".lz4", ".xz")


class CaptureError(Exception):
    """A capture that the user named cannot be read; says the file, the offset and the way out."""

    def __init__(self, path: str, reason: str, offset: int | None = None, hint: str = "") -> None:
        super().__init__(path, reason, offset, hint)
        self.path = path
        self.reason = reason
        self.offset = offset
        self.hint = hint

    def __str__(self) -> str:
        where = self.path if self.offset is None else f"{self.path}, offset {self.offset}"
        hint = f"\n  {self.hint}" if self.hint else ""
        return f"{where}: {self.reason}{hint}"


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class _StoredBytes(io.RawIOBase):
    """The file as it is stored: what was looked at put back in front, what passes counted."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest
        self.count = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if self._head:
            size = len(self._head) if size < 0 else size
            data, self._head = self._head[:size], self._head[size:]
        else:
            data = self._rest.read(size)
        self.count += len(data)
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _open_gzip(raw: _StoredBytes) -> _Readable:
    import gzip

    return gzip.GzipFile(fileobj=raw, mode="rb")


def _open_zstd(raw: _StoredBytes) -> _Readable:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
    return decompressor.stream_reader(cast(IO[bytes], raw), read_across_frames=True)


def _open_lz4(raw: _StoredBytes) -> _Readable:
    import lz4.frame

    opened: _Readable = lz4.frame.LZ4FrameFile(raw, mode="rb")
    return opened


def _open_xz(raw: _StoredBytes) -> _Readable:
    import lzma

    return lzma.LZMAFile(cast(IO[bytes], raw), mode="rb")


COMPRESSIONS: tuple[tuple[bytes, str, Callable[[_StoredBytes], _Readable]], ...] = (
    (b"\x1f\x8b", "gzip", _open_gzip),
    (b"\x28\xb5\x2f\xfd", "zstd", _open_zstd),
    (b"\x04\x22\x4d\x18", "lz4", _open_lz4),
    (b"\xfd7zXZ\x00", "xz", _open_xz),
)
"""first bytes, name and opener of each compression that is read"""


class ByteSource:
    """The decompressed bytes of one capture file, in chunks.

    `name` is what the user called it; `compression` is the name found by its first bytes, or
    None. `problem` says after the end why the bytes stopped early, or is None. `bytes_read` counts
    the bytes of the file itself (compressed), `size` is its length or None where unknown.
    """

    def __init__(self, name: str, *, follow: bool = False) -> None:
        self.name = name
        self.compression: str | None = None
        self.problem: str | None = None
        self.size: int | None = None
        self._follow = follow
        self._raw = self._open_raw()
        self._stream = self._open_stream()

    @property
    def bytes_read(self) -> int:
        """Bytes consumed of the file as it is stored."""
        return self._stored.count

    def _open_raw(self) -> IO[bytes]:
        if self.name == "-":
            return sys.stdin.buffer
        path = Path(self.name)
        try:
            raw = path.open("rb")
            self.size = path.stat().st_size if path.is_file() else None
        except OSError as error:
            raise CaptureError(self.name, error.strerror or str(error)) from None
        return raw

    def _open_stream(self) -> _Readable:
        head = _read_exactly(self._raw, 8, self._follow)
        self._stored = _StoredBytes(head, self._raw)
        for magic, name, opener in COMPRESSIONS:
            if head.startswith(magic):
                self.compression = name
                if self._follow:
                    raise CaptureError(
                        self.name, f"a {name} file cannot be followed", hint="decompress it first"
                    )
                return opener(self._stored)
        return self._stored

    def chunks(self) -> Iterator[bytes]:
        """Chunks in order. While following, an empty chunk means that there is nothing new yet."""
        while True:
            try:
                chunk = self._stream.read(CHUNK)
            except EOFError:
                self.problem = f"the {self.compression} stream ends early"
                return
            except Exception as error:  # each library has errors of its own, imported when used
                self.problem = f"the {self.compression or 'byte'} stream is damaged: {error}"
                return
            if not chunk:
                if not self._follow:
                    return
                time.sleep(FOLLOW_INTERVAL)
            yield chunk

    def close(self) -> None:
        """Closes the file; standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()


def _read_exactly(raw: IO[bytes], size: int, follow: bool) -> bytes:
    head = b""
    while len(head) < size:
        more = raw.read(size - len(head))
        if not more:
            if not follow:
                break
            time.sleep(FOLLOW_INTERVAL)
        head += more
    return head


def expand_sources(names: Sequence[str]) -> list[str]:
    """The capture files that the names stand for: a folder gives its captures in name order.

    Raises `CaptureError` for a name that does not exist and for a folder without captures.
    """
    found: list[str] = []
    for name in names:
        path = Path(name)
        if name == "-" or not path.is_dir():
            if name != "-" and not path.exists():
                raise CaptureError(name, "no such file")
            found.append(name)
            continue
        entries = (str(entry) for entry in path.iterdir() if is_capture_name(entry))
        inside = sorted(entries, key=_natural_order)
        if not inside:
            suffixes = ", ".join(CAPTURE_SUFFIXES)
            raise CaptureError(name, "no capture in this folder", hint=f"looked for {suffixes}")
        found.extend(inside)
    return found


def _natural_order(name: str) -> list[tuple[int, str]]:
    """`x.pcap2` before `x.pcap10`: rotated captures are numbered without leading zeros."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def is_capture_name(path: Path) -> bool:
    """Whether a file of a folder is taken for a capture: by suffix, also `x.pcap3`, `x.pcap.gz`."""
    suffixes = [
        suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSED_SUFFIXES
    ]
    return path.is_file() and any(
        suffix.rstrip("0123456789").startswith(CAPTURE_SUFFIXES) for suffix in suffixes
    )
