"""How pulls of a group were answered, how long they waited, which went to slaves, and its locks."""

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
    """requests that did not get all queues"""
    unlocks: int = 0
    first: int = 0
    last: int = 0
    since: int | None = None
    """since when no request got all its locks"""
    longest: int = 0


class _Slave(msgspec.Struct, gc=False):
    pulls: int = 0
    messages: int = 0
    told: int = 0
    first: int = 0
    last: int = 0
    clients: set[str] = set()


class Asking:
    """Takes the pulls and locks of one group by time."""

    def __init__(self, group: str, known: Known) -> None:
        self._group = group
        self._known = known
        self._pulls: dict[tuple[str, str, str, str], _Pulls] = {}
        self._locks: dict[tuple[str, str], _Locks] = {}
        self._slaves: dict[tuple[str, str, str], _Slave] = {}
        """(topic, broker, address)"""
        self._told: dict[tuple[str, str], int] = {}
        """client and broker -> answers that named a slave so far"""
        self.left_out = 0

    def pull(self, event: GroupEvent) -> None:
        """Take a fetch."""
        key = (event.topic or "", event.client, event.operation, event.result or "")
        found = self._pulls.get(key)
        if found is None:
            if len(self._pulls) >= MAX_KINDS:
                self.left_out += 1
                return
            found = self._pulls[key] = _Pulls(first=event.time)
        found.count += 1
        found.messages += event.messages or 0
        found.last = event.time
        if event.answered is not None:
            found.waits.add((event.answered - event.time) // MICRO)
        self._slave(event)

    def _slave(self, event: GroupEvent) -> None:
        who = (event.client, event.broker)
        if self._known.context.slave_id(event.address) is not None:
            place = (event.topic or "", event.broker, event.address)
            slave = self._slaves.get(place)
            if slave is None:
                if len(self._slaves) >= MAX_KINDS:
                    self.left_out += 1
                    return
                slave = self._slaves[place] = _Slave(first=event.time)
            slave.pulls += 1
            slave.messages += event.messages or 0
            slave.told += who in self._told
            slave.last = event.time
            slave.clients.add(event.client)
        elif event.from_broker is not None and len(self._told) < MAX_KINDS:
            self._told[who] = self._told.get(who, 0) + 1

    def lock(self, event: GroupEvent) -> None:
        """Take a request for locks, or to give them back."""
        key = (event.client, event.broker)
        found = self._locks.get(key)
        if found is None:
            if len(self._locks) >= MAX_KINDS:
                self.left_out += 1
                return
            found = self._locks[key] = _Locks(first=event.time)
        found.last = event.time
        if event.kind != LOCKED:
            found.unlocks += 1
            found.since = None
            return
        found.requests += 1
        asked, locked = event.asked, event.following
        if asked is None or locked is None:
            found.unanswered += 1
            return
        found.asked += asked
        found.locked += locked
        if locked < asked:
            found.short += 1
            found.since = event.time if found.since is None else found.since
            found.longest = max(found.longest, event.time - found.since)
        else:
            found.since = None

    def pull_rows(self) -> Rows:
        """Return the rows of the table of pulls."""
        rows: Rows = []
        for (topic, client, operation, result), found in self._pulls.items():
            waits = found.waits.histogram()
            rows.append(
                {
                    "group": self._group,
                    "topic": topic or None,
                    "client": client,
                    "operation": operation,
                    "result": result,
                    "requests": found.count,
                    "messages": found.messages,
                    "p50_us": waits.percentile(50),
                    "p99_us": waits.percentile(99),
                    "max_us": waits.maximum,
                    "first_time": found.first // MICRO,
                    "last_time": found.last // MICRO,
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
                "requests": found.requests,
                "queues_asked": found.asked,
                "queues_locked": found.locked,
                "not_all": found.short,
                "longest_us": found.longest // MICRO if found.short else None,
                "unanswered": found.unanswered,
                "unlocks": found.unlocks,
                "first_time": found.first // MICRO,
                "last_time": found.last // MICRO,
            }
            for (client, broker), found in self._locks.items()
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
                "pulls": found.pulls,
                "messages": found.messages,
                "why": self._why(broker, found),
                "clients": sorted(found.clients),
                "first_time": found.first // MICRO,
                "last_time": found.last // MICRO,
            }
            for (topic, broker, address), found in self._slaves.items()
        ]
        return rows

    def _why(self, broker: str, found: _Slave) -> str:
        if no_master(self._known.context, broker):
            return "no master"
        return "told by the master" if found.told else "not seen"
