"""Rows of messages and exchanges in, one pass; the rows about the messages that are looked for out.

A row says which message it is about by a unique key, a place in a commit log, or a place in a
queue. What a message is called is learned from its rows, so a send back and an offset commit find
it, too. What comes before a message was recognised is looked up among the last rows. Memory is
bounded by the limits below, and what they leave out is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.rows.message_record import ACKNOWLEDGED, BEFORE, MessageRecord
from dissectors.rows.outcome import LONG_POLLS, is_send
from dissectors.rows.record import ExchangeRecord

MOST_MESSAGES: Final = 200
"""messages that are followed; a business key that names more is not a name of one"""
MOST_ROWS: Final = 2000
"""rows of one message"""
MOST_PLACES: Final = 100
"""places of one message in queues: a copy for each retry, under the broker's name and address"""
LOOK_BACK: Final = 20_000
"""rows that are kept in case they are about a message that is recognised later: some 25 MiB"""
MOST_CLIENTS: Final = 65_536
"""connections of which the client id is kept"""
MOST_FETCHERS: Final = 4096
"""topics and groups of which it is known that somebody fetches"""

Place = tuple[str, str, int, int]
"""broker, topic, queue, offset"""


@dataclass(slots=True)
class Found:
    """A message that is looked for, and the rows about it."""

    rows: list[MessageRecord] = field(default_factory=list)
    """in the order they were seen"""
    unique_key: str | None = None
    topic: str | None = None
    """topic that it was sent to: one unique key may be sent to several, as by a forwarder"""
    left_out: int = 0
    """rows beyond the limit"""
    covered: dict[tuple[str | None, Place], MessageRecord] = field(default_factory=dict)
    """consumer group and place → the first offset commit after it that covers it"""
    places: dict[Place, int] = field(default_factory=dict)
    """where it was in a queue → since when that is known"""


@dataclass(slots=True)
class Fetches:
    """That a group fetched messages of a topic."""

    requests: int = 0
    first_time: int | None = None
    last_time: int | None = None


class MessageSearch:
    """Looks for the messages of a key, or of a test of rows."""

    def __init__(self, key: str | None, test: Callable[[object], bool] | None = None) -> None:
        """`key`: a unique key, an offset message id or a key; `test`: a filter of rows."""
        self.messages: list[Found] = []
        """the messages, in the order they were recognised"""
        self.messages_left_out = 0
        """rows about messages beyond the limit"""
        self.fetches: dict[tuple[str, str], Fetches] = {}
        """topic and group → what is known of fetching; only where requests were seen"""
        self.senders_seen = 0
        """requests to send that were seen, of whatever message"""
        self.client_ids: dict[tuple[int, str], str] = {}
        """conversation and address → client id, which a connection may name after its first send"""
        self.forgotten = 0
        """rows that were no longer there when a message was recognised"""
        self._key = key
        self._test = test
        self._by_key: dict[str, list[Found]] = {}
        self._by_record: dict[tuple[str, int], Found] = {}
        self._by_place: dict[Place, Found] = {}
        self._by_queue: dict[tuple[str, int], list[tuple[Place, Found]]] = {}
        self._past: deque[MessageRecord] = deque(maxlen=LOOK_BACK)
        self._gone = 0

    def add(self, rows: Iterable[MessageRecord]) -> None:
        """Take rows of messages, in the order of the capture."""
        for row in rows:
            if row.client_id is not None and len(self.client_ids) < MOST_CLIENTS:
                self.client_ids.setdefault((row.conversation, row.client_address), row.client_id)
            if not self._add(row):
                self._gone += len(self._past) == LOOK_BACK
                self._past.append(row)

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take rows of exchanges: who sends and who fetches says what a capture can show."""
        for row in rows:
            name = row.request_name
            if name is None:
                continue
            if name in LONG_POLLS and row.topic is not None and name != "NOTIFICATION":
                self._note_fetch(row.topic, row.group or "", row.request_time)
            elif is_send(name):
                self.senders_seen += 1

    def _note_fetch(self, topic: str, group: str, time: int | None) -> None:
        fetches = self.fetches.get((topic, group))
        if fetches is None:
            if len(self.fetches) >= MOST_FETCHERS:
                return
            fetches = self.fetches[topic, group] = Fetches(0, time)
        fetches.requests += 1
        fetches.last_time = time

    def _add(self, row: MessageRecord) -> bool:
        """Take a row; return whether it is about a message that is looked for."""
        if row.covers == BEFORE:
            self._cover(row)
            return False
        found = self._found_by(row)
        if found is None:
            if not self._is_wanted(row):
                return False
            if len(self.messages) >= MOST_MESSAGES:
                self.messages_left_out += 1
                return True
            found = Found()
            self.messages.append(found)
        if self._take(found, row):
            self._look_back()
        return True

    def _is_wanted(self, row: MessageRecord) -> bool:
        key = self._key
        if key is not None:
            folded = key.upper()
            named = (
                row.unique_key == key
                or (row.unique_key or "").upper() == folded
                or (row.offset_msg_id or "").upper() == folded
                or (row.keys is not None and key in row.keys.split())
            )
            if not named:
                return False
        return self._test is None or self._test(row)

    def _found_by(self, row: MessageRecord) -> Found | None:
        same = self._by_key.get(row.unique_key, ()) if row.unique_key is not None else ()
        if same and row.original_topic is not None:
            topics = (None, row.original_topic)
            return next((found for found in same if found.topic in topics), None)
        if row.commit_log_offset is not None:
            for broker in _brokers(row):
                found = self._by_record.get((broker, row.commit_log_offset))
                if found is not None and row.unique_key in (None, found.unique_key):
                    return found
        if row.unique_key is None and row.commit_log_offset is None:
            for place in _places(row):
                found = self._by_place.get(place)
                if found is not None:
                    return found
        return same[0] if same else None

    def _take(self, found: Found, row: MessageRecord) -> bool:
        """Keep a row and what the message is called in it; return whether a name is new."""
        if len(found.rows) >= MOST_ROWS:
            found.left_out += 1
            return False
        found.rows.append(row)
        is_new = False
        found.topic = found.topic or row.original_topic
        if row.unique_key is not None:
            found.unique_key = found.unique_key or row.unique_key
            same = self._by_key.setdefault(row.unique_key, [])
            if all(one is not found for one in same):
                same.append(found)
                is_new = True
        if row.commit_log_offset is not None and row.unique_key is not None:
            for broker in _brokers(row):
                self._by_record.setdefault((broker, row.commit_log_offset), found)
        if row.event != ACKNOWLEDGED:
            for place in _places(row):
                if place not in found.places and len(found.places) < MOST_PLACES:
                    found.places[place] = row.time or 0
                    self._by_place[place] = found
                    queue = (place[1], place[2])
                    self._by_queue.setdefault(queue, []).append((place, found))
        return is_new

    def _look_back(self) -> None:
        """Look among the rows of the past for those about the messages that are known now."""
        self.forgotten = max(self.forgotten, self._gone)
        again = True
        while again:
            again = False
            kept: deque[MessageRecord] = deque(maxlen=LOOK_BACK)
            for row in self._past:
                if row.covers == BEFORE:
                    self._cover(row)
                    kept.append(row)
                    continue
                found = self._found_by(row)
                if found is None:
                    kept.append(row)
                else:
                    again = self._take(found, row) or again
            self._past = kept

    def _cover(self, row: MessageRecord) -> None:
        """Note a commit that covers a message where it was in the queue."""
        if row.topic is None or row.queue_id is None or row.queue_offset is None:
            return
        if row.event != ACKNOWLEDGED:
            return
        brokers = _brokers(row)
        for place, found in self._by_queue.get((row.topic, row.queue_id), ()):
            if place[0] not in brokers or place[3] >= row.queue_offset:
                continue
            if (row.time or 0) < found.places[place]:
                continue
            key = (row.consumer_group, place)
            before = found.covered.get(key)
            if before is None or (row.time or 0) < (before.time or 0):
                found.covered[key] = row


def _brokers(row: MessageRecord) -> tuple[str, ...]:
    """Return what the broker of a row is called: by name, where that is known, and address."""
    address = row.broker_address
    return (address,) if row.broker_name is None else (row.broker_name, address)


def _places(row: MessageRecord) -> list[Place]:
    if row.topic is None or row.queue_id is None or row.queue_offset is None:
        return []
    return [(broker, row.topic, row.queue_id, row.queue_offset) for broker in _brokers(row)]
