"""A store file that is damaged: the file and the row are named, the rest is kept."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from replay.sandbox import (
    EventKind,
    SandboxError,
    SandboxEvent,
    SandboxOptions,
    TopicSpec,
    sandbox_thread,
)
from replay.sandbox.broker import OWN_TOPICS

from ..talk import Talk, pull_fields, send_fields
from .test_sqlite import bodies

TOPIC = "Orders"
BODIES = [b"%d" % number for number in range(5)]


def _options(path: Path, events: list[SandboxEvent] | None = None) -> SandboxOptions:
    on_event = None if events is None else events.append
    return SandboxOptions(store=path, topics=[TopicSpec(TOPIC)], brokers=1, on_event=on_event)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A file with five messages of one queue, a group, and an offset."""
    path = tmp_path / "box.db"
    with sandbox_thread(_options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        for body in BODIES:
            assert broker.ask(310, send_fields(TOPIC), body).code == 0
        assert broker.ask(310, send_fields("Made"), b"made").code == 0
        offset = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0", "commitOffset": "3"}
        assert broker.ask(15, offset).code == 0
    return path


def _changed(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def _offset_of(broker: Talk) -> str | None:
    asked = broker.ask(14, {"consumerGroup": "g", "topic": TOPIC, "queueId": "0"})
    return asked.fields.get("offset")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("store_ms", "a text"), ("store_ms", 1.5), ("store_ms", -1), ("queue_id", "x")),
        *(("queue_offset", b"x"), ("queue_offset", 77), ("physical_offset", "x")),
        *(("physical_offset", b"\xff"), ("topic", b"\xff\xfe"), ("topic", "Other"), ("tag", 7)),
        *(("queue_id", 1 << 40), ("queue_offset", -5), ("tag", b"\xff")),
    ],
)
def test_a_wrong_column_is_named_and_the_record_counts(
    stored: Path, column: str, value: object
) -> None:
    _changed(stored, f"UPDATE message SET {column} = ? WHERE id = 3", value)
    events: list[SandboxEvent] = []
    with sandbox_thread(_options(stored, events)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert bodies(broker) == BODIES
        assert broker.ask(310, send_fields(TOPIC), b"new").code == 0
        assert bodies(broker) == [*BODIES, b"new"]
        assert _offset_of(broker) == "3"
    (damage,) = [event.detail for event in events if event.kind is EventKind.STORE_DAMAGED]
    assert f"{stored}, table message, row 3: {column} is " in damage


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("data", ["a text", b"", b"\0\0\1\0" * 64, b"cut"])
def test_a_message_that_is_lost_leaves_the_others_where_they_were(
    stored: Path, number: int, data: object
) -> None:
    if data == b"cut":
        _changed(stored, "UPDATE message SET data = substr(data, 1, 99) WHERE id = ?", number)
    else:
        _changed(stored, "UPDATE message SET data = ? WHERE id = ?", data, number)
    kept = [body for at, body in enumerate(BODIES) if at != number - 1]
    for turn in range(2):  # what is left out stays in the file, and is not in the way
        events: list[SandboxEvent] = []
        options = _options(stored, events)
        with sandbox_thread(options) as box, Talk(box.addresses["broker-a"]) as broker:
            begin = 1 if number == 1 else 0
            assert bodies(broker, offset=begin) == kept
            for at in range(begin, 5):
                (first, *_) = bodies(broker, offset=at) or [b""]
                expected = [body for body in kept if int(body) >= at]
                assert first == (expected[0] if expected or turn else b"")
            assert broker.ask(310, send_fields(TOPIC), b"9").code == 0
            kept.append(b"9")
            assert bodies(broker, offset=begin) == kept
        (damage,) = [event.detail for event in events if event.kind is EventKind.STORE_DAMAGED]
        assert f"{stored}, table message, row {number}: " in damage
        assert "it is left out" in damage


@pytest.mark.parametrize(
    ("kind", "column", "value"),
    [
        *(("topic", "value", "[" * 100_000), ("topic", "value", "7"), ("topic", "value", b"\xff")),
        *(("offset", "value", "three"), ("offset", "value", "²"), ("offset", "value", "9" * 5000)),
        *(("offset", "key", "{}"), ("offset", "key", '["g", "T"]'), ("offset", "key", "[1, 2, 3]")),
        *(("offset", "key", '["g", "T", true]'), ("offset", "value", "-1")),
    ],
)
def test_a_state_that_is_damaged_is_named_and_left_out(
    stored: Path, kind: str, column: str, value: object
) -> None:
    where = "kind = ? AND key NOT LIKE ?"
    _changed(stored, f"UPDATE state SET {column} = ? WHERE {where}", value, kind, "%nothing%")
    events: list[SandboxEvent] = []
    with sandbox_thread(_options(stored, events)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert bodies(broker) == BODIES
        if kind == "offset":
            assert _offset_of(broker) != "3"
    damages = [event.detail for event in events if event.kind is EventKind.STORE_DAMAGED]
    assert damages
    assert all(f"{stored}, table state, row (" in damage for damage in damages)


def test_many_damaged_rows_are_counted(stored: Path) -> None:
    row = "'broker-a', 'offset', ?, 'x'"
    with sqlite3.connect(stored) as connection:
        for number in range(100):
            connection.execute(f"INSERT INTO state VALUES ({row})", (str(number),))
    connection.close()
    events: list[SandboxEvent] = []
    with sandbox_thread(_options(stored, events)):
        pass
    damages = [event.detail for event in events if event.kind is EventKind.STORE_DAMAGED]
    assert len(damages) == 21
    assert damages[-1] == "100 damaged rows in all"


def test_a_file_of_which_pages_are_damaged_is_named(stored: Path) -> None:
    with sqlite3.connect(stored) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(stored.read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 64] = b"\xee" * 64
    stored.write_bytes(data)
    with (
        pytest.raises(SandboxError, match=r"box\.db: .*malformed"),
        sandbox_thread(_options(stored)),
    ):
        pass


def test_two_rows_at_one_place_are_one_message(stored: Path) -> None:
    with sqlite3.connect(stored) as connection:
        connection.execute(
            "INSERT INTO message SELECT NULL, broker, physical_offset + 100000, topic, queue_id, "
            "queue_offset, store_ms, tag, data FROM message WHERE id = 2"
        )
    connection.close()
    events: list[SandboxEvent] = []
    with sandbox_thread(_options(stored, events)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert bodies(broker) == BODIES
        assert broker.ask(310, send_fields(TOPIC), b"new").code == 0
        assert bodies(broker) == [*BODIES, b"new"]
    damages = [event.detail for event in events if event.kind is EventKind.STORE_DAMAGED]
    assert any("another is at its place" in damage for damage in damages)


def test_the_topics_of_the_file_come_back(stored: Path) -> None:
    with sandbox_thread(_options(stored)) as box, Talk(box.addresses["broker-a"]) as broker:
        assert broker.ask(11, pull_fields("Made", 0, 0)).code == 0
        assert TOPIC not in OWN_TOPICS
