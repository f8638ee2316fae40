"""Messages, topics and offsets in a sqlite3 file that survives a crash of the process.

Acknowledged data is in the file, because responses are written after the commit of their turn. One
file belongs to one sandbox at a time. A file may be damaged or hostile: reads are bounded by its
size, and every value is validated.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from dissectors.foreign import Unreadable, integer_of, json_of
from dissectors.remoting.framing.frame import MAX_FRAME
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages
from dissectors.temporary import PRIVATE, create_new

from ..configs import GroupConfig, TopicConfig, group_of_value, topic_of_value
from ..errors import SandboxError
from .shelf import StoredRecord, physical_offset_of

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
_DROP_MESSAGES: Final = "DELETE FROM message WHERE broker = ? AND physical_offset < ?"
_DROP_DONE: Final = (
    "DELETE FROM state WHERE broker = ? AND kind = 'done' AND CAST(key AS INTEGER) < ?"
)
_MOST_PROBLEMS: Final = 20
"""damaged rows described in texts"""
_SCHEMA: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 20"
_LONGEST: Final = MAX_FRAME
"""bytes of a value or row: a record came in a frame"""
_STEPS_AT_ONCE: Final = 10_000
"""steps of SQLite's machine that are counted together"""
_STEPS_PER_BYTE: Final = 10
"""steps that a statement may take for each byte of the file; reading a row takes some twenty"""
_FREE_STEPS: Final = 10_000_000
_ANOTHER: Final = "name another file; it will be created"
_Value = TypeVar("_Value")


class StoreFile:
    """The file of a sandbox."""

    def __init__(self, path: Path, on_waiting: Callable[[], None]) -> None:
        """Open or create the file; SandboxError if that fails.

        `on_waiting` is called when there is new data to commit.
        """
        self.path = path
        self.on_waiting = on_waiting
        self._waiting = False
        self._messages: list[tuple[str, int, *tuple[object, ...]]] = []
        self._states: dict[tuple[str, str, str], str | None] = {}
        self._statements: list[tuple[str, tuple[object, ...]]] = []
        self._failed = False
        _refuse_what_is_no_file(path)
        with contextlib.suppress(OSError):  # it exists, or sqlite3 reports the error
            # sqlite3 itself would create a file that others can read
            create_new(Path(path), PRIVATE).close()
        try:
            # isolation_level=None: transactions begin and end here, not in the module
            self._connection = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        except sqlite3.Error as error:
            raise SandboxError(f"{path} cannot be opened: {error}", setting="store") from None
        self._connection.text_factory = _text_of
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise self._error(error) from None
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        self._allow()
        # the schema of a foreign file may name functions, and its pages may be damaged on purpose
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA cell_size_check = ON")
        schema = run(_SCHEMA).fetchall()
        empty = not schema
        if not empty and run("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise SandboxError(f"{self.path} is not a store of a sandbox", _ANOTHER)
        if not empty and run("PRAGMA user_version").fetchone()[0] != _VERSION:
            raise SandboxError(f"{self.path} was made by another version of the sandbox", _ANOTHER)
        # a view, trigger, or generated column could change what is read and stored
        if not empty and (why := _why_not_ours(schema)):
            raise SandboxError(f"{self.path} is not a store of a sandbox: {why}", _ANOTHER)
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        # without an fsync a commit: a killed process loses nothing, a power failure the last moment
        run("PRAGMA synchronous = NORMAL")
        # locks the file for this process: a second sandbox fails here
        run("BEGIN IMMEDIATE")
        if empty:
            for statement in _TABLES.split(";"):
                run(statement)
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {_VERSION}")
        run("COMMIT")

    # -- limits ---------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes of the file and of its write-ahead log."""
        total = 0
        for name in (self.path, f"{self.path}-wal"):
            with contextlib.suppress(OSError):
                total += os.stat(name).st_size
        return total

    def _allow(self) -> None:
        """Limit the steps of the next statement by the size of the file."""
        looks = (_FREE_STEPS + _STEPS_PER_BYTE * self.size) // _STEPS_AT_ONCE
        # no Python function: an exception of a signal handler would be lost in its frame
        ends = partial(next, chain(repeat(0, looks), repeat(1)))
        self._connection.set_progress_handler(ends, _STEPS_AT_ONCE)

    def _error(self, error: sqlite3.Error) -> SandboxError:
        """Convert an SQLite error to a SandboxError that names the file."""
        if "locked" in str(error):
            hint = "stop it, or name another file"
            return SandboxError(f"{self.path} is in use by another sandbox", hint)
        if "interrupted" in str(error):
            return self.endless()
        hint = f"a sandbox keeps its messages in a sqlite3 file; {_ANOTHER}"
        return SandboxError(f"{self.path}: {error}", hint)

    def endless(self) -> SandboxError:
        """Return the error for more rows than fit the size of the file."""
        return SandboxError(f"{self.path} is damaged: its pages refer to each other", _ANOTHER)

    def journal(self, broker: str) -> BrokerJournal:
        """Return the journal of a broker."""
        return BrokerJournal(self, broker)

    # -- writing --------------------------------------------------------------------------------

    def put_message(self, row: tuple[str, int, *tuple[object, ...]]) -> None:
        """Queue a row of `message` for the next commit."""
        self._messages.append(row)
        if not self._waiting:
            self._wait()

    def put_state(self, broker: str, kind: str, key: str, value: str | None) -> None:
        """Queue a state for the next commit; None removes it. The last one of a turn wins."""
        self._states[(broker, kind, key)] = value
        if not self._waiting:
            self._wait()

    def forget(self, broker: str, below: int) -> None:
        """Drop rows left by a failed commit for messages below an offset."""
        if not self._failed:
            return
        self._messages = [row for row in self._messages if row[0] != broker or row[1] >= below]
        dropped = ((_DROP_MESSAGES, broker), (_DROP_DONE, broker))
        self._statements = [
            queued for queued in self._statements if (queued[0], queued[1][0]) not in dropped
        ]
        self._states = {
            place: value
            for place, value in self._states.items()
            if place[:2] != (broker, "done") or (integer_of(place[2]) or 0) >= below
        }

    def run(self, statement: str, values: tuple[object, ...]) -> None:
        """Queue a statement for the next commit; it runs after messages and states."""
        self._statements.append((statement, values))
        if not self._waiting:
            self._wait()

    def _wait(self) -> None:
        self._waiting = True
        self.on_waiting()

    def commit(self) -> None:
        """Write the queued data to the file; SandboxError if that fails."""
        if not self._waiting:
            return
        self._allow()
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
            # SQLite has ended the transaction itself after some errors
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            self._failed = True
            raise self._error(error) from None
        self._messages = []
        self._states = {}
        self._statements = []
        self._waiting = self._failed = False

    def close(self) -> None:
        """Commit and close the file."""
        try:
            self.commit()
        finally:
            self._connection.close()

    # -- reading --------------------------------------------------------------------------------

    def messages(self, broker: str, placed: bool) -> Iterator[tuple[object, ...]]:
        """Yield a broker's message rows, rowid first, by commit log offset.

        `placed`: rows whose offset is a number; otherwise the others, which are damaged.
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

    def has_state(self, broker: str, kind: str, key: str) -> bool:
        """Return whether a state with that key exists."""
        statement = "SELECT 1 FROM state WHERE broker = ? AND kind = ? AND key = ?"
        return any(True for _ in self._read(statement, broker, kind, key))

    def _read(self, statement: str, *values: str) -> Iterator[tuple[object, ...]]:
        self._allow()
        left = self.size
        try:
            for row in self._connection.execute(statement, values):
                # pages that refer to each other would give rows without end
                left -= sum(len(value) if isinstance(value, str | bytes) else 1 for value in row)
                if left < 0:
                    raise self.endless()
                yield row
        except sqlite3.Error as error:
            raise self._error(error) from None


class BrokerJournal:
    """The part of a file that belongs to one broker."""

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
        """Write a stored message."""
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
        """Drop evicted messages, those below a commit log offset."""
        self._file.forget(self._broker, below)
        self._file.run(_DROP_MESSAGES, (self._broker, below))
        self._file.run(_DROP_DONE, (self._broker, below))

    def put_end(self, topic: str, queue_id: int, offset: int) -> None:
        """Write the next offset of a queue without messages; topic "" is the commit log."""
        key = json.dumps([topic, queue_id])
        self._file.put_state(self._broker, "end", key, str(offset))

    def put_topic(self, config: TopicConfig) -> None:
        """Write a created or changed topic."""
        self._file.put_state(self._broker, "topic", config.name, json.dumps(config.value()))

    def drop_topic(self, topic: str) -> None:
        """Remove a topic with its queues."""
        self._file.put_state(self._broker, "topic", topic, None)
        statement = "DELETE FROM message WHERE broker = ? AND topic = ?"
        self._file.run(statement, (self._broker, topic))
        self._file.commit()  # messages stored later in a topic of that name must stay

    def put_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Write the offset of a group in a queue."""
        key = _offset_key(group, topic, queue_id)
        self._file.put_state(self._broker, "offset", key, str(offset))

    def drop_offset(self, group: str, topic: str, queue_id: int) -> None:
        """Remove an offset."""
        self._file.put_state(self._broker, "offset", _offset_key(group, topic, queue_id), None)

    def put_group(self, config: GroupConfig) -> None:
        """Write a created or changed group."""
        self._file.put_state(self._broker, "group", config.name, json.dumps(config.value()))

    def drop_group(self, group: str) -> None:
        """Remove a group."""
        self._file.put_state(self._broker, "group", group, None)

    def finish_message(self, physical_offset: int) -> None:
        """Remove a scheduled or half message that is settled."""
        self._file.put_state(self._broker, "done", str(physical_offset), "")

    # -- after a restart ------------------------------------------------------------------------

    def records(self, limit: int) -> Iterator[StoredRecord]:
        """Yield the messages in order, without damaged ones; see `blocked`.

        Raise SandboxError if those with a damaged offset, which are sorted in memory, exceed
        `limit` bytes.
        """
        lost: list[StoredRecord] = []
        held = 0
        for record in self._records(placed=False):
            lost.append(record)
            held += record.size
            if held > limit:
                raise self._file.endless()
        lost.sort(key=physical_offset_of)
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
        """Yield the (topic, queue, offset) left by evicted messages; "" is the commit log."""
        return self._states("end", _ended)

    def is_finished(self, physical_offset: int) -> bool:
        """Return whether the scheduled or half message at a commit log offset is settled."""
        return self._file.has_state(self._broker, "done", str(physical_offset))

    def _states(
        self, kind: str, make: Callable[[object, object], _Value | None]
    ) -> Iterator[_Value]:
        for key, value in self._file.states(self._broker, kind):
            try:
                state = make(key, value)
            except DamagedRow as damage:
                self.note("state", (kind, key), f"{damage}; it is left out")
                continue
            if state is not None:
                yield state


def _consumed(key: object, value: object) -> tuple[str, str, int, int]:
    (group, topic), queue_id = place_of_text(key, 2)
    return group, topic, queue_id, offset_of_text(value)


def _ended(key: object, value: object) -> tuple[str, int, int]:
    (topic,), queue_id = place_of_text(key, 1)
    return topic, queue_id, offset_of_text(value)


def _text_of(data: bytes) -> str | bytes:
    """Decode a text of the file; return bytes if it is invalid."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _offset_key(group: str, topic: str, queue_id: int) -> str:
    return json.dumps([group, topic, queue_id])


def _refuse_what_is_no_file(path: Path) -> None:
    """Raise SandboxError for a folder, pipe, or device: SQLite would wait for it or write to it."""
    with contextlib.suppress(OSError, ValueError):  # SQLite reports the error
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SandboxError(f"{path} is not a regular file", _ANOTHER)


def _why_not_ours(schema: Iterable[tuple[object, ...]]) -> str | None:
    """Return how a schema differs from ours, ignoring white space; None if it does not."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        memory.executescript(_TABLES)
        ours = {_plain(row) for row in memory.execute(_SCHEMA)}
    rows = {_plain(row) for row in schema}
    names = {row[:2] for row in ours}
    for kind, name, *_ in sorted(rows - ours):
        differs = "its own columns or conditions" if (kind, name) in names else "not ours"
        return f"{kind} {name[:60]!r} is {differs}"
    for kind, name, *_ in sorted(ours - rows):
        return f"{kind} {name!r} is missing"
    return None


def _plain(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(" ".join(str(value).split()) for value in row)


OFFSET_LIMIT: Final = 1 << 62
"""offsets are below: there is room to go on behind them"""
_QUEUES: Final = 1 << 31


class DamagedRow(Exception):
    """A row that cannot be used; the text says why."""


def record_of_row(row: tuple[object, ...]) -> tuple[StoredRecord, str | None]:
    """Return the record of a row of `message`, and the errors of its columns.

    The columns are data, topic, queue_id, queue_offset, physical_offset, store_ms, tag. Raise
    DamagedRow if the record itself is unreadable.
    """
    data, *columns = row
    if not isinstance(data, bytes):
        raise DamagedRow("its data is not a record")
    message = _message_of(data)
    tag = message.properties.get("TAGS", "")
    expected = [
        *(message.topic, message.queue_id, message.queue_offset),
        *(message.physical_offset, message.store_timestamp, tag),
    ]
    # The record wins over columns that contradict it: its bytes are what a pull delivers.
    record = StoredRecord(
        data,
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.store_timestamp,
        tag,
    )
    if columns == expected:
        return record, None
    names = ("topic", "queue_id", "queue_offset", "physical_offset", "store_ms", "tag")
    wrong = [
        f"{name} is {_shown(column)}, the record says {_shown(value)}"
        for name, column, value in zip(names, columns, expected, strict=True)
        if column != value
    ]
    return record, "; ".join(wrong)


def _message_of(data: bytes) -> StoredMessage:
    messages = decode_messages(data).messages
    if len(messages) != 1 or messages[0].missing or messages[0].total_size != len(data):
        raise DamagedRow("its data is not a whole record")
    message = messages[0]
    offsets = (message.physical_offset, message.queue_offset, message.store_timestamp)
    if not all(0 <= offset < OFFSET_LIMIT for offset in offsets):
        raise DamagedRow("its record has an impossible offset or time")
    if not message.topic or not 0 <= message.queue_id < _QUEUES:
        raise DamagedRow("its record has no topic or queue")
    return message


def object_of_text(value: object) -> dict[str, object]:
    """Parse a JSON object; DamagedRow if invalid."""
    parsed = _json_of(value)
    if not isinstance(parsed, dict):
        raise DamagedRow(f"{_shown(value)} is not a JSON object")
    return parsed


def place_of_text(value: object, names: int) -> tuple[list[str], int]:
    """Parse a JSON list of names and a queue id."""
    parsed = _json_of(value)
    if not isinstance(parsed, list) or len(parsed) != names + 1:
        raise DamagedRow(f"{_shown(value)} names no queue")
    *texts, queue_id = parsed
    if not all(isinstance(text, str) for text in texts):
        raise DamagedRow(f"{_shown(value)} names no queue")
    if type(queue_id) is not int or not 0 <= queue_id < _QUEUES:
        raise DamagedRow(f"{_shown(value)} names no queue")
    return texts, queue_id


def offset_of_text(value: object) -> int:
    """Parse an offset; DamagedRow if invalid."""
    number = integer_of(value) if isinstance(value, str) else None
    if number is not None and 0 <= number < OFFSET_LIMIT:
        return number
    raise DamagedRow(f"{_shown(value)} is not an offset")


_JSON: Final = msgspec.json.Decoder()


def _json_of(value: object) -> object:
    if not isinstance(value, str):
        raise DamagedRow(f"{_shown(value)} is not text")
    try:
        return json_of(_JSON, value)
    except Unreadable:
        raise DamagedRow(f"{_shown(value)} is not JSON") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
