"""Evidence about messages in copies of broker stores: copies, places, consumers.

A message is looked up by UNIQ_KEY and topic in one pass over the logs. A message that waits in an
internal topic (delayed, half) counts as a copy only until the broker moves it on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..budget import Budget
from ..endpoint import split_endpoint
from ..message_rows.seen_exchange import MILLI
from ..ports import VIP_BELOW
from ..remoting.ids.message_ids import encode_offset_id
from ..remoting.messages.batch import unwrap_inner_batch
from ..remoting.messages.message import StoredMessage
from ..remoting.topic_names import CHECKED_OUT_TOPIC, HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from ..rows.message_record import COMMITTED
from .group_offsets import offsets_of
from .half_messages import StoredHalfEnd, is_check
from .store_folder import StoreFolder, store_in

MOST_COPIES: Final = 1000
"""maximum copies kept of one message"""
_WAITING: Final = frozenset((SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC))


class StoredCopy(NamedTuple):
    """A stored copy of a message."""

    broker: str
    """`address:port`, as the broker wrote it"""
    topic: str
    queue_id: int
    queue_offset: int
    offset: int
    """commit log offset"""
    time: int
    """store time by the broker's clock, ns since the epoch"""
    visible: bool | None
    """its consume queue refers to it; None: unknown"""
    in_log: bool = True
    """False: only the index has it; the log file is not in the copy of the store"""


@dataclass(slots=True)
class StoredHalfState:
    """State of a half message."""

    outcome: str | None = None
    """as in `StoredHalfEnd`; None: open at the end of the log"""
    time: int | None = None
    """store time of the outcome, ns since the epoch"""
    checks: int = 0
    """number of times that a check stored it again"""


class StoreSpan(NamedTuple):
    """Brokers of a store, and the time range of its log."""

    brokers: frozenset[tuple[str, int]]
    """host and port, as the broker wrote them"""
    first_time: int
    """ns since the epoch"""
    last_time: int
    damaged: int
    """number of damaged or missing places before the end of the log"""


@dataclass(slots=True)
class StoreEvidence:
    """Evidence in stores. `look_up` reads the logs; results are cached."""

    stores: list[StoreFolder]
    copies: dict[str, list[StoredCopy]] = field(default_factory=dict)
    """UNIQ_KEY → its copies in any topic, in log order"""
    halves: dict[str, StoredHalfState] = field(default_factory=dict)
    """UNIQ_KEY → state of the half message"""
    spans: list[StoreSpan] = field(default_factory=list)
    """spans of the stores; empty before the first lookup"""
    _known: set[str] = field(default_factory=set)

    @property
    def notes(self) -> list[str]:
        """Unreadable parts of the stores."""
        return [line for store in self.stores for line in store.notes]

    def look_up(self, messages: Mapping[str, str]) -> None:
        """Look up messages (UNIQ_KEY → topic) that are not cached.

        Raise CaptureError if a file cannot be read.
        """
        missing = {key: topic for key, topic in messages.items() if key not in self._known}
        if not missing:
            return
        self._known.update(missing)
        self.spans = []
        for store in self.stores:
            self._read(store, missing)

    def copies_of(self, key: str, topic: str) -> list[StoredCopy]:
        """Return the copies of a message sent to a topic; waiting ones only if the broker has not
        moved them on.
        """
        own = [copy for copy in self.copies.get(key, ()) if copy.topic in (topic, *_WAITING)]
        final = [copy for copy in own if copy.topic == topic]
        # a timer stores a message again at each roll
        rolled = [copy for copy in own if copy.topic == TIMER_TOPIC][:1]
        return final or [copy for copy in own if copy.topic != TIMER_TOPIC] or rolled

    def number_stored(self, key: str, topic: str, known: Collection[str]) -> int:
        """Return the known number of times that a message was stored for its producer.

        `known`: offset message ids in responses of brokers, also for stores that are not here. If
        the message first waits, they are those of the waiting records.
        """
        copies = self.copies.get(key, ())
        final = [copy for copy in copies if copy.topic == topic]
        waiting = [copy for copy in copies if copy.topic in (SCHEDULE_TOPIC, HALF_TOPIC)]
        if not waiting and any(copy.topic == TIMER_TOPIC for copy in copies):
            return max(len(known), len(final), 1)
        first = {encode_offset_id(copy.broker, copy.offset) for copy in waiting or final}
        return len(first.union(known))

    def covers(self, broker: str, time: int) -> bool:
        """Return whether a store would contain a message that a broker stored at a time (ns).

        False also if the log does not cover that time, or is damaged.
        """
        place = split_endpoint(broker)
        return place is not None and any(
            # The message may have been sent over the VIP channel of the broker.
            (place in span.brokers or (place[0], place[1] + VIP_BELOW) in span.brokers)
            and span.first_time <= time <= span.last_time
            and not span.damaged
            for span in self.spans
        )

    def passed_by(self, copy: StoredCopy) -> tuple[list[str], list[str]]:
        """Return the groups that are past a copy in its queue, and those that are not."""
        passed: list[str] = []
        behind: list[str] = []
        for store, span in zip(self.stores, self.spans, strict=True):
            if split_endpoint(copy.broker) in span.brokers:
                for own in offsets_of(store.offsets, copy.topic, copy.queue_id):
                    (passed if own.offset > copy.queue_offset else behind).append(own.group)
        return passed, behind

    def _read(self, store: StoreFolder, wanted: Mapping[str, str]) -> None:
        brokers: set[tuple[str, int]] = set()
        host = ""
        first = last = damaged = 0
        log_begin = None
        budget = Budget()
        for record in store.records():
            message = record.entry.message
            damaged += record.after_gap
            if message is None:
                continue
            if log_begin is None:
                log_begin = message.physical_offset
            time = message.store_timestamp * MILLI
            first, last = first or time, max(last, time)
            if message.store_host != host:  # usually one, but a broker may get another address
                host = message.store_host
                place = split_endpoint(host)
                if place is not None and len(brokers) < MOST_COPIES:
                    brokers.add(place)
            for end in record.ends:
                self._end(end, wanted)
            budget.earn(len(message.body))
            for inner in unwrap_inner_batch(message, budget=budget):
                if inner.unique_key in wanted:
                    self._take(store, inner)
        self.spans.append(StoreSpan(frozenset(brokers), first, last, damaged))
        if store.index is not None and log_begin:
            self._take_indexed(store, wanted, log_begin, host)

    def _take(self, store: StoreFolder, message: StoredMessage) -> None:
        key = message.unique_key
        assert key is not None
        if message.topic == HALF_TOPIC:
            half = self.halves.setdefault(key, StoredHalfState())
            if is_check(message):
                half.checks += 1
                return
        if message.topic == CHECKED_OUT_TOPIC:
            return
        copies = self.copies.setdefault(key, [])
        if len(copies) < MOST_COPIES:
            copies.append(
                StoredCopy(
                    message.store_host,
                    message.topic,
                    message.queue_id,
                    message.queue_offset,
                    message.physical_offset,
                    message.store_timestamp * MILLI,
                    store.visible(message),
                )
            )

    def _take_indexed(
        self, store: StoreFolder, wanted: Mapping[str, str], log_begin: int, host: str
    ) -> None:
        """Add entries that only the index has: records before the first log file of the copy."""
        assert store.index is not None
        for key, topic in wanted.items():
            for hit in store.index.hits(topic, key):
                if hit.offset < log_begin:
                    copies = self.copies.setdefault(key, [])
                    copies.append(
                        StoredCopy(
                            host, topic, -1, -1, hit.offset, hit.time * MILLI, None, in_log=False
                        )
                    )

    def _end(self, end: StoredHalfEnd, wanted: Collection[str]) -> None:
        key = end.half.unique_key
        if key is None or key not in wanted:
            return
        half = self.halves.setdefault(key, StoredHalfState())
        # Checks store a half message again; what becomes of another copy does not undo a commit.
        if half.outcome != COMMITTED:
            half.outcome = end.outcome
            half.time = end.record.store_timestamp * MILLI


def evidence_in(folders: Iterable[str]) -> StoreEvidence:
    """Return the evidence of these stores; raise CaptureError if a folder is not a store."""
    return StoreEvidence([store_in(folder) for folder in folders])
