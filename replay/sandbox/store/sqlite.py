"""Messages, topics and offsets in a sqlite3 file that survives a crash of the process.

Rules: what was answered is in the file, because answers are written after the commit of their turn.
The write-ahead log goes to the operating system with each commit and not to the platter: a process
that is killed loses nothing, a machine that loses its power may lose the last moment. One file
belongs to one sandbox at a time. Another sandbox's file, or no such file at all, is refused.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from dissectors.temporary import PRIVATE, create_new

from ..errors import SandboxError
from ..groups import GroupConfig, group_of_value
from ..topics import TopicConfig, topic_of_value
from .shelf import StoredRecord, physical_offset_of
from .stored_rows import (
    OFFSET_LIMIT,
    DamagedRow,
    object_of_text,
    offset_of_text,
    place_of_text,
    record_of_row,
)

_APPLICATION: Final = 0x524D5153
"""Marks the file as a sandbox's: "RMQS"."""
_VERSION: Final = 1
_TABLES: Final = """
CREATE TABLE message (
    id INTEGER PRIMARY KEY, broker TEXT NOT NULL, physical_offset INTEGER NOT NULL,
    topic TEXT NOT NULL, queue_id INTEGER NOT NULL, queue_offset INTEGER NOT NULL,
    store_ms INTEGER NOT NULL, tag TEXT NOT NULL, data BLOB NOT NULL);
CREATE UNIQUE INDEX message_offset ON message (broker, physical_offset);
CREATE TABLE state (
    broker TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (broker, kind, key)) WITHOUT ROWID;
"""
_PUT_MESSAGE: Final = "INSERT INTO message VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_STATE: Final = "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)"
_DROP_STATE: Final = "DELETE FROM state WHERE broker = ? AND kind = ? AND key = ?"
_MOST_PROBLEMS: Final = 20
"""damaged rows that are named"""
_Value = TypeVar("_Value")


class StoreFile:
    """The file of a sandbox."""

    def __init__(self, path: Path, on_waiting: Callable[[], None]) -> None:
        """Open or make it; SandboxError where that cannot be.

        `on_waiting` is called when there is something to commit again.
        """
        self.path = path
        """the file"""
        self.on_waiting = on_waiting
        self._waiting = False
        self._messages: list[tuple[object, ...]] = []
        self._states: dict[tuple[str, str, str], str | None] = {}
        self._statements: list[tuple[str, tuple[object, ...]]] = []
        with contextlib.suppress(OSError):  # it is there, or sqlite3 says what is wrong
            create_new(Path(path), PRIVATE).close()
        try:
            self._connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except sqlite3.Error as error:
            raise SandboxError(f"{path} cannot be opened: {error}") from None
        self._connection.text_factory = _text_of
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise _error(path, error) from None
        except SandboxError:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        empty = run("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not empty and run("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise SandboxError(
                f"{self.path} is not a store of a sandbox", "name another file; it will be made"
            )
        if not empty and run("PRAGMA user_version").fetchone()[0] != _VERSION:
            raise SandboxError(f"{self.path} was made by another version of the sandbox")
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN IMMEDIATE")
        if empty:
            for statement in _TABLES.split(";"):
                run(statement)
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {_VERSION}")
        run("COMMIT")

    def journal(self, broker: str) -> BrokerJournal:
        """Return what a broker of that name writes to."""
        return BrokerJournal(self, broker)

    # -- writing --------------------------------------------------------------------------------

    def put_message(self, row: tuple[object, ...]) -> None:
        """Keep a row of `message` for the next commit."""
        self._messages.append(row)
        if not self._waiting:
            self._wait()

    def put_state(self, broker: str, kind: str, key: str, value: str | None) -> None:
        """Keep a state for the next commit; None removes it. The last of one turn counts."""
        self._states[(broker, kind, key)] = value
        if not self._waiting:
            self._wait()

    def run(self, statement: str, values: tuple[object, ...]) -> None:
        """Keep a statement for the next commit; it comes after messages and states."""
        self._statements.append((statement, values))
        if not self._waiting:
            self._wait()

    def _wait(self) -> None:
        self._waiting = True
        self.on_waiting()

    def commit(self) -> None:
        """Put what was kept into the file; SandboxError where the file takes it no more."""
        if not self._waiting:
            return
        try:
            self._connection.execute("BEGIN")
            if self._messages:
                self._connection.executemany(_PUT_MESSAGE, self._messages)
            for (broker, kind, key), value in self._states.items():
                if value is None:
                    self._connection.execute(_DROP_STATE, (broker, kind, key))
                else:
                    self._connection.execute(_PUT_STATE, (broker, kind, key, value))
            for statement, values in self._statements:
                self._connection.execute(statement, values)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise _error(self.path, error) from None
        self._messages = []
        self._states = {}
        self._statements = []
        self._waiting = False

    def close(self) -> None:
        """Commit and let go of the file."""
        try:
            self.commit()
        finally:
            self._connection.close()

    # -- reading --------------------------------------------------------------------------------

    def messages(self, broker: str, placed: bool) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a broker's messages, the number first, by commit log offset.

        `placed`: those of which the offset is a number; else the others, which are damaged.
        """
        kind = "=" if placed else "<>"
        statement = (
            "SELECT id, data, topic, queue_id, queue_offset, physical_offset, store_ms, tag "
            f"FROM message WHERE broker = ? AND typeof(physical_offset) {kind} 'integer' "
            "ORDER BY physical_offset"
        )
        yield from self._read(statement, broker)

    def states(self, broker: str, kind: str) -> Iterator[tuple[object, ...]]:
        """Yield the (key, value) of the states of one kind."""
        statement = "SELECT key, value FROM state WHERE broker = ? AND kind = ?"
        yield from self._read(statement, broker, kind)

    def _read(self, statement: str, *values: str) -> Iterator[tuple[object, ...]]:
        try:
            yield from self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise _error(self.path, error) from None


class BrokerJournal:
    """The part of a file that belongs to one broker; a `Journal`."""

    def __init__(self, file: StoreFile, broker: str) -> None:
        self._file = file
        self._broker = broker
        self.problems: list[str] = []
        """rows that are damaged, the first of them, for people"""
        self.damaged = 0
        """how many rows are damaged"""
        self.blocked = 0
        """commit log offset behind those of damaged rows, which are still in the file"""

    def put_message(self, record: StoredRecord) -> None:
        """Write a message that was stored."""
        self._file.put_message(
            (
                self._broker,
                record.physical_offset,
                record.topic,
                record.queue_id,
                record.queue_offset,
                record.store_ms,
                record.tag,
                record.data,
            )
        )

    def drop_messages(self, below: int) -> None:
        """Drop the messages below a commit log offset, which were forgotten."""
        statement = "DELETE FROM message WHERE broker = ? AND physical_offset < ?"
        self._file.run(statement, (self._broker, below))
        statement = (
            "DELETE FROM state WHERE broker = ? AND kind = 'done' AND CAST(key AS INTEGER) < ?"
        )
        self._file.run(statement, (self._broker, below))

    def put_end(self, topic: str, queue_id: int, offset: int) -> None:
        """Write where a queue whose messages are all forgotten goes on; "" is the commit log."""
        key = json.dumps([topic, queue_id])
        self._file.put_state(self._broker, "end", key, str(offset))

    def put_topic(self, config: TopicConfig) -> None:
        """Write a topic that was made or changed."""
        self._file.put_state(self._broker, "topic", config.name, json.dumps(config.value()))

    def drop_topic(self, topic: str) -> None:
        """Remove a topic with its queues."""
        self._file.put_state(self._broker, "topic", topic, None)
        statement = "DELETE FROM message WHERE broker = ? AND topic = ?"
        self._file.run(statement, (self._broker, topic))
        self._file.commit()  # what is stored in a topic of that name from now on must stay

    def put_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Write the offset of a group in a queue."""
        key = _offset_key(group, topic, queue_id)
        self._file.put_state(self._broker, "offset", key, str(offset))

    def drop_offset(self, group: str, topic: str, queue_id: int) -> None:
        """Remove an offset."""
        self._file.put_state(self._broker, "offset", _offset_key(group, topic, queue_id), None)

    def put_group(self, config: GroupConfig) -> None:
        """Write a group that was made or changed."""
        self._file.put_state(self._broker, "group", config.name, json.dumps(config.value()))

    def drop_group(self, group: str) -> None:
        """Remove a group."""
        self._file.put_state(self._broker, "group", group, None)

    def finish_message(self, physical_offset: int) -> None:
        """Remove a scheduled or half message that is settled."""
        self._file.put_state(self._broker, "done", str(physical_offset), "")

    # -- after a restart ------------------------------------------------------------------------

    def records(self) -> Iterator[StoredRecord]:
        """Yield the messages in order; damaged ones are left out, see `blocked`."""
        lost = sorted(self._records(placed=False), key=physical_offset_of)
        placed = self._records(placed=True)
        yield from heapq.merge(placed, lost, key=physical_offset_of)

    def _records(self, placed: bool) -> Iterator[StoredRecord]:
        for number, *row in self._file.messages(self._broker, placed):
            try:
                record, wrong = record_of_row(tuple(row))
            except DamagedRow as damage:
                self.note("message", number, f"{damage}; it is left out")
                self._block(row)
                continue
            if wrong is not None:
                self.note("message", number, wrong)
                self._block(row)
            yield record

    def _block(self, row: list[object]) -> None:
        data, *_, offset, _, _ = row
        if isinstance(offset, int) and 0 <= offset < OFFSET_LIMIT:
            size = len(data) if isinstance(data, bytes) else 0
            self.blocked = max(self.blocked, offset + size + 1)

    def note(self, table: str, row: object, problem: str) -> None:
        """Count a damaged row; the first ones are kept as text."""
        self.damaged += 1
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"{self._file.path}, table {table}, row {row!r}: {problem}")

    def topics(self) -> Iterator[TopicConfig]:
        """Return the topics."""
        return self._states("topic", lambda _, value: topic_of_value(object_of_text(value)))

    def groups(self) -> Iterator[GroupConfig]:
        """Return the groups."""
        return self._states("group", lambda _, value: group_of_value(object_of_text(value)))

    def offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield (group, topic, queue, offset) of all offsets."""
        return self._states("offset", _consumed)

    def ends(self) -> Iterator[tuple[str, int, int]]:
        """Yield the (topic, queue, offset) left by forgotten messages; "" is the commit log."""
        return self._states("end", _ended)

    def finished(self) -> set[int]:
        """Commit log offsets of scheduled and half messages that are done with."""
        return set(self._states("done", lambda key, _: offset_of_text(key)))

    def _states(
        self, kind: str, make: Callable[[object, object], _Value | None]
    ) -> Iterator[_Value]:
        for key, value in self._file.states(self._broker, kind):
            try:
                found = make(key, value)
            except DamagedRow as damage:
                self.note("state", (kind, key), f"{damage}; it is left out")
                continue
            if found is not None:
                yield found


def _consumed(key: object, value: object) -> tuple[str, str, int, int]:
    (group, topic), queue_id = place_of_text(key, 2)
    return group, topic, queue_id, offset_of_text(value)


def _ended(key: object, value: object) -> tuple[str, int, int]:
    (topic,), queue_id = place_of_text(key, 1)
    return topic, queue_id, offset_of_text(value)


def _text_of(data: bytes) -> str | bytes:
    """Return a text of the file; bytes where it is none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _offset_key(group: str, topic: str, queue_id: int) -> str:
    return json.dumps([group, topic, queue_id])


def _error(path: Path, error: sqlite3.Error) -> SandboxError:
    if "locked" in str(error):
        return SandboxError(f"{path} is in use by another sandbox", "end it, or name another file")
    return SandboxError(f"{path}: {error}", "a sandbox keeps its messages in a sqlite3 file")
