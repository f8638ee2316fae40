"""`decode store`: rows, filters, formats, and what is said of a store that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dissectors.broker_store.made_store import (
    SIZE,
    commit,
    half,
    message,
    op,
    store_in,
)
from tests.rmqtool.command import EVIL, rmqtool


@pytest.fixture
def store(tmp_path: Path) -> Path:
    waiting = message("RMQ_SYS_TRANS_HALF_TOPIC", "b", REAL_TOPIC="Orders", REAL_QID="3")
    return store_in(tmp_path, message("Orders", "a"), waiting, message("Audit", "c", b"x" * 3900))


def rows(*arguments: str | Path) -> list[dict[str, object]]:
    result = rmqtool("decode", "store", *arguments, "-T", "jsonl", "--quiet")
    assert (result.status, result.err) == (0, "")
    return [json.loads(line) for line in result.out.splitlines()]


def test_each_message_is_a_row(store: Path) -> None:
    found = rows(store)
    assert [row["keys"] for row in found] == ["a", "b", "c"]
    assert [row["event"] for row in found] == ["on_disk"] * 3
    assert found[0]["client_address"] == "10.0.0.1:5000"
    assert found[1]["original_topic"] == "Orders"
    assert found[2]["commit_log_offset"] == SIZE
    assert str(found[0]["time"]).startswith("2026-11-18T")
    assert rows(store / "commitlog") == found


def test_an_array_has_the_rows_of_the_lines(store: Path) -> None:
    assert json.loads(rmqtool("decode", "store", store, "-T", "json", "-q").out) == rows(store)


def test_filters_bodies_and_columns(store: Path) -> None:
    (row,) = rows(store, "-Y", "original_topic = Orders and keys = a", "--body-limit", "10")
    assert row["body"] == "text"
    assert len(rows(store, "--limit", "2")) == 2
    since = str(rows(store)[1]["time"])
    assert [row["keys"] for row in rows(store, "--since", since)] == ["b", "c"]
    assert [row["keys"] for row in rows(store, "--until", since)] == ["a"]
    clock = since[11:-1]
    assert [row["keys"] for row in rows(store, "--since", clock)] == ["b", "c"]
    assert [row["keys"] for row in rows(store, "--until", clock)] == ["a"]
    assert rows(store, "--columns", "keys,body_bytes")[0] == {"keys": "a", "body_bytes": 4}


def test_as_a_table_and_a_file(store: Path, tmp_path: Path) -> None:
    lines = rmqtool("decode", "store", store).out.splitlines()
    assert len(lines) == 1 + 3
    assert "on_disk" in lines[1]
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "messages.parquet"
    assert rmqtool("decode", "store", store, "-o", target).status == 0
    assert parquet.read_table(target)["keys"].to_pylist() == ["a", "b", "c"]


def test_damage_is_counted_and_the_rest_is_read(store: Path) -> None:
    path = store / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[4] ^= 1
    path.write_bytes(data)
    result = rmqtool("decode", "store", store, "-T", "jsonl")
    assert [json.loads(line)["keys"] for line in result.out.splitlines()] == ["b", "c"]
    assert "BAD_MESSAGE 1" in result.err or "1 BAD_MESSAGE" in result.err


def test_an_empty_store(tmp_path: Path) -> None:
    result = rmqtool("decode", "store", store_in(tmp_path))
    assert "no message in the commit log" in result.err


def test_texts_of_messages_are_harmless(tmp_path: Path) -> None:
    result = rmqtool("decode", "store", store_in(tmp_path, message(f"T{EVIL}", EVIL)))
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out


@pytest.mark.parametrize(
    ("name", "text"), [("missing", "no such folder"), (".", "no commit log files")]
)
def test_what_is_no_store(tmp_path: Path, name: str, text: str) -> None:
    result = rmqtool("decode", "store", tmp_path / name)
    assert result.status == 1
    assert text in result.err
    assert str(tmp_path) in result.err


def test_what_became_of_half_messages(tmp_path: Path) -> None:
    store = store_in(
        *(tmp_path, half("Orders", "A"), half("Orders", "B"), half("Orders", "C")),
        *(commit("Orders", "A", 0), op(0, 1)),
    )
    found = [row for row in rows(store) if row["event"] != "on_disk"]
    assert [(row["event"], row["unique_key"], row["original_topic"]) for row in found] == [
        ("committed", "A", "Orders"),
        ("rolled_back", "B", "Orders"),
    ]


def test_files_beside_the_log(tmp_path: Path) -> None:
    store = store_in(
        *(tmp_path, message("Orders", "a"), message("Orders", "b")),
        queues=True,
        index=True,
        offsets={"Orders@billing": {0: 1, 1: 5}},
    )
    queue = store / "consumequeue" / "Orders" / "0" / f"{0:020d}"
    queue.write_bytes(queue.read_bytes()[:30])  # half written
    first, second, *groups = rows(store)
    assert first["remark"] == "in its consume queue"
    assert second["remark"] == "not in its consume queue: consumers do not get it"
    assert [
        (row["event"], row["covers"], row["consumer_group"], row["queue_id"], row["queue_offset"])
        for row in groups
    ] == [("acknowledged", "before", "billing", 0, 1), ("acknowledged", "before", "billing", 1, 5)]
    (row,) = rows(store, "-Y", "remark ~ 'not in'", "--columns", "keys")
    assert row == {"keys": "b"}


def test_a_rocksdb_store_is_refused_with_the_way_out(tmp_path: Path) -> None:
    store = store_in(tmp_path, message("Orders", "a"), queues=True)
    for folder in ("config/consumerOffsets", "consumequeue_rocksdb"):
        (store / folder).mkdir(parents=True)
        (store / folder / "CURRENT").touch()
    result = rmqtool("decode", "store", store, "-T", "jsonl")
    assert "mqadmin rocksDBConfigToJson -p" in result.err
    assert "rocksdbCQDoubleWriteEnable=true" in result.err
    assert json.loads(result.out).get("remark") is None
    (store / "config" / "consumerOffsets").rename(store / "config" / "rdb")
    assert "mqadmin consumerProgress" in rmqtool("decode", "store", store).err
