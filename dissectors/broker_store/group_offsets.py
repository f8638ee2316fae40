"""Read the offsets of a broker's groups: `config/consumerOffset.json`, or its backup.

RocketMQ: ConsumerOffsetManager, ConfigManager.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from ..foreign import natural_of
from ..remoting.fastjson.codec import decode_json
from .indexes import ROCKSDB_MARK
from .store_files import folder_in, open_regular

CONFIG_FOLDER: Final = "config"
OFFSET_FILE: Final = "consumerOffset.json"
_SEPARATE: Final = "consumerOffsets"
_ROCKSDB_FOLDERS: Final = (_SEPARATE, "metadata", "rdb")
"""`config` folders of a 5.x broker that keeps offsets in RocksDB: alone, or with other tables"""
_MOST_BYTES: Final = 16 << 20
_MOST_OFFSETS: Final = 2_000_000
_LARGEST: Final = 1 << 63


class GroupOffset(NamedTuple):
    """Offset of a group in a queue."""

    topic: str
    queue_id: int
    group: str
    offset: int
    """first message that the group has not consumed"""


def offsets_in(root: Path) -> tuple[list[GroupOffset], list[str]]:
    """Return the sorted offsets of a store, and its problems, one sentence each."""
    config = folder_in(root, CONFIG_FOLDER)
    if config is None:
        return [], []
    for name in _ROCKSDB_FOLDERS:
        if (config / name / ROCKSDB_MARK).exists():
            return [], [_rocksdb(config, name)]
    problems = []
    # The backup has the former content, for a broker that ended while it replaced the file.
    for name in (OFFSET_FILE, f"{OFFSET_FILE}.bak"):
        path = config / name
        try:
            data = _bytes_of(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
            continue
        offsets = _offsets_of(data)
        if offsets is not None:
            return offsets, problems
        problems.append(f"{path}: not a table of consumer offsets")
    return [], problems


def offsets_of(offsets: list[GroupOffset], topic: str, queue_id: int) -> list[GroupOffset]:
    """Return the group offsets of a queue; `offsets` are sorted."""
    first = bisect_left(offsets, (topic, queue_id))
    return offsets[first : bisect_left(offsets, (topic, queue_id + 1), first)]


def _rocksdb(config: Path, name: str) -> str:
    problem = f"{config / name} is a RocksDB store, so the progress of groups is not read"
    if name != _SEPARATE:  # mqadmin does not read it either
        return f"{problem}. mqadmin consumerProgress shows it while the broker runs"
    config = config.absolute()
    return (
        f"{problem}. Export it with mqadmin rocksDBConfigToJson -p {config} -t {name}"
        f" -e {config / OFFSET_FILE}, then remove {name} from the copy"
    )


def _bytes_of(path: Path) -> bytes:
    number = open_regular(str(path))
    with open(number, "rb") as file:
        if os.fstat(number).st_size > _MOST_BYTES:
            raise OSError(0, f"larger than {_MOST_BYTES >> 20} MiB")
        return file.read(_MOST_BYTES)


def _offsets_of(data: bytes) -> list[GroupOffset] | None:
    read = decode_json(data, _MOST_BYTES)
    value = read.value if read.problem is None else None
    table = value.get("offsetTable") if isinstance(value, dict) else None
    if not isinstance(table, dict):
        return None
    return sorted(islice(_each(table), _MOST_OFFSETS))


def _each(table: dict[object, object]) -> Iterator[GroupOffset]:
    for name, queues in table.items():
        topic, mark, group = str(name).partition("@")
        if not mark or not isinstance(queues, dict):
            continue
        for queue, offset in queues.items():
            number = natural_of(str(queue))
            # type() instead of isinstance: `true` is an int for Python.
            if number is not None and type(offset) is int and 0 <= offset < _LARGEST:
                yield GroupOffset(topic, number, group, offset)
