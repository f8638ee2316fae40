"""A store folder: its records in order, and the evidence of its other files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from ..remoting.messages.batch import is_inner_batch
from ..remoting.messages.message import StoredMessage
from ..tcp.source import CaptureError
from .commit_log import LOG_FOLDER, LogEntry, entries_of, log_files
from .group_offsets import GroupOffset, offsets_in
from .half_messages import StoredHalfEnd, StoredHalves
from .indexes import INDEX_FOLDER, QUEUE_FOLDER, ROCKSDB_MARK, ConsumeQueues, KeyIndex
from .store_files import base_of, folder_in

_ROCKSDB_QUEUES: Final = "consumequeue_rocksdb"
IN_QUEUE: Final = "in its consume queue"
NOT_IN_QUEUE: Final = "not in its consume queue: consumers do not get it"
NOT_IN_INDEX: Final = "not in the index: queries by key do not find it"


@dataclass(slots=True)
class StoreRecord:
    """An entry of the commit log."""

    file: int
    """number of the file"""
    entry: LogEntry
    ends: Sequence[StoredHalfEnd] = ()
    """half messages that this record ends"""
    after_gap: bool = False
    """bytes of the log before it are missing or damaged"""


@dataclass(slots=True)
class StoreFolder:
    """A copy of a broker store, or only its commit log."""

    folder: str
    """as named by the user"""
    files: list[str]
    """commit log files, in order"""
    queues: ConsumeQueues | None = None
    """None if the copy has no readable queues"""
    index: KeyIndex | None = None
    """None if the copy has no readable index"""
    offsets: list[GroupOffset] = field(default_factory=list)
    """group offsets"""
    notes: list[str] = field(default_factory=list)
    """unreadable parts of the copy, one sentence each"""

    def records(self) -> Iterator[StoreRecord]:
        """Yield the entries of the log in order; raise CaptureError for an unreadable file.

        Bytes that are not records are included.
        """
        halves = StoredHalves()
        gap = False
        for number, path in enumerate(self.files):
            if number and base_of(path) != _end_of(self.files[number - 1]):
                gap = True
                halves.miss()
            for entry in entries_of(path):
                if entry.problem is not None:
                    halves.miss()
                ends = [] if entry.message is None else list(halves.take(entry.message))
                yield StoreRecord(number, entry, ends, gap)
                gap = entry.problem is not None

    def visible(self, message: StoredMessage) -> bool | None:
        """Return whether the queue of a record refers to it; None if unknown."""
        if self.queues is None or is_inner_batch(message):
            return None
        place = message.topic, message.queue_id, message.queue_offset
        return self.queues.has(*place, message.physical_offset)

    def indexed(self, message: StoredMessage) -> bool | None:
        """Return whether the index maps the first key of a record to it; None if it need not."""
        key = message.unique_key or next(iter(message.keys), None)
        if self.index is None or key is None:
            return None
        return self.index.has(message.topic, key, message.physical_offset)

    def remark_of(self, message: StoredMessage) -> str | None:
        """Return remarks of queues and index on a record, or None."""
        visible, indexed = self.visible(message), self.indexed(message)
        remarks = [] if visible is None else [IN_QUEUE if visible else NOT_IN_QUEUE]
        if indexed is False:
            remarks.append(NOT_IN_INDEX)
        return "; ".join(remarks) or None


def _end_of(path: str) -> int:
    """Return the log offset at which the next log file begins.

    Raise CaptureError if the file cannot be read.
    """
    try:
        return base_of(path) + os.stat(path).st_size
    except OSError as error:  # a running broker deletes old files
        raise CaptureError(path, error.strerror or str(error)) from error


def store_in(folder: str) -> StoreFolder:
    """Return the store in a folder, or in its parent if it is a commit log folder.

    Raise CaptureError for a folder without a commit log, or with a file that cannot be read.
    """
    store = StoreFolder(folder, log_files(folder))
    store.notes += [
        f"bytes of the commit log are missing between {before} and {after}"
        for before, after in pairwise(store.files)
        if base_of(after) != _end_of(before)
    ]
    root = Path(folder)
    if folder_in(root, LOG_FOLDER) is None:
        # absolute, because the path may be `.`, which has no name.
        if root.absolute().name != LOG_FOLDER:
            return store
        root = root.absolute().parent
    if folder_in(root, QUEUE_FOLDER) is not None:
        store.queues = ConsumeQueues(root)
    for name in (QUEUE_FOLDER, _ROCKSDB_QUEUES):
        inside = folder_in(root, name)
        if inside is not None and (inside / ROCKSDB_MARK).exists():
            store.queues = None
            store.notes.append(
                f"{inside} is a RocksDB store, so it is unknown whether consumers get a message;"
                " brokers with rocksdbCQDoubleWriteEnable=true write both forms"
            )
            break
    index = folder_in(root, INDEX_FOLDER)
    if index is not None:
        store.index = KeyIndex(index)
        store.notes += [f"{path}: not read, its layout is unknown" for path in store.index.unread]
    store.offsets, problems = offsets_in(root)
    store.notes += problems
    return store
