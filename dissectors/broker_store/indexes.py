"""Read what a store derives from its commit log: consume queues, and the index of keys.

RocketMQ: ConsumeQueue; IndexFile, IndexHeader, IndexService.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ..remoting.java_hash import java_hash
from .store_files import OFFSET_DIGITS, StoreFiles, base_of, folder_in, numbered_files

QUEUE_FOLDER: Final = "consumequeue"
BATCH_QUEUE_FOLDER: Final = "batchconsumequeue"
"""for topics whose messages are stored in batches"""
ROCKSDB_MARK: Final = "CURRENT"
"""a file of every RocksDB store"""
_QUEUE_ENTRY: Final = struct.Struct(">qiq")
"""offset in the commit log, size, hash of the tag"""
_MOST_QUEUES: Final = 4096
"""queues with cached file names"""


class ConsumeQueues:
    """The consume queues in a folder: queue offsets → records of the commit log.

    A message in the commit log but not in its consume queue is stored, but invisible to consumers:
    the broker dispatches records to the queues after storing them.
    """

    def __init__(self, root: Path) -> None:
        """`root` is the folder of the store."""
        self._root = root
        self._files: dict[tuple[str, int], tuple[list[int], list[str]] | None] = {}
        self._open = StoreFiles()

    def has(self, topic: str, queue_id: int, queue_offset: int, log_offset: int) -> bool | None:
        """Return whether a queue offset refers to a record.

        None if unknown, such as for topics that are stored in batches.
        """
        files = self._files_of(topic, queue_id)
        if files is None:
            return None
        bases, paths = files
        at = queue_offset * _QUEUE_ENTRY.size
        place = bisect_right(bases, at) - 1
        if place < 0:
            return False
        data = self._open.read(paths[place], _QUEUE_ENTRY.size, at - bases[place])
        if len(data) < _QUEUE_ENTRY.size:
            return False
        offset, size, _ = _QUEUE_ENTRY.unpack(data)
        # A file is made at full size: an entry of zeros is not written yet.
        return bool(offset == log_offset and size > 0)

    def _files_of(self, topic: str, queue_id: int) -> tuple[list[int], list[str]] | None:
        """Return the start bytes of a queue's files, and their paths."""
        key = topic, queue_id
        if key not in self._files:
            if len(self._files) >= _MOST_QUEUES:
                self._files.clear()
            self._files[key] = self._found(topic, queue_id)
        return self._files[key]

    def _found(self, topic: str, queue_id: int) -> tuple[list[int], list[str]] | None:
        folder = folder_in(self._root, QUEUE_FOLDER, topic, str(queue_id))
        if folder is None:
            if folder_in(self._root, BATCH_QUEUE_FOLDER, topic) is not None:
                return None
            return [], []
        paths = numbered_files(folder, OFFSET_DIGITS)
        return [base_of(path) for path in paths], paths


INDEX_FOLDER: Final = "index"
_INDEX_DIGITS: Final = 17
_HEADER: Final = struct.Struct(">qqqqii")
"""store time of the first and the last entry, ms; their log offsets; used slots; entries + 1"""
_SLOT: Final = struct.Struct(">i")
_INDEX_ENTRY: Final = struct.Struct(">iqii")
"""hash, log offset, seconds after the first entry, previous entry of the slot"""
_ENTRIES_PER_SLOT: Final = 4
_USUAL_SLOTS: Final = 5_000_000
_MOST_STEPS: Final = 4096
"""maximum entries read of one slot"""


class IndexHit(NamedTuple):
    """An entry with the hash of a key."""

    offset: int
    """log offset of the record"""
    time: int
    """store time, ms since the epoch, in whole seconds after the first entry"""


class _IndexFile(NamedTuple):
    path: str
    begin_time: int
    begin_offset: int
    end_offset: int
    slots: int
    entries: int


class KeyIndex:
    """The index files in a folder: keys → records of the log.

    A file has a header, hash slots, and entries chained by slot, latest first. It does not store
    the number of its slots: by default a broker makes four entries per slot. An entry has only the
    hash of its key, so a hit is likely and a miss is certain.
    """

    def __init__(self, folder: Path) -> None:
        """Read the headers of the files."""
        self._open = StoreFiles()
        self.unread: list[str] = []
        """files with an unknown layout, or truncated"""
        self._files: list[_IndexFile] = []
        for path in numbered_files(folder, _INDEX_DIGITS):
            file = self._file(path)
            if file is None:
                self.unread.append(path)
            elif file.entries > 1:
                self._files.append(file)

    def hits(self, topic: str, key: str) -> list[IndexHit]:
        """Return the entries with the hash of a key, by offset."""
        hashed = key_hash(f"{topic}#{key}")
        return sorted(hit for file in self._files for hit in self._hits_in(file, hashed))

    def has(self, topic: str, key: str, offset: int) -> bool | None:
        """Return whether the index maps a key to a record; None if unknown."""
        if not self._files:  # not copied, or the broker keeps it in RocksDB
            return None
        hashed = key_hash(f"{topic}#{key}")
        last = self._files[-1]
        for file in self._files:
            if offset < file.begin_offset or (file is not last and offset > file.end_offset):
                continue
            if any(hit.offset == offset for hit in self._hits_in(file, hashed)):
                return True
        return None if self.unread else False

    def _file(self, path: str) -> _IndexFile | None:
        data = self._open.read(path, _HEADER.size, 0)
        if len(data) < _HEADER.size:
            return None
        begin_time, _, begin, end, _, entries = _HEADER.unpack(data)
        if entries <= 1:
            return _IndexFile(path, begin_time, begin, end, 0, entries)
        for slots in self._slot_numbers(path):
            first = self._entry(path, slots, 1)
            if first is not None and first[1] == begin and first[3] == 0:
                return _IndexFile(path, begin_time, begin, end, slots, entries)
        return None

    def _slot_numbers(self, path: str) -> Iterator[int]:
        """Yield the possible numbers of slots of a file of this size."""
        size = self._open.size(path) - _HEADER.size
        per_slot = _SLOT.size + _ENTRIES_PER_SLOT * _INDEX_ENTRY.size
        if size > 0 and size % per_slot == 0:
            yield size // per_slot
        yield _USUAL_SLOTS  # truncated, or with another number of entries

    def _hits_in(self, file: _IndexFile, hashed: int) -> Iterator[IndexHit]:
        at = _HEADER.size + hashed % file.slots * _SLOT.size
        data = self._open.read(file.path, _SLOT.size, at)
        place = _SLOT.unpack(data)[0] if len(data) == _SLOT.size else 0
        for _ in range(_MOST_STEPS):
            if not 0 < place < file.entries:
                return
            entry = self._entry(file.path, file.slots, place)
            if entry is None:
                return
            if entry[0] == hashed:
                yield IndexHit(entry[1], file.begin_time + 1000 * entry[2])
            if entry[3] >= place:  # a chain leads to earlier entries only
                return
            place = entry[3]

    def _entry(self, path: str, slots: int, place: int) -> tuple[int, int, int, int] | None:
        at = _HEADER.size + slots * _SLOT.size + place * _INDEX_ENTRY.size
        data = self._open.read(path, _INDEX_ENTRY.size, at)
        return _INDEX_ENTRY.unpack(data) if len(data) == _INDEX_ENTRY.size else None


def key_hash(text: str) -> int:
    """Return the hash of a key in the index: that of Java's String, without its sign."""
    signed = java_hash(text)
    return 0 if signed == -(1 << 31) else abs(signed)  # its absolute value is no int of Java
