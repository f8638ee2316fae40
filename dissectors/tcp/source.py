"""The bytes of a capture, wherever they come from: file, standard input, compressed, still growing.

A `ByteSource` gives chunks in order and never more than `CHUNK` bytes at a time, so memory does
not depend on the file. A compressed file that ends early or is damaged ends the chunks; the reason
is then in `problem`. Errors are raised only for what the user did: a name that cannot be opened.
"""

from __future__ import annotations

import io
import os
import re
import select
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from .decompression import COMPRESSIONS, Decompressed

CHUNK = 96 * 1024
"""bytes of one read: over 128 KiB malloc maps each chunk anew, which costs a sixth of the time"""
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

    def _open_stream(self) -> Decompressed | _StoredBytes:
        head = _read_exactly(self._raw, HEAD, self._follow)
        self._stored = _StoredBytes(head, self._raw)
        for which, (magic, name, _, _) in enumerate(COMPRESSIONS):
            if head.startswith(magic):
                self.compression = name
                if self._follow:
                    self.close()
                    raise CaptureError(
                        self.name, f"a {name} file cannot be followed", hint="decompress it first"
                    )
                return Decompressed(self._stored, which)
        return self._stored

    def chunks(self) -> Iterator[bytes]:
        """Chunks in order.

        While following, and of standard input that is a pipe, an empty chunk means that there is
        nothing new yet.
        """
        waits = self._is_pipe()
        while True:
            if waits is not None and self.bytes_read > HEAD and not waits.poll(PATIENCE_MS):
                yield b""
                continue
            try:
                chunk = self._stream.read(CHUNK)
            except OSError as error:
                self.problem = f"the file cannot be read on: {error.strerror or error}"
                return
            if not chunk:
                if not self._follow:
                    self.problem = getattr(self._stream, "problem", None)
                    return
                time.sleep(FOLLOW_INTERVAL)
            yield chunk

    def _is_pipe(self) -> select.poll | None:
        """What tells whether a pipe on standard input has more; None: it is none, or compressed."""
        if self.name != "-" or not isinstance(self._stream, _StoredBytes):
            return None
        try:
            number = sys.stdin.buffer.fileno()
            if not stat.S_ISFIFO(os.fstat(number).st_mode):
                return None
        except (OSError, ValueError):
            return None
        poll = select.poll()
        poll.register(number, select.POLLIN | select.POLLHUP)
        return poll

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
    """Whether a file of a folder is taken for a capture: `x.pcap`, `x.pcap3`, `x.pcap.1.gz`."""
    return _CAPTURE_NAME.search(path.name.lower()) is not None and path.is_file()
