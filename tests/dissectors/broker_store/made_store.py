"""Stores as brokers write them: commit log, consume queues, index, consumer offsets."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from dissectors.broker_store.indexes import key_hash
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.record_layout import MAGIC_FILLER
from dissectors.remoting.sysflag import COMMIT
from dissectors.remoting.topic_names import HALF_TOPIC, OP_HALF_TOPIC

SECOND = 1_795_000_000
"""when the first message was stored, seconds since the epoch"""
SIZE = 4096
"""bytes of a commit log file"""
HOST = "10.0.0.2:10911"
SLOTS = 7
"""of an index file"""


def store_in(
    folder: Path,
    *messages: StoredMessage,
    host: str = HOST,
    second: int = SECOND,
    queues: bool = False,
    index: bool = False,
    offsets: Mapping[str, Mapping[int, int]] | None = None,
) -> Path:
    """Write a store with these messages, one second after another; return its folder.

    The first message has the queue offset 0, the next one 1, whatever their queues. `offsets`: of
    groups, by `topic@group` and queue.
    """
    root = folder / "store"
    log = root / "commitlog"
    log.mkdir(parents=True)
    base, data = 0, b""
    written = []
    for number, message in enumerate(messages):
        placed = msgspec.structs.replace(
            message,
            physical_offset=base + len(data),
            queue_offset=number,
            store_timestamp=1000 * (second + number),
            born_host="10.0.0.1:5000",
            store_host=host,
        )
        record = encode_message(placed)
        if len(data) + len(record) + 8 > SIZE:
            filler = struct.pack(">iI", SIZE - len(data), MAGIC_FILLER)
            (log / f"{base:020d}").write_bytes((data + filler).ljust(SIZE, b"\0"))
            base, data = base + SIZE, b""
            placed = msgspec.structs.replace(placed, physical_offset=base)
            record = encode_message(placed)
        data += record
        written.append(msgspec.structs.replace(placed, total_size=len(record)))
    (log / f"{base:020d}").write_bytes(data.ljust(SIZE, b"\0"))
    if queues:
        write_queues(root, written)
    if index:
        write_index(root, written)
    if offsets is not None:
        (root / "config").mkdir()
        (root / "config" / "consumerOffset.json").write_text(offsets_text(offsets))
    return root


def write_queues(root: Path, messages: Iterable[StoredMessage]) -> None:
    """Write the entries of messages into their consume queues."""
    for one in messages:
        folder = root / "consumequeue" / one.topic / str(one.queue_id)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{0:020d}"
        data = path.read_bytes() if path.exists() else b""
        entry = struct.pack(">qiq", one.physical_offset, one.total_size, 0)
        path.write_bytes(data.ljust(20 * one.queue_offset, b"\0")[: 20 * one.queue_offset] + entry)


def write_index(root: Path, messages: list[StoredMessage]) -> None:
    """Write an index file of the keys of messages."""
    (root / "index").mkdir()
    slots, entries = [0] * SLOTS, [(0, 0, 0, 0)]
    begin = messages[0].store_timestamp if messages else 0
    for one in messages:
        for key in dict.fromkeys(filter(None, (one.unique_key, *one.keys))):
            hashed = key_hash(f"{one.topic}#{key}")
            slot = hashed % SLOTS
            after = (one.store_timestamp - begin) // 1000
            entries.append((hashed, one.physical_offset, after, slots[slot]))
            slots[slot] = len(entries) - 1
    head = struct.pack(
        ">qqqqii",
        *(begin, messages[-1].store_timestamp if messages else 0),
        *(entries[1][1] if len(entries) > 1 else 0, entries[-1][1]),
        *(sum(map(bool, slots)), len(entries)),
    )
    data = head + struct.pack(f">{SLOTS}i", *slots)
    data += b"".join(struct.pack(">iqii", *entry) for entry in entries)
    size = len(head) + 4 * SLOTS + 4 * 20 * SLOTS
    assert len(data) <= size
    (root / "index" / "20261118000000000").write_bytes(data.ljust(size, b"\0"))


def offsets_text(offsets: Mapping[str, Mapping[int, int]]) -> str:
    """Return offsets as fastjson writes them: numbers are keys without quotes."""
    table = ",".join(
        f"{json.dumps(name)}:{{{','.join(f'{queue}:{offset}' for queue, offset in one.items())}}}"
        for name, one in offsets.items()
    )
    return f'{{"dataVersion":{{"counter":1}},"offsetTable":{{{table}}}}}'


def message(topic: str, key: str, body: bytes = b"text", **properties: str) -> StoredMessage:
    """Return a message with this key, and a UNIQ_KEY made of it."""
    return StoredMessage(topic, body, {"KEYS": key, "UNIQ_KEY": "AA" + key, **properties})


def half(topic: str, unique_key: str, checks: int = 0) -> StoredMessage:
    """Return a half message; `checks`: times that the broker checked it."""
    properties = {"UNIQ_KEY": unique_key, "TRAN_MSG": "true", "PGROUP": "txg"}
    if checks:
        properties["TRANSACTION_CHECK_TIMES"] = str(checks)
    return StoredMessage(HALF_TOPIC, b"half", {**properties, "REAL_TOPIC": topic, "REAL_QID": "0"})


def commit(topic: str, unique_key: str, prepared: int) -> StoredMessage:
    """Return the message of a commit of the half message at an offset of the log."""
    return StoredMessage(
        topic,
        b"half",
        {"UNIQ_KEY": unique_key, "TRAN_MSG": "true", "PGROUP": "txg"},
        sys_flag=COMMIT,
        prepared_transaction_offset=prepared,
    )


def op(*queue_offsets: int) -> StoredMessage:
    """Return the record that half messages at these queue offsets have ended."""
    body = "".join(f"{one}," for one in queue_offsets)
    return StoredMessage(OP_HALF_TOPIC, body.encode(), {"TAGS": "d"})
