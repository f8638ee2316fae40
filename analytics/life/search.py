"""Search rows of messages and exchanges in one pass, and collect those about matching messages.

A row identifies its message by a unique key, a place in a commit log, or a place in a queue.
Further identities are learned from its rows, so returns and offset commits are matched, too.
Memory is bounded by the limits below, and omissions are counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissectors.findings import FindingKind
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import FAULT, GROUP, fact_in, facts_in
from dissectors.rows.message_record import ACKNOWLEDGED, BEFORE, MessageRecord
from dissectors.rows.outcome import LONG_POLLS, is_send
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.relays import Relays

from .send_attempts import SendAttempts

MOST_MESSAGES: Final = 200
"""maximum messages; a business key with more matches does not identify a message"""
MOST_ROWS: Final = 2000
"""maximum rows of one message"""
MOST_PLACES: Final = 100
"""maximum queue places of one message: a copy per retry, under the broker's name and address"""
LOOK_BACK: Final = 20_000
"""rows kept in case their message is matched later: about 25 MiB"""
MOST_CLIENTS: Final = 65_536
"""maximum connections with a known client id"""
MOST_FETCHERS: Final = 4096
"""maximum topics and groups with known fetches, and groups that lock queues"""

MOST_FAULTS: Final = 10_000
"""maximum requests with a known injected fault"""
FAULT_INJECTED: Final = FindingKind.FAULT_INJECTED.name

Place = tuple[str, str, int, int]
"""broker, topic, queue, offset"""


@dataclass(slots=True)
class Found:
    """A matching message, and its rows."""

    rows: list[MessageRecord] = field(default_factory=list)
    """in capture order"""
    unique_key: str | None = None
    topic: str | None = None
    """original topic: one unique key may be sent to several, as by a forwarder"""
    left_out: int = 0
    """rows beyond the limit"""
    covered: dict[tuple[str | None, Place], MessageRecord] = field(default_factory=dict)
    """consumer group and place → the first later offset commit that covers it"""
    places: dict[Place, int] = field(default_factory=dict)
    """queue places → since when they are known"""
    faults: dict[tuple[str, int | None], str] = field(default_factory=dict)
    """capture and packet of any request → fault that rmqtool injected into it"""


class MessageSearch:
    """Search for the messages of a key, or of a filter of rows."""

    def __init__(self, key: str | None, test: Callable[[object], bool] | None = None) -> None:
        """Take `key` (unique key, offset message id, or key) or `test` (a filter of rows)."""
        self.messages: list[Found] = []
        """the messages, in the order of their first match"""
        self.messages_left_out = 0
        """rows about messages beyond the limit"""
        self.fetches: set[tuple[str, str]] = set()
        """topics and groups that fetched from them; only if requests were captured"""
        self.orderly: set[str] = set()
        """consumer groups that lock queues"""
        self.senders_seen = 0
        """number of send requests, of any message"""
        self.relays = Relays()
        """relays proved by sends captured on both sides"""
        self.client_ids: dict[tuple[int, str], str] = {}
        """conversation and address → client id, which a connection may announce after its first
        send"""
        self.attempts = SendAttempts()
        """attempts to send, of any message"""
        self.forgotten = 0
        """rows no longer available when a message was matched"""
        self.past: deque[MessageRecord] = deque(maxlen=LOOK_BACK)
        """the latest rows of no known message: a later row may show that they are of one"""
        self._key = key
        self._test = test
        self._by_key: dict[str, list[Found]] = {}
        self._by_record: dict[tuple[str, int], Found] = {}
        self._by_place: dict[Place, Found] = {}
        self._by_queue: dict[tuple[str, int], list[tuple[Place, Found]]] = {}
        self._faults: dict[tuple[str, int | None], str] = {}
        self._gone = 0

    def add(self, rows: Iterable[MessageRecord]) -> None:
        """Add rows of messages, in capture order."""
        for row in rows:
            if row.client_id is not None and len(self.client_ids) < MOST_CLIENTS:
                self.client_ids.setdefault((row.conversation, row.client_address), row.client_id)
            if not self._add(row):
                # A full deque drops its oldest row.
                self._gone += len(self.past) == LOOK_BACK
                self.past.append(row)

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add rows of exchanges: sends and fetches show what a capture can contain."""
        self.attempts.add(rows)
        for row in rows:
            name = row.request_name
            if FAULT_INJECTED in row.findings and len(self._faults) < MOST_FAULTS:
                self._faults[row.capture, row.request_packet] = fact_in(row.facts, FAULT) or ""
            if name is None:
                continue
            if name in LONG_POLLS and row.topic is not None and name != "NOTIFICATION":
                if len(self.fetches) < MOST_FETCHERS:
                    self.fetches.add((row.topic, row.group or ""))
            elif is_send(name):
                self.senders_seen += 1
                self.relays.add(row)
            elif (
                row.request_code == RequestCode.LOCK_BATCH_MQ and len(self.orderly) < MOST_FETCHERS
            ):
                self.orderly.update(facts_in(row.facts, GROUP))

    def _add(self, row: MessageRecord) -> bool:
        """Add a row; return whether it is about a matching message."""
        if row.covers == BEFORE:
            self._cover(row)
            return False  # kept for messages that are found later
        message = self._found_by(row)
        if message is None:
            if not self._is_wanted(row):
                return False
            if len(self.messages) >= MOST_MESSAGES:
                self.messages_left_out += 1
                return True
            message = Found(faults=self._faults)
            self.messages.append(message)
        if self._take(message, row):
            self._look_back()  # earlier rows may have only the identity that is known now
        return True

    def _is_wanted(self, row: MessageRecord) -> bool:
        key = self._key
        if key is not None:
            # ids are hexadecimal digits, which tools print in either case
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
            # one key may be sent to several topics, each of which is a message of its own
            topics = (None, row.original_topic)
            return next((found for found in same if found.topic in topics), None)
        if row.commit_log_offset is not None:
            for broker in _brokers(row):
                found = self._by_record.get((broker, row.commit_log_offset))
                # brokers that were set up anew begin with the same offsets again
                if found is not None and (
                    None in (row.unique_key, found.unique_key) or row.unique_key == found.unique_key
                ):
                    return found
        if row.unique_key is None and row.commit_log_offset is None:
            for place in _places(row):
                found = self._by_place.get(place)
                if found is not None:
                    return found
        return same[0] if same else None

    def _take(self, message: Found, row: MessageRecord) -> bool:
        """Keep a row and its identities of the message; return whether one is new."""
        if len(message.rows) >= MOST_ROWS:
            message.left_out += 1
            return False
        message.rows.append(row)
        is_new = False
        message.topic = message.topic or row.original_topic
        if row.unique_key is not None:
            message.unique_key = message.unique_key or row.unique_key
            same = self._by_key.setdefault(row.unique_key, [])
            if all(other is not message for other in same):  # `==` would compare all rows
                same.append(message)
                is_new = True
        if row.commit_log_offset is not None:
            for broker in _brokers(row):
                self._by_record.setdefault((broker, row.commit_log_offset), message)
        if row.event != ACKNOWLEDGED:
            for place in _places(row):
                if place not in message.places and len(message.places) < MOST_PLACES:
                    message.places[place] = row.time or 0
                    self._by_place[place] = message
                    queue = (place[1], place[2])
                    self._by_queue.setdefault(queue, []).append((place, message))
        return is_new

    def _look_back(self) -> None:
        """Search earlier rows for those about the messages that are known now."""
        self.forgotten = max(self.forgotten, self._gone)
        again = True
        while again:
            again = False
            kept: deque[MessageRecord] = deque(maxlen=LOOK_BACK)
            for row in self.past:
                if row.covers == BEFORE:
                    self._cover(row)
                    kept.append(row)
                    continue
                message = self._found_by(row)
                if message is None:
                    kept.append(row)
                else:
                    again = self._take(message, row) or again
            self.past = kept

    def _cover(self, row: MessageRecord) -> None:
        """Record a commit that covers a message at its place in the queue."""
        if row.topic is None or row.queue_id is None or row.queue_offset is None:
            return
        if row.event != ACKNOWLEDGED:
            return
        brokers = _brokers(row)
        for place, message in self._by_queue.get((row.topic, row.queue_id), ()):
            if place[0] not in brokers or place[3] >= row.queue_offset:
                continue
            if (row.time or 0) < message.places[place]:
                continue  # it cannot cover what was not there yet
            key = (row.consumer_group, place)
            before = message.covered.get(key)
            if before is None and len(message.covered) >= MOST_ROWS:
                message.left_out += 1
                continue
            if before is None or (row.time or 0) < (before.time or 0):
                message.covered[key] = row


def _brokers(row: MessageRecord) -> tuple[str, ...]:
    """Return the broker of a row by name, if known, and by address."""
    address = row.server_address
    return (address,) if row.broker_name is None else (row.broker_name, address)


def _places(row: MessageRecord) -> list[Place]:
    if row.topic is None or row.queue_id is None or row.queue_offset is None:
        return []
    return [(broker, row.topic, row.queue_id, row.queue_offset) for broker in _brokers(row)]
