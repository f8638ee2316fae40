"""Sources of capture bytes; `Decode` reads from a `Source`.

This module has files (also growing ones), standard input, and bytes in memory, each compressed or
not; `dissectors.live.interface` has an interface. A truncated or damaged compressed file ends the
chunks, with the reason in `problem`. Errors are raised only for a name that cannot be opened.
"""

from __future__ import annotations

import io
import os
import re
import select
import stat
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from ..foreign import natural_of
from .decompression import COMPRESSIONS, MOST_TIMES, DecompressedStream

STDIN = "-"
"""name of standard input"""
CHUNK = 96 * 1024
"""maximum bytes of a chunk: above 128 KiB malloc maps each chunk again, which costs a sixth of the
time"""
HEAD = 8
"""number of first bytes that identify the compression"""
PATIENCE_MS = 200
"""milliseconds without input after which a pipe counts as idle"""
FOLLOW_INTERVAL = 0.2
"""seconds between two reads of a growing file"""

CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar")
COMPRESSED_SUFFIXES = (".gz", ".zst", ".lz4", ".xz")
_CAPTURE_NAME = re.compile(
    rf"(?:{'|'.join(map(re.escape, CAPTURE_SUFFIXES))})(?:[-_.]?[0-9][-_.:t0-9]*)?"
    rf"(?:{'|'.join(map(re.escape, COMPRESSED_SUFFIXES))})?$"
)
"""a suffix, the number or time added by rotation, and a compression suffix"""


class CaptureError(Exception):
    """A capture named by the user cannot be read; has the file, offset, and a hint."""

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


class Source(Protocol):
    """The bytes of one capture; nothing is opened before `chunks`."""

    @property
    def name(self) -> str:
        """Name of the capture in messages and rows."""

    @property
    def compression(self) -> str | None:
        """Name of the compression; None: uncompressed, or not yet read."""

    @property
    def problem(self) -> str | None:
        """Why the bytes ended early; None if they did not."""

    @property
    def size(self) -> int | None:
        """Stored size in bytes, or None if unknown."""

    @property
    def bytes_read(self) -> int:
        """Stored bytes read so far."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of a pcap or pcapng in order; an empty chunk means idle.

        Raises CaptureError if the source cannot be opened.
        """

    def close(self) -> None:
        """Stop reading."""


class _StoredBytes:
    """The stored file, with the peeked head put back and the bytes counted."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        # Return what a pipe has at once: a full chunk may take hours to arrive.
        self._read = rest.read1 if isinstance(rest, io.BufferedReader) else rest.read
        self.count = 0

    def read(self, size: int, /) -> bytes:
        data = self._head or self._read(size)
        self._head = b""
        self.count += len(data)
        return data


class StoredSource(ABC):
    """Base of files, standard input, and bytes in memory: decompression, chunks, following."""

    def __init__(self, name: str, size: int | None, follow: bool = False) -> None:
        self.name = name
        self.size = size
        self.compression: str | None = None
        self.problem: str | None = None
        self.max_ratio = MOST_TIMES
        """maximum decompressed bytes per compressed byte"""
        self._follow = follow
        self._stored: _StoredBytes | None = None
        self._pipe: select.poll | None = None

    @property
    def bytes_read(self) -> int:
        """Stored bytes read so far."""
        return self._stored.count if self._stored is not None else 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes in order, at most `CHUNK` at a time.

        While following, and for a pipe, an empty chunk means that no new data is available. Raises
        CaptureError if the source cannot be opened.
        """
        raw = self._open()
        # whoever waits for a pipe that is still empty must be able to stop
        while self._is_idle():
            yield b""
        stream = self._stream_of(raw)
        while True:
            if self._is_idle():
                yield b""
                continue
            try:
                chunk = stream.read(CHUNK)
            except OSError as error:
                self.problem = f"the file cannot be read on: {error.strerror or error}"
                return
            if not chunk:
                if not self._follow:
                    self.problem = getattr(stream, "problem", None)
                    return
                time.sleep(FOLLOW_INTERVAL)
            yield chunk

    @abstractmethod
    def close(self) -> None:
        """Stop reading."""

    @abstractmethod
    def _open(self) -> IO[bytes]:
        """Open the stored bytes; raise CaptureError on failure."""

    def _is_idle(self) -> bool:
        """Wait briefly for bytes of a pipe, and return whether none arrived."""
        if self._pipe is None:
            return False
        # A compressed stream may have output buffered, and at first the head is.
        if self._stored is not None and (self.compression is not None or self.bytes_read <= HEAD):
            return False
        return not self._pipe.poll(PATIENCE_MS)

    def _stream_of(self, raw: IO[bytes]) -> DecompressedStream | _StoredBytes:
        try:
            head = _read_exactly(raw, HEAD, self._follow)
        except OSError as error:
            raise CaptureError(self.name, error.strerror or str(error)) from None
        self._stored = _StoredBytes(head, raw)
        for which, (magic, name, _, _) in enumerate(COMPRESSIONS):
            if head.startswith(magic):
                self.compression = name
                if self._follow:
                    self.close()
                    raise CaptureError(
                        self.name, f"a {name} file cannot be followed", hint="decompress it first"
                    )
                return DecompressedStream(self._stored, which, self.max_ratio)
        return self._stored


class FileSource(StoredSource):
    """A capture file; with `follow`, it is still growing and the reader waits at its end."""

    def __init__(self, name: str, *, follow: bool = False) -> None:
        super().__init__(name, _size_of(name), follow)
        self._file: IO[bytes] | None = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> IO[bytes]:
        try:
            # closed by `close`
            self._file = open(self.name, "rb", 0, opener=_opened)  # noqa: SIM115
        except OSError as error:
            raise CaptureError(self.name, error.strerror or str(error)) from None
        self._pipe = _pipe_of(self._file)
        return self._file


class StandardInput(StoredSource):
    """Standard input, which stays open; a pipe reports when it is idle."""

    def __init__(self, *, follow: bool = False) -> None:
        super().__init__(STDIN, None, follow)

    def close(self) -> None:
        """Do nothing: standard input belongs to the process."""

    def _open(self) -> IO[bytes]:
        self._pipe = _pipe_of(sys.stdin.buffer)
        return sys.stdin.buffer


class BytesSource(StoredSource):
    """A capture in memory, compressed or not."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(name, len(data))
        self._data = data

    def close(self) -> None:
        """Do nothing: no file is open."""

    def _open(self) -> IO[bytes]:
        return io.BytesIO(self._data)


def _size_of(name: str) -> int | None:
    """Return the size of a regular file in bytes, or None."""
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _opened(name: str, flags: int) -> int:
    """Open a file; a named pipe that nobody writes to yet does not block."""
    number = os.open(name, flags | os.O_NONBLOCK)
    os.set_blocking(number, True)
    return number


def _pipe_of(stream: IO[bytes]) -> select.poll | None:
    """Return a poll object for a pipe, or None for other streams."""
    try:
        number = stream.fileno()
        # A regular file is always readable to poll, even at its end.
        if not stat.S_ISFIFO(os.fstat(number).st_mode):
            return None
    except (OSError, ValueError):
        return None
    poll = select.poll()
    poll.register(number, select.POLLIN | select.POLLHUP)
    return poll


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


def source_of(name: str, *, follow: bool = False) -> StoredSource:
    """Return the file of this name, or standard input for `-`."""
    return StandardInput(follow=follow) if name == STDIN else FileSource(name, follow=follow)


def sources_of(sources: Sequence[str | Source], *, follow: bool = False) -> list[Source]:
    """Return the sources in order, with names expanded by `expand_sources`.

    `follow`: the last one is still growing. Raises CaptureError like `expand_sources`.
    """
    result: list[Source] = []
    for source in sources:
        if isinstance(source, str):
            result.extend(source_of(name) for name in expand_sources([source]))
        else:
            result.append(source)
    # Only the last capture can still grow: those before it are followed by others.
    if follow and sources and isinstance(sources[-1], str):
        result[-1] = source_of(result[-1].name, follow=True)
    return result


def expand_sources(names: Sequence[str]) -> list[str]:
    """Return the capture files for the names; a folder stands for its captures in name order.

    Raises `CaptureError` for a missing name and for a folder without captures.
    """
    paths: list[str] = []
    for name in names:
        path = Path(name)
        if name == STDIN or not path.is_dir():
            if name != STDIN and not path.exists():
                raise CaptureError(name, "no such file")
            paths.append(name)
            continue
        entries = (str(entry) for entry in path.iterdir() if is_capture_name(entry))
        captures = sorted(entries, key=natural_order)
        if not captures:
            suffixes = ", ".join(CAPTURE_SUFFIXES)
            raise CaptureError(name, "no capture in this folder", hint=f"looked for {suffixes}")
        paths.extend(captures)
    return paths


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts `x.pcap2` before `x.pcap10`: numbers without leading zeros."""
    parts = re.split(r"(\d+)", name)
    numbers = map(natural_of, parts)
    return [
        (-1, part) if number is None else (number, "")
        for part, number in zip(parts, numbers, strict=True)
    ]


def is_compressed(name: str) -> bool:
    """Return whether a file begins as a compressed one; False if it cannot be read."""
    try:
        with Path(name).open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return any(head.startswith(magic) for magic, *_ in COMPRESSIONS)


def is_capture_name(path: Path) -> bool:
    """Return whether a path is a capture file: `x.pcap`, `x.pcap3`, `x.pcap.1.gz`."""
    return has_capture_name(path.name) and path.is_file()


def has_capture_name(name: str) -> bool:
    """Return whether a file name is that of a capture."""
    return _CAPTURE_NAME.search(name.lower()) is not None


def size_of(sources: Sequence[Source]) -> int | None:
    """Return the total size of all captures in bytes, or None if one is unknown."""
    total = 0
    for source in sources:
        if source.size is None:
            return None
        total += source.size
    return total
