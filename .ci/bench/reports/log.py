"""A decoded log of many exchanges, written at once: what the reports are measured with.

Producers of 16 addresses send to 24 topics on 4 brokers, consumers poll. One send in 500 fails on
its first broker and is sent again to the next, so that retries and isolation have work; latencies
are log-normal with a slow minute of one broker. The numbers follow from the row number, so a log of
a size is always the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from dissectors.decode.decoded_log import FINDING_COLUMNS, CaptureEntry, Manifest
from dissectors.decode.log_parts import FOOTER, PartEntry
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS
from dissectors.rows.record import COLUMNS

PART = 1_000_000
START_US = 1_795_168_800_000_000
STEP_US = 60
BROKERS = 4
_TYPES = {
    "string": pa.string(),
    "int": pa.int64(),
    "time": pa.timestamp("us", tz="UTC"),
    "list": pa.list_(pa.string()),
}
Values = dict[str, object]


class Shape(NamedTuple):
    """How many of what there are."""

    clients: int = 16
    topics: int = 24
    hot: bool = False
    """every tenth row is an attempt of one message"""


PLAIN = Shape()


def write_log(folder: Path, rows: int, shape: Shape = PLAIN) -> None:
    """Write a log of `rows` exchanges, a multiple of the rows of a part; nothing if it is there."""
    if (folder / "manifest.json").exists():
        return
    (folder / "exchanges").mkdir(parents=True, exist_ok=True)
    parts = []
    for number in range(rows // PART):
        name = f"exchanges/part-{number:05d}.parquet"
        _write(folder / name, _part(number, shape), COLUMNS)
        parts.append(PartEntry(name, PART))
    _write(folder / "conversations.parquet", _conversations(rows, shape), CONVERSATION_COLUMNS)
    empty = pa.schema([(column.name, _TYPES[column.type]) for column in FINDING_COLUMNS])
    pa.parquet.write_table(empty.empty_table(), folder / "findings.parquet")
    (folder / "manifest.json").write_bytes(msgspec.json.encode(_manifest(rows, parts, shape)))


def _write(path: Path, values: Values, columns: object) -> None:
    fields, arrays = [], []
    count = len(values["conversation"])  # type: ignore[arg-type]
    for column in columns:  # type: ignore[attr-defined]
        kind = _TYPES[column.type]
        value = values.get(column.name)
        array = pa.nulls(count, kind) if value is None else value
        if not isinstance(array, pa.Array):
            array = pa.array(array)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        fields.append(pa.field(column.name, kind))
        arrays.append(array.cast(kind))
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata=FOOTER))
    pa.parquet.write_table(table, path, compression="zstd", row_group_size=131_072)


def _chosen(names: list[str], index: np.ndarray) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), pa.array(names))


def _part(number: int, shape: Shape) -> Values:
    row = np.arange(PART, dtype=np.int64) + number * PART
    dice = np.random.default_rng(number)
    client, topic = row % shape.clients, (row // 7) % shape.topics
    retried = (row % 500 == 1) & (row % PART > 0)  # the row before failed
    failed = row % 500 == 0
    broker = (row // 3) % BROKERS
    broker[retried] = (broker[np.flatnonzero(retried) - 1] + 1) % BROKERS
    client[retried], topic[retried] = (
        client[np.flatnonzero(retried) - 1],
        topic[np.flatnonzero(retried) - 1],
    )
    polls = (row % 10 == 9) & ~failed & ~retried
    time = START_US + row * STEP_US
    slow = (broker == 2) & ((time // 60_000_000) % 10 == 5)
    latency = dice.lognormal(7.2, 0.7, PART) * np.where(slow, 40, 1)
    latency = np.where(polls, dice.uniform(1e4, 1.5e7, PART), latency).astype(np.int64) + 50
    latency = np.where(failed, 200_000 + latency, latency)
    time = np.where(retried, time + 260_000, time)
    key = np.where(retried, row - 1, row)
    if shape.hot:
        key = np.where(row % 10 == 3, 3, key)
    milliseconds = 20 * 86_400_000 + (key * STEP_US) // 1000
    texts = _keys(key, client % 256, milliseconds)
    created = time - ((time - milliseconds * 1000 + 1_000_000) % 900_000_000 - 1_000_000)
    conversation = client * BROKERS + broker
    return {
        "capture": _chosen(["big.pcap"], np.zeros(PART)),
        "conversation": conversation,
        "client_address": _chosen(
            [_client(c, b) for c in range(shape.clients) for b in range(BROKERS)],
            conversation,
        ),
        "server_address": _chosen([f"10.0.1.{b}:10911" for b in range(BROKERS)], broker),
        "status": _chosen(["answered"], np.zeros(PART)),
        "request_packet": row * 2,
        "response_packet": row * 2 + 1,
        "request_time": time,
        "response_time": time + latency,
        "latency_us": latency,
        "opaque": row,
        "request_code": np.where(polls, 11, 310),
        "request_name": _chosen(["SEND_MESSAGE_V2", "PULL_MESSAGE"], polls),
        "response_code": np.where(failed, 2, np.where(polls, 19, 0)),
        "response_name": _chosen(
            ["SUCCESS", "SYSTEM_BUSY", "PULL_NOT_FOUND"], np.where(failed, 1, np.where(polls, 2, 0))
        ),
        "outcome_class": _chosen(["ok", "failed"], failed),
        "remark": pa.array(
            np.where(failed, "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control", ""),
            mask=~failed,
        ),
        "language": _chosen(["JAVA"], np.zeros(PART)),
        "version": np.full(PART, 477),
        "version_name": _chosen(["V5_3_0"], np.zeros(PART)),
        "serialize_type": _chosen(["JSON"], np.zeros(PART)),
        "topic": _chosen([f"Topic{t}" for t in range(shape.topics)], topic),
        "original_topic": _chosen([f"Topic{t}" for t in range(shape.topics)], topic),
        "group": _chosen(["shop", "readers"], polls),
        "queue_id": row % 8,
        "broker_name": _chosen([f"broker-{b}" for b in range(BROKERS)], broker),
        "unique_key": pa.array(texts, mask=polls),
        "key_time": pa.array(created, mask=polls),
        "body_bytes": 200 + row % 800,
        "request_bytes": 500 + row % 800,
        "response_bytes": np.full(PART, 210),
        "missing_bytes": np.zeros(PART, dtype=np.int64),
        "message_count": np.ones(PART, dtype=np.int64),
        "queue_offset": row // 8,
        "rtt_us": np.full(PART, 180),
        "findings": pa.array([[]] * PART, pa.list_(pa.string())),
    }


def _keys(row: np.ndarray, client: np.ndarray, milliseconds: np.ndarray) -> np.ndarray:
    """UNIQ_KEYs: address, process, loader, milliseconds of the month, counter."""
    return np.array(
        [
            f"0A0000{c:02X}{1000 + c:04X}18B4AAC2{m & 0xFFFFFFFF:08X}{r & 0xFFFF:04X}"
            for r, c, m in zip(row.tolist(), client.tolist(), milliseconds.tolist(), strict=True)
        ]
    )


def _client(number: int, broker: int) -> str:
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:{40000 + broker}"


def _conversations(rows: int, shape: Shape) -> Values:
    count = shape.clients * BROKERS
    number = np.arange(count)
    ones = np.ones(count, dtype=np.int64)
    end = START_US + rows * STEP_US
    return {
        "capture": ["big.pcap"] * count,
        "conversation": number,
        "client_address": [_client(c, b) for c in range(shape.clients) for b in range(BROKERS)],
        "server_address": [
            f"10.0.1.{b}:10911" for _ in range(shape.clients) for b in range(BROKERS)
        ],
        "protocol": ["ROCKETMQ"] * count,
        "start_time": ones * (START_US - 1000),
        "end_time": ones * end,
        "start": ["handshake"] * count,
        "end": ["open"] * count,
        "rtt_us": ones * 180,
        "syn_rtt_us": ones * 150,
        "ack_rtt_us": ones * 30,
        "syns": ones,
        "directions": ["both"] * count,
        **{
            f"{side}_{what}": ones * value
            for side in ("client", "server")
            for what, value in (
                ("packets", rows // count),
                ("bytes", rows // count * 500),
                ("retransmissions", 3),
                ("zero_windows", 0),
            )
        },
        "gaps": ones * 0,
        "gap_bytes": ones * 0,
        "commands": ones * (2 * rows // count),
    }


def _manifest(rows: int, parts: list[PartEntry], shape: Shape) -> Manifest:
    capture = CaptureEntry(
        name="big.pcap",
        format="pcap",
        compression=None,
        packets=2 * rows,
        bytes=0,
        first_time=None,
        last_time=None,
        skipped={},
    )
    return Manifest(
        rmqtool="bench",
        created="2026-11-20T10:00:00.000000Z",
        options={},
        captures=[capture],
        exchanges=rows,
        parts=parts,
        conversations=shape.clients * BROKERS,
        rocketmq_conversations=shape.clients * BROKERS,
        not_decoded={},
        frames=2 * rows,
        commands=2 * rows,
        gaps=0,
        gap_bytes=0,
        findings={},
    )
