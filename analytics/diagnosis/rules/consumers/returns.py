"""Messages returned by consumers (36 CONSUMER_SEND_MSG_BACK): how often, by whom, and dead letters.

Rules: a message is dead if it was returned more often than allowed, or with a limit of 0, as in the
retry report (`analytics.reports.retries`). Only returns accepted by the broker count. Numbers are
bounded.
RocketMQ: AbstractSendMessageProcessor.consumerSendMsgBack, MixAll.getRetryTopic, getDLQTopic.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, Final

from dissectors.remoting.row_facts.names import DEADLINE_MS, RECONSUMED
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord, MessageIdentity, identity_of

from ...keys import has_room, keep, state_in
from ...problem import Evidence, end_of, shown

MAX_DELIVERIES: Final = 256
"""maximum deliveries of one message; maxReconsumeTimes is 16 by default"""
MAX_CLIENTS: Final = 8
"""maximum clients of one message"""


@dataclass(slots=True)
class ReturnedMessage:
    """A message that a consumer group returned."""

    key: str
    """UNIQ_KEY, or the id in the return"""
    places: set[int] = field(default_factory=set)
    """commit log places of the returned deliveries, or gRPC deadlines: each delivery has its own"""
    unplaced: int = 0
    """returns without a place"""
    limit: int | None = None
    """maximum redeliveries; None: not in the requests"""
    at_once: bool = False
    """a return requested the dead letter topic directly"""
    topic: str = ""
    clients: Counter[str] = field(default_factory=Counter)
    """returns by `address:port`"""
    callers: set[str] = field(default_factory=set)
    """gRPC clients among them: the others are then the proxy"""
    first_time: int = 0
    last_time: int = 0
    last: Evidence | None = None
    """the last return"""
    reported: int = 0
    """failed deliveries in the message itself, or as a gRPC consumer counted them"""

    def span(self) -> tuple[int, int]:
        """Return the first and the last time of its returns."""
        return self.first_time, self.last_time

    @property
    def failures(self) -> int:
        """The number of returned deliveries; hops of a relay count once."""
        return max(len(self.places) + self.unplaced, self.reported)

    @property
    def dead(self) -> bool:
        """Whether the broker stored it in %DLQ%, as far as captured."""
        return self.at_once or (self.limit is not None and self.failures > self.limit)

    def take(self, place: int | None, limit: int | None, at_once: bool = False) -> None:
        """Add an accepted return: its place in the commit log, and its limit."""
        if place is None:
            self.unplaced += 1
        else:
            keep(self.places, place, MAX_DELIVERIES)
        if limit is not None:
            self.limit = limit if self.limit is None else max(self.limit, limit)
        self.at_once = self.at_once or at_once

    def note(self, row: ExchangeRecord, evidence: Evidence) -> None:
        """Add the client, the time, and the evidence of an exchange."""
        if has_room(self.clients, row.client_address, MAX_CLIENTS):
            self.clients[row.client_address] += 1
        time = end_of(row)
        self.first_time = min(self.first_time, time) if self.first_time else time
        self.last_time = max(self.last_time, time)
        self.last = evidence if self.last is None else max(self.last, evidence)

    def evidence(self) -> Evidence:
        """Return the last return."""
        assert self.last is not None
        return self.last


class Returns:
    """Returned messages of one group."""

    MAX_MESSAGES: ClassVar = 20_000

    def __init__(self) -> None:
        self.messages: dict[MessageIdentity, ReturnedMessage] = {}

    def add(self, row: ExchangeRecord) -> None:
        """Add a return that the broker accepted."""
        key = identity_of(row)
        if key is None:
            return
        one = state_in(self.messages, key, lambda: ReturnedMessage(key[0]), self.MAX_MESSAGES)
        if one is None:
            return
        called = is_call(row.request_name)
        attempts = number_in(row.facts, RECONSUMED) if called else None
        limit = row.max_reconsume_times
        if attempts is None:
            # a call has no place in the log, but a deadline, which is unique per delivery
            place = number_in(row.facts, DEADLINE_MS) if called else row.queue_offset
            one.take(place, limit, limit == 0)
        else:
            one.at_once, one.reported = True, max(one.reported, attempts, 1)
        one.topic = max(one.topic, row.topic or "")
        if called:
            one.callers.add(row.client_address)
        one.note(row, shown(row, f"return of {key[0]} accepted by {row.server_address}"))

    def dead(self) -> list[ReturnedMessage]:
        """Return the messages that went to %DLQ%, sorted by time."""
        dead = [message for message in self.messages.values() if message.dead]
        return sorted(dead, key=lambda item: (item.last_time, item.key))


def is_spent(made: int, most: int, orderly: bool) -> bool:
    """Return whether a broker stores a message in %DLQ% that a consumer sends to %RETRY% itself.

    `made` and `most` are the request's reconsumeTimes and maxReconsumeTimes.
    RocketMQ: SendMessageProcessor.handleRetryAndDLQ.
    """
    # Brokers of 4.x also move a message at the limit, and those of 5.x if the group holds locks. A
    # client of 4.x sends the messages of an orderly consumer at the limit, one of 5.x beyond it.
    return made > most or (made == most and orderly)
