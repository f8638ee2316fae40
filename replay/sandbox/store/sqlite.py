"""Messages, topics and offsets in a sqlite3 file that survives a crash of the process.

Rules: what was answered is in the file, because answers are written after the commit of their turn.
The write-ahead log goes to the operating system with each commit and not to the platter: a process
that is killed loses nothing, a machine that loses its power may lose the last moment. One file
belongs to one sandbox at a time. Another sandbox's file, or no such file at all, is refused.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from .errors import SandboxError
from .groups import GroupConfig, group_of_value
from .shelf import Record
from .topics import TopicConfig, topic_of_value

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
_State = tuple[str, str, str, str | None]


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
        try:
            self._connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except sqlite3.Error as error:
            raise SandboxError(f"{path} cannot be opened: {error}") from None
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
                f"{self.path} is no store of a sandbox", "name another file; it will be made"
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
        """What a broker of that name writes to."""
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

    def records(self, broker: str) -> Iterator[Record]:
        """The messages of a broker in order."""
        rows = self._read(
            "SELECT data, topic, queue_id, queue_offset, physical_offset, store_ms, tag "
            "FROM message WHERE broker = ? ORDER BY physical_offset",
            broker,
        )
        for row in rows:
            yield Record(*row)

    def states(self, broker: str, kind: str) -> Iterator[tuple[str, str]]:
        """(key, value) of the states of one kind."""
        statement = "SELECT key, value FROM state WHERE broker = ? AND kind = ?"
        yield from self._read(statement, broker, kind)

    def _read(self, statement: str, *values: str) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise _error(self.path, error) from None


class BrokerJournal:
    """The part of a file that belongs to one broker; a `Journal`."""

    def __init__(self, file: StoreFile, broker: str) -> None:
        self._file = file
        self._broker = broker

    def put_message(self, record: Record) -> None:
        """A message was stored."""
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
        """Messages below a commit log offset were forgotten."""
        statement = "DELETE FROM message WHERE broker = ? AND physical_offset < ?"
        self._file.run(statement, (self._broker, below))
        statement = (
            "DELETE FROM state WHERE broker = ? AND kind = 'done' AND CAST(key AS INTEGER) < ?"
        )
        self._file.run(statement, (self._broker, below))

    def put_end(self, topic: str, queue_id: int, offset: int) -> None:
        """A queue whose messages are all forgotten goes on at an offset; "" is the commit log."""
        key = json.dumps([topic, queue_id])
        self._file.put_state(self._broker, "end", key, str(offset))

    def put_topic(self, config: TopicConfig) -> None:
        """A topic was made or changed."""
        self._file.put_state(self._broker, "topic", config.name, json.dumps(config.value()))

    def drop_topic(self, topic: str) -> None:
        """A topic is gone, with its queues."""
        self._file.put_state(self._broker, "topic", topic, None)
        statement = "DELETE FROM message WHERE broker = ? AND topic = ?"
        self._file.run(statement, (self._broker, topic))
        self._file.commit()  # what is stored in a topic of that name from now on must stay

    def put_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """A group is so far in a queue."""
        key = _offset_key(group, topic, queue_id)
        self._file.put_state(self._broker, "offset", key, str(offset))

    def drop_offset(self, group: str, topic: str, queue_id: int) -> None:
        """An offset is gone."""
        self._file.put_state(self._broker, "offset", _offset_key(group, topic, queue_id), None)

    def put_group(self, config: GroupConfig) -> None:
        """A group was made or changed."""
        self._file.put_state(self._broker, "group", config.name, json.dumps(config.value()))

    def drop_group(self, group: str) -> None:
        """A group is gone."""
        self._file.put_state(self._broker, "group", group, None)

    def finish_message(self, physical_offset: int) -> None:
        """A scheduled or half message is done with."""
        self._file.put_state(self._broker, "done", str(physical_offset), "")

    # -- after a restart ------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """The messages in order."""
        return self._file.records(self._broker)

    def topics(self) -> Iterator[TopicConfig]:
        """The topics."""
        for _, value in self._file.states(self._broker, "topic"):
            config = topic_of_value(json.loads(value))
            if config is not None:
                yield config

    def groups(self) -> Iterator[GroupConfig]:
        """The groups."""
        for _, value in self._file.states(self._broker, "group"):
            config = group_of_value(json.loads(value))
            if config is not None:
                yield config

    def offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """(group, topic, queue, offset)."""
        for key, value in self._file.states(self._broker, "offset"):
            group, topic, queue_id = json.loads(key)
            yield group, topic, queue_id, int(value)

    def ends(self) -> Iterator[tuple[str, int, int]]:
        """(topic, queue, offset) that forgotten messages have left; topic "" is the commit log."""
        for key, value in self._file.states(self._broker, "end"):
            topic, queue_id = json.loads(key)
            yield topic, queue_id, int(value)

    def finished(self) -> set[int]:
        """Commit log offsets of scheduled and half messages that are done with."""
        return {int(key) for key, _ in self._file.states(self._broker, "done")}


def _offset_key(group: str, topic: str, queue_id: int) -> str:
    return json.dumps([group, topic, queue_id])


def _error(path: Path, error: sqlite3.Error) -> SandboxError:
    if "locked" in str(error):
        return SandboxError(f"{path} is in use by another sandbox", "end it, or name another file")
    return SandboxError(f"{path}: {error}", "a sandbox keeps its messages in a sqlite3 file")
