"""Messages that consumers return (36 CONSUMER_SEND_MSG_BACK): how often, by whom, which are dead.

Rules: a message is dead where it was returned more often than it may be, or with a limit of 0; so
says the retry report too (`analytics.reports.retries`). Only returns that the broker accepted
count. Numbers are bounded.
RocketMQ: AbstractSendMessageProcessor.consumerSendMsgBack, MixAll.getRetryTopic, getDLQTopic.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar, Final

from dissectors.remoting.row_facts.names import RECONSUMED
from dissectors.remoting.row_facts.values import number_in
from dissectors.remoting.topic_names import DLQ_PREFIX, RETRY_PREFIX
from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord, MessageIdentity, identity_of

from ...problem import Evidence, end_of, place_of, shown

MAX_DELIVERIES: Final = 256
"""of one message; maxReconsumeTimes is 16 by default"""


@dataclass(slots=True)
class ReturnedMessage:
    """A message that a consumer group returned."""

    key: str
    """UNIQ_KEY, else the id that the consumer gave"""
    places: set[int] = field(default_factory=set)
    """places in the log of the deliveries that were returned: each delivery has its own"""
    unplaced: int = 0
    """returns that name none"""
    limit: int | None = None
    """how often it may be delivered again; None: the requests do not say"""
    at_once: bool = False
    """a return asked for the dead letters"""
    topic: str = ""
    clients: Counter[str] = field(default_factory=Counter)
    """returns by `address:port`"""
    callers: set[str] = field(default_factory=set)
    """those of them that speak gRPC: others are then the proxy"""
    first_time: int = 0
    last_time: int = 0
    last: Evidence | None = None
    """the last return"""
    told: int = 0
    """deliveries that a consumer of gRPC counted itself, when it gave the message up"""

    def span(self) -> tuple[int, int]:
        """Return the first and the last time that it was returned."""
        return self.first_time, self.last_time

    @property
    def failures(self) -> int:
        """Deliveries that were returned; the hops of a relay are one."""
        return max(len(self.places) + self.unplaced, self.told)

    @property
    def dead(self) -> bool:
        """Whether the broker stored it in %DLQ%, as far as the capture shows."""
        return self.at_once or (self.limit is not None and self.failures > self.limit)

    def take(self, place: int | None, limit: int | None, at_once: bool = False) -> None:
        """Take a return that the broker accepted: of a place in the log, with a limit."""
        if place is None:
            self.unplaced += 1
        elif len(self.places) < MAX_DELIVERIES:
            self.places.add(place)
        if limit is not None:
            self.limit = limit if self.limit is None else max(self.limit, limit)
        self.at_once = self.at_once or at_once

    def evidence(self) -> Evidence:
        """Return the last return."""
        assert self.last is not None
        return self.last


class Returns:
    """Returned messages of one group."""

    MAX_MESSAGES: ClassVar = 20_000

    def __init__(self) -> None:
        self.messages: dict[MessageIdentity, ReturnedMessage] = {}
        self.left_out = 0
        """returns of further messages"""

    def add(self, row: ExchangeRecord) -> None:
        """Take a return that the broker accepted."""
        key = identity_of(row)
        if key is None:
            return
        one = self.messages.get(key)
        if one is None:
            if len(self.messages) >= self.MAX_MESSAGES:
                self.left_out += 1
                return
            one = self.messages[key] = ReturnedMessage(key[0])
        attempts = number_in(row.facts, RECONSUMED) if is_call(row.request_name) else None
        limit = row.max_reconsume_times
        if attempts is None:
            one.take(row.queue_offset, limit, limit == 0)
        else:
            one.at_once, one.told = True, max(one.told, attempts, 1)
        one.topic = max(one.topic, row.topic or "")
        if row.requester in one.clients or len(one.clients) < 8:
            one.clients[row.requester] += 1
        if attempts is not None:
            one.callers.add(row.requester)
        time = end_of(row)
        one.first_time = min(one.first_time, time) if one.first_time else time
        one.last_time = max(one.last_time, time)
        evidence = shown(row, f"return of {key[0]} accepted by {row.responder}")
        if one.last is None or place_of(evidence) > place_of(one.last):
            one.last = evidence

    def dead(self) -> list[ReturnedMessage]:
        """Return the messages that went to %DLQ%, by time."""
        found = [one for one in self.messages.values() if one.dead]
        return sorted(found, key=lambda one: (one.last_time, one.key))


def group_of(topic: str) -> str:
    """Return the group of a `%RETRY%` or `%DLQ%` topic, with its namespace where there is one."""
    for mark in (RETRY_PREFIX, DLQ_PREFIX):
        space, found, group = topic.partition(mark)
        if found:
            return f"{space}{group}"
    return topic
