"""The bytes of a capture, wherever they come from: `Source` is what `Decode` reads.

Here are files (also those still being written), standard input and bytes in memory, each
compressed or not; `dissectors.live.interface` has an interface. Chunks come in order and are never
over `CHUNK` bytes, so memory does not depend on the file. A compressed file that ends early or is
damaged ends the chunks; the reason is then in `problem`. Errors are raised only for what the user
did: a name that cannot be opened.
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
"""the name of standard input"""
CHUNK = 96 * 1024
"""bytes of one read: over 128 KiB malloc maps each chunk anew, which costs a sixth of the time"""
FIRST_READ = 4096
"""bytes of the first reads of a file: without it they depend on the file system"""
HEAD = 8
"""first bytes, that tell how a file is compressed"""
PATIENCE_MS = 200
"""milliseconds without a byte on standard input, until it is said that there is nothing new"""
FOLLOW_INTERVAL = 0.2
"""seconds between two looks at a file that is still being written"""

CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", ".ntar")
COMPRESSED_SUFFIXES = (".gz", ".zst", ".lz4", ".xz")
_CAPTURE_NAME = re.compile(
    rf"(?:{'|'.join(map(re.escape, CAPTURE_SUFFIXES))})(?:[-_.]?[0-9][-_.:t0-9]*)?"
    rf"(?:{'|'.join(map(re.escape, COMPRESSED_SUFFIXES))})?$"
)
"""a suffix, the number or the time that rotation adds, the suffix of a compression"""


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


class Source(Protocol):
    """The bytes of one capture, from wherever; nothing is opened before `chunks`."""

    @property
    def name(self) -> str:
        """What the user and the rows call the capture."""

    @property
    def compression(self) -> str | None:
        """Name of the compression, told by the first bytes; None: none, or nothing read yet."""

    @property
    def problem(self) -> str | None:
        """Why the bytes ended early; None: they did not, or have not ended."""

    @property
    def size(self) -> int | None:
        """Bytes as they are stored; None where that is unknown."""

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, as they are stored."""

    def chunks(self) -> Iterator[bytes]:
        """Give the bytes of a pcap or pcapng in order; an empty chunk: nothing new for a while.

        Raises CaptureError where the source cannot be opened.
        """

    def close(self) -> None:
        """Read no more."""


class _StoredBytes:
    """The file as it is stored: what was looked at put back in front, what passes counted."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        # What a pipe has is given at once: a whole chunk may take hours to come.
        self._read = rest.read1 if isinstance(rest, io.BufferedReader) else rest.read
        self.count = 0

    def read(self, size: int, /) -> bytes:
        data = self._head or self._read(size)
        self._head = b""
        self.count += len(data)
        return data


class StoredSource(ABC):
    """What files, standard input and bytes in memory share: decompression, chunks, following."""

    def __init__(self, name: str, size: int | None, follow: bool = False) -> None:
        self.name = name
        self.size = size
        self.compression: str | None = None
        self.problem: str | None = None
        self.max_ratio = MOST_TIMES
        """bytes that each compressed byte may become"""
        self._follow = follow
        self._stored: _StoredBytes | None = None

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, as they are stored."""
        return self._stored.count if self._stored is not None else 0

    def chunks(self) -> Iterator[bytes]:
        """Give the decompressed bytes in order, at most `CHUNK` at a time.

        While following, and of standard input that is a pipe, an empty chunk means that there is
        nothing new yet. Raises CaptureError where the source cannot be opened.
        """
        stream = self._open_stream()
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
        """Read no more."""

    @abstractmethod
    def _open(self) -> IO[bytes]:
        """Return the bytes as they are stored; raise CaptureError where that cannot be."""

    def _is_idle(self) -> bool:
        """Wait a little for bytes, and return whether none came."""
        return False

    def _open_stream(self) -> DecompressedStream | _StoredBytes:
        raw = self._open()
        head = _read_exactly(raw, HEAD, self._follow)
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
    """A capture file; `follow`: it is still being written, so its end is waited at."""

    def __init__(self, name: str, *, follow: bool = False) -> None:
        super().__init__(name, _size_of(name), follow)
        self._file: IO[bytes] | None = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> IO[bytes]:
        try:
            self._file = Path(self.name).open("rb", FIRST_READ)  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise CaptureError(self.name, error.strerror or str(error)) from None
        return self._file


class StandardInput(StoredSource):
    """Standard input, which stays open; of a pipe it is said when there is nothing new."""

    def __init__(self, *, follow: bool = False) -> None:
        super().__init__(STDIN, None, follow)
        self._pipe: select.poll | None = None

    def close(self) -> None:
        """Leave it open: it is not ours."""

    def _open(self) -> IO[bytes]:
        self._pipe = _pipe_of(sys.stdin.buffer)
        return sys.stdin.buffer

    def _is_idle(self) -> bool:
        if self._pipe is None or self.compression is not None or self.bytes_read <= HEAD:
            return False
        return not self._pipe.poll(PATIENCE_MS)


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
    """Return the bytes of a regular file; None: it is none, or not there."""
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _pipe_of(stream: IO[bytes]) -> select.poll | None:
    """Return what tells whether a pipe has more; None: the stream is not a pipe."""
    try:
        number = stream.fileno()
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
    """Return what is read, in order: names stand for what `expand_sources` finds.

    `follow`: the last one is still being written. Raises CaptureError as `expand_sources`.
    """
    found: list[Source] = []
    for one in sources:
        if isinstance(one, str):
            found.extend(source_of(name) for name in expand_sources([one]))
        else:
            found.append(one)
    if follow and sources and isinstance(sources[-1], str):
        found[-1] = source_of(found[-1].name, follow=True)
    return found


def expand_sources(names: Sequence[str]) -> list[str]:
    """Return the capture files that the names stand for: a folder gives its captures in name order.

    Raises `CaptureError` for a name that does not exist and for a folder without captures.
    """
    found: list[str] = []
    for name in names:
        path = Path(name)
        if name == STDIN or not path.is_dir():
            if name != STDIN and not path.exists():
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
    """Return a key that sorts `x.pcap2` before `x.pcap10`: numbers without leading zeros."""
    parts = re.split(r"(\d+)", name)
    numbers = map(natural_of, parts)
    return [
        (-1, part) if number is None else (number, "")
        for part, number in zip(parts, numbers, strict=True)
    ]


def is_compressed(name: str) -> bool:
    """Return whether a file begins as a compressed one does; not where it cannot be read."""
    try:
        with Path(name).open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return any(head.startswith(magic) for magic, *_ in COMPRESSIONS)


def is_capture_name(path: Path) -> bool:
    """Return whether a file of a folder is a capture: `x.pcap`, `x.pcap3`, `x.pcap.1.gz`."""
    return _CAPTURE_NAME.search(path.name.lower()) is not None and path.is_file()


def size_of(sources: Sequence[Source]) -> int | None:
    """Return the bytes of all captures together, None where one has no size."""
    total = 0
    for source in sources:
        if source.size is None:
            return None
        total += source.size
    return total
