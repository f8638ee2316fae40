"""Read the consume queues of a store: queue offsets → records of the commit log.

A message in the commit log but not in its consume queue is stored, but invisible to consumers: the
broker dispatches records to the queues after storing them. RocketMQ: ConsumeQueue.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from pathlib import Path
from typing import Final

from ..foreign import natural_of
from .store_files import StoreFiles, folder_in, numbered_files

QUEUE_FOLDER: Final = "consumequeue"
BATCH_QUEUE_FOLDER: Final = "batchconsumequeue"
"""for topics whose messages are stored in batches"""
ROCKSDB_MARK: Final = "CURRENT"
"""a file of every RocksDB store"""
_ENTRY: Final = struct.Struct(">qiq")
"""offset in the commit log, size, hash of the tag"""
_DIGITS: Final = 20
_MOST_QUEUES: Final = 4096
"""queues with cached file names"""


class ConsumeQueues:
    """The consume queues in a folder."""

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
        at = queue_offset * _ENTRY.size
        place = bisect_right(bases, at) - 1
        if place < 0:
            return False
        data = self._open.read(paths[place], _ENTRY.size, at - bases[place])
        if len(data) < _ENTRY.size:
            return False
        offset, size, _ = _ENTRY.unpack(data)
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
        paths = numbered_files(folder, _DIGITS)
        return [natural_of(os.path.basename(path).lstrip("0")) or 0 for path in paths], paths
