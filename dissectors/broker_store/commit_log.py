"""Read commit log files: records in order, and the damage between them.

A file is named after the log offset of its first byte and has a fixed size. Its records follow each
other without gaps; a filler ends it, or zeros if nothing was written yet. A record contains its own
log offset, so a search after damage finds the next record with certainty. RocketMQ: CommitLog,
MappedFileQueue.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ..remoting.messages.message import StoredMessage
from ..remoting.messages.record_layout import (
    FIELD_ENDS,
    FIELD_STARTS,
    MAGIC_FILLER,
    MAGIC_V2,
    MIN_FILLER_SIZE,
    MIN_RECORD_SIZE,
    RECORD_MAGICS,
    SIZE_AND_MAGIC,
    SYS_FLAG,
    SYS_FLAG_AT,
)
from ..remoting.messages.records import decode_messages
from ..replication.layouts import RECORD_MAGIC
from ..tcp.source import CaptureError
from .store_files import OFFSET_DIGITS, base_of, folder_in, is_link, numbered_files, open_regular

LOG_FOLDER: Final = "commitlog"
MAX_RECORD: Final = 64 << 20
"""bytes; brokers accept messages of up to 4 MiB by default"""
_WINDOW: Final = 1 << 20
"""bytes read at a time"""
_PART: Final = 16 << 10
"""bytes decoded of a larger record that is cut or damaged: others may begin in it, and each would
cost its full size again
"""
_INTEGER: Final = struct.Struct(">i")
_LENGTH: Final = struct.Struct(">H")
_SHORT_LENGTH: Final = struct.Struct(">B")
_MAGIC_AT: Final = FIELD_STARTS["magic"]
_OFFSET_AT: Final = FIELD_STARTS["physical_offset"]


class LogEntry(NamedTuple):
    """An entry of a commit log file."""

    offset: int
    """offset in the file"""
    message: StoredMessage | None
    """the record, or None if there is only a problem"""
    problem: str | None
    """the problem, or None"""


def log_files(folder: str) -> list[str]:
    """Return the commit log files of a store or a commit log folder, in order.

    Raise CaptureError if there are none.
    """
    root = Path(folder)
    if not root.is_dir():
        raise CaptureError(
            folder,
            "no such folder" if not root.exists() else "not a folder",
            hint="name a copy of a broker's store folder",
        )
    inside = root / LOG_FOLDER
    if is_link(inside):
        raise CaptureError(
            str(inside), "a symbolic link, which is not followed", hint="copy what it leads to"
        )
    place = folder_in(root, LOG_FOLDER) or root
    files = numbered_files(place, OFFSET_DIGITS)
    if not files:
        replicated = next(root.glob("dledger-*"), None)
        reason = "no commit log files" if replicated is None else "the log of a DLedger group"
        hint = (
            f"name the folder that contains {LOG_FOLDER}/"
            if replicated is None
            else "only commit logs of classic and controller mode can be read"
        )
        raise CaptureError(str(place), reason, hint=hint)
    return files


def entries_of(path: str) -> Iterator[LogEntry]:
    """Yield the records and problems of a file, in order.

    The rest of a file after its filler, or after zeros, is not read. Raise CaptureError if the file
    cannot be read.
    """
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            yield from _Reader(file.fileno(), base_of(path)).entries()
    except OSError as error:
        raise CaptureError(path, error.strerror or str(error)) from error


class _Reader:
    """A file, with a window of it in memory."""

    def __init__(self, file: int, base: int) -> None:
        """Start at the beginning of the file; `base` is its log offset."""
        self._file = file
        self._base = base
        self._size = os.fstat(file).st_size
        self._at = 0
        """file offset of the window"""
        self._window = b""

    def entries(self) -> Iterator[LogEntry]:
        at = 0
        while self._size - at >= MIN_FILLER_SIZE:
            size, magic = SIZE_AND_MAGIC.unpack(self._bytes(at, MIN_FILLER_SIZE))
            if (size == 0 and magic == 0) or (magic == MAGIC_FILLER and size >= MIN_FILLER_SIZE):
                return
            step, entry = self._entry(at, size, magic)
            yield entry
            at += step

    def _entry(self, at: int, size: int, magic: int) -> tuple[int, LogEntry]:
        """Return the entry at a place, and its bytes."""
        if magic in RECORD_MAGICS and MIN_RECORD_SIZE <= size <= MAX_RECORD:
            count = min(size, self._size - at)
            if count > _PART and not self._is_whole(at, size, magic):
                count = _PART
            decoded = decode_messages(self._bytes(at, count))
            (message,) = decoded.messages
            # A record elsewhere than at its own offset is a payload that looks like one.
            if message.physical_offset == self._base + at:
                if decoded.problems:  # its size may be damaged
                    step = self._next_record(at + 1) - at
                    return step, LogEntry(at, message, decoded.problems[0][1])
                wrong = message.crc_ok is False
                problem = "the body does not match its CRC" if wrong else None
                return size, LogEntry(at, message, problem)
        step = self._next_record(at + 1) - at
        return step, LogEntry(at, None, f"{step} bytes are not a record")

    def _is_whole(self, at: int, size: int, magic: int) -> bool:
        """Return whether the lengths of a record's parts add up to its size and are present."""
        if at + size > self._size:
            return False
        (flags,) = SYS_FLAG.unpack(self._bytes(at + SYS_FLAG_AT, SYS_FLAG.size))
        body_at = FIELD_ENDS[flags >> 4 & 3][-1]
        length = _INTEGER.unpack(self._bytes(at + body_at - _INTEGER.size, _INTEGER.size))[0]
        topic = _LENGTH if magic == MAGIC_V2 else _SHORT_LENGTH
        topic_at = body_at + length
        if not body_at <= topic_at <= size - topic.size - _LENGTH.size:
            return False
        properties_at = (
            topic_at + topic.size + topic.unpack(self._far(at + topic_at, topic.size))[0]
        )
        if properties_at > size - _LENGTH.size:
            return False
        (properties,) = _LENGTH.unpack(self._far(at + properties_at, _LENGTH.size))
        return bool(properties_at + _LENGTH.size + properties == size)

    def _far(self, at: int, count: int) -> bytes:
        """Return bytes anywhere in the file, without moving the window; fewer at its end."""
        data = os.pread(self._file, count, at)
        if len(data) < min(count, self._size - at):
            raise OSError("the file became shorter while it was read")
        return data

    def _next_record(self, at: int) -> int:
        """Return the place of the next record with its own offset, or the end of the file."""
        tail = _OFFSET_AT + 8
        while at < self._size:
            data = self._bytes(at, _PART)  # not a whole window, which each call would read again
            for match in RECORD_MAGIC.finditer(data):
                start = match.start() - _MAGIC_AT
                # A record says where in the log it is; other bytes only look like one.
                spelled = data[start + _OFFSET_AT : start + tail] if start >= 0 else b""
                if int.from_bytes(spelled, "big") == self._base + at + start and len(spelled) == 8:
                    return at + start
            if at + len(data) >= self._size:
                break
            at += len(data) - tail  # a head across two windows is found in the next
        return self._size

    def _bytes(self, at: int, count: int) -> bytes:
        """Return bytes of the file; fewer at its end."""
        start = at - self._at
        if start < 0 or start + count > len(self._window):
            self._window = self._far(at, max(count, _WINDOW))
            self._at, start = at, 0
        return self._window[start : start + count]
