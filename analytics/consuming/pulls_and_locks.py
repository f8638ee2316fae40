"""Pulls of a group: results, waiting times, reads from slaves; and its queue locks."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from ..diagnosis.rules.consumers.pull_from_slave import no_master
from .group_items import LOCKED, MICRO, GroupEvent, Rows
from .known import Known
from .sums import Spread

MAX_KINDS: Final = 20_000
"""clients, topics and results"""


class _Counts(msgspec.Struct, gc=False):
    first: int = 0
    """time of the first event, ns"""
    last: int = 0


class _Pulls(_Counts, gc=False):
    count: int = 0
    messages: int = 0
    waits: Spread = msgspec.field(default_factory=Spread)


class _Locks(_Counts, gc=False):
    requests: int = 0
    unanswered: int = 0
    asked: int = 0
    locked: int = 0
    short: int = 0
    """requests that did not lock all their queues"""
    unlocks: int = 0
    since: int | None = None
    """start of the current period in which locks were missing"""
    longest: int = 0


class _Slave(_Counts, gc=False):
    pulls: int = 0
    messages: int = 0
    suggested: int = 0
    clients: set[str] = set()


Key = TypeVar("Key")
Counts = TypeVar("Counts", bound=_Counts)


class PullsAndLocks:
    """Collects the pulls and locks of one group in order of time."""

    def __init__(self, group: str, known: Known) -> None:
        self._group = group
        self._known = known
        self._pulls: dict[tuple[str, str, str, str], _Pulls] = {}
        self._locks: dict[tuple[str, str], _Locks] = {}
        self._slaves: dict[tuple[str, str, str], _Slave] = {}
        """(topic, broker, address)"""
        self._suggested: dict[tuple[str, str], int] = {}
        """(client, broker) -> responses so far that suggested a slave"""
        self.left_out = 0

    def _counts_of(
        self, known: dict[Key, Counts], key: Key, event: GroupEvent, make: type[Counts]
    ) -> Counts | None:
        """Return the counts that an event belongs to, or None at the limit."""
        counts = known.get(key)
        if counts is None:
            if len(known) >= MAX_KINDS:
                self.left_out += 1
                return None
            counts = known[key] = make(first=event.time)
        counts.last = event.time
        return counts

    def pull(self, event: GroupEvent) -> None:
        """Add a pull or pop."""
        key = (event.topic or "", event.client, event.operation, event.result or "")
        pulls = self._counts_of(self._pulls, key, event, _Pulls)
        if pulls is None:
            return
        pulls.count += 1
        pulls.messages += event.messages or 0
        if event.answered is not None:
            pulls.waits.add((event.answered - event.time) // MICRO)
        self._slave(event)

    def _slave(self, event: GroupEvent) -> None:
        # a response suggests a slave for the next pulls of the client from this broker
        suggestion = (event.client, event.broker)
        if self._known.context.slave_id(event.address) is not None:
            key = (event.topic or "", event.broker, event.address)
            slave = self._counts_of(self._slaves, key, event, _Slave)
            if slave is None:
                return
            slave.pulls += 1
            slave.messages += event.messages or 0
            slave.suggested += suggestion in self._suggested
            slave.clients.add(event.client)
        elif event.from_broker is not None and len(self._suggested) < MAX_KINDS:
            self._suggested[suggestion] = self._suggested.get(suggestion, 0) + 1

    def lock(self, event: GroupEvent) -> None:
        """Add a lock or unlock request."""
        locks = self._counts_of(self._locks, (event.client, event.broker), event, _Locks)
        if locks is None:
            return
        if event.kind != LOCKED:
            locks.unlocks += 1
            locks.since = None  # the client gave its queues up: nothing is missing
            return
        locks.requests += 1
        asked, locked = event.asked, event.following
        # Without the response, nothing shows whether the broker gave the locks.
        if asked is None or locked is None:
            locks.unanswered += 1
            return
        locks.asked += asked
        locks.locked += locked
        if locked < asked:
            locks.short += 1
            locks.since = event.time if locks.since is None else locks.since
            locks.longest = max(locks.longest, event.time - locks.since)
        else:
            locks.since = None

    def pull_rows(self) -> Rows:
        """Return the rows of the table of pulls."""
        rows: Rows = []
        for (topic, client, operation, result), pulls in self._pulls.items():
            waits = pulls.waits.histogram()
            rows.append(
                {
                    "group": self._group,
                    "topic": topic or None,
                    "client": client,
                    "operation": operation,
                    "result": result,
                    "requests": pulls.count,
                    "messages": pulls.messages,
                    "p50_us": waits.percentile(50),
                    "p99_us": waits.percentile(99),
                    "max_us": waits.maximum,
                    "first_time": pulls.first // MICRO,
                    "last_time": pulls.last // MICRO,
                }
            )
        return rows

    def lock_rows(self) -> Rows:
        """Return the rows of the table of locks."""
        return [
            {
                "group": self._group,
                "client": client,
                "broker": broker,
                "requests": locks.requests,
                "queues_asked": locks.asked,
                "queues_locked": locks.locked,
                "not_all": locks.short,
                "longest_us": locks.longest // MICRO if locks.short else None,
                "unanswered": locks.unanswered,
                "unlocks": locks.unlocks,
                "first_time": locks.first // MICRO,
                "last_time": locks.last // MICRO,
            }
            for (client, broker), locks in self._locks.items()
        ]

    def slave_rows(self) -> Rows:
        """Return the rows of the table of reads from slaves."""
        return [
            {
                "group": self._group,
                "topic": topic or None,
                "broker": broker,
                "address": address,
                "broker_id": self._known.context.slave_id(address),
                "pulls": slave.pulls,
                "messages": slave.messages,
                "why": self._why(broker, slave),
                "clients": sorted(slave.clients),
                "first_time": slave.first // MICRO,
                "last_time": slave.last // MICRO,
            }
            for (topic, broker, address), slave in self._slaves.items()
        ]

    def _why(self, broker: str, slave: _Slave) -> str:
        if no_master(self._known.context, broker):
            return "no master"
        return "told by the master" if slave.suggested else "not seen"
