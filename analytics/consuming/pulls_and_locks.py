"""Pulls of a group: results, waiting times, reads from slaves; and its queue locks."""

from __future__ import annotations

from typing import Final

import msgspec

from ..diagnosis.rules.consumers.pull_from_slave import no_master
from .group_items import LOCKED, GroupEvent
from .known import Known
from .sums import Spread

Rows = list[dict[str, object]]
MAX_KINDS: Final = 20_000
"""clients, topics and results"""
MICRO: Final = 1000


class _Pulls(msgspec.Struct, gc=False):
    count: int = 0
    messages: int = 0
    waits: Spread = msgspec.field(default_factory=Spread)
    first: int = 0
    last: int = 0


class _Locks(msgspec.Struct, gc=False):
    requests: int = 0
    unanswered: int = 0
    asked: int = 0
    locked: int = 0
    short: int = 0
    """requests that did not lock all their queues"""
    unlocks: int = 0
    first: int = 0
    last: int = 0
    since: int | None = None
    """start of the current period in which locks were missing"""
    longest: int = 0


class _Slave(msgspec.Struct, gc=False):
    pulls: int = 0
    messages: int = 0
    suggested: int = 0
    first: int = 0
    last: int = 0
    clients: set[str] = set()


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

    def pull(self, event: GroupEvent) -> None:
        """Add a pull or pop."""
        key = (event.topic or "", event.client, event.operation, event.result or "")
        pulls = self._pulls.get(key)
        if pulls is None:
            if len(self._pulls) >= MAX_KINDS:
                self.left_out += 1
                return
            pulls = self._pulls[key] = _Pulls(first=event.time)
        pulls.count += 1
        pulls.messages += event.messages or 0
        pulls.last = event.time
        if event.answered is not None:
            pulls.waits.add((event.answered - event.time) // MICRO)
        self._slave(event)

    def _slave(self, event: GroupEvent) -> None:
        suggestion = (event.client, event.broker)
        if self._known.context.slave_id(event.address) is not None:
            key = (event.topic or "", event.broker, event.address)
            slave = self._slaves.get(key)
            if slave is None:
                if len(self._slaves) >= MAX_KINDS:
                    self.left_out += 1
                    return
                slave = self._slaves[key] = _Slave(first=event.time)
            slave.pulls += 1
            slave.messages += event.messages or 0
            slave.suggested += suggestion in self._suggested
            slave.last = event.time
            slave.clients.add(event.client)
        elif event.from_broker is not None and len(self._suggested) < MAX_KINDS:
            self._suggested[suggestion] = self._suggested.get(suggestion, 0) + 1

    def lock(self, event: GroupEvent) -> None:
        """Add a lock or unlock request."""
        key = (event.client, event.broker)
        locks = self._locks.get(key)
        if locks is None:
            if len(self._locks) >= MAX_KINDS:
                self.left_out += 1
                return
            locks = self._locks[key] = _Locks(first=event.time)
        locks.last = event.time
        if event.kind != LOCKED:
            locks.unlocks += 1
            locks.since = None
            return
        locks.requests += 1
        asked, locked = event.asked, event.following
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
        rows: Rows = [
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
        return rows

    def slave_rows(self) -> Rows:
        """Return the rows of the table of reads from slaves."""
        rows: Rows = [
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
        return rows

    def _why(self, broker: str, slave: _Slave) -> str:
        if no_master(self._known.context, broker):
            return "no master"
        return "told by the master" if slave.suggested else "not seen"
