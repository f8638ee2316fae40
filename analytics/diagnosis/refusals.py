"""The fold that most rules about refused requests share: count by broker, who and what was refused.

A rule takes it as it is, or overrides `title`, `subject` and `take`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.rows.record import ExchangeRecord

from .context import Context
from .problem import Case, Subject, Tally, shown
from .rule import Fold

MAX_NAMED: Final = 256
"""topics, groups and clients that a fold tells apart"""
MOST_SAID: Final = 3
"""names in one sentence"""


def with_remark(
    *parts: str, key: Callable[[ExchangeRecord], str | None]
) -> Callable[[ExchangeRecord], str | None]:
    """Return a key for answers whose remark contains one of the parts; None for others."""

    def key_of(row: ExchangeRecord) -> str | None:
        remark = row.remark
        if remark is None or not any(part in remark for part in parts):
            return None
        return key(row)

    return key_of


class Refusals(Fold):
    """Refused requests of one key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()
        self.topics: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        """requests by address of the client"""
        self.brokers: Counter[str] = Counter()
        """by `address:port`"""
        self.requests: Counter[str] = Counter()

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Count a refusal."""
        self.tally.add(shown(row))
        for counter, name in (
            (self.topics, row.topic),
            (self.groups, row.group),
            (self.hosts, host_of(row.requester)),
            (self.brokers, row.responder),
            (self.requests, row.request_name),
        ):
            if name and (name in counter or len(counter) < MAX_NAMED):
                counter[name] += 1
        self.take(row)

    def take(self, row: ExchangeRecord) -> None:
        """Take what the rule needs besides, such as numbers in the remark."""

    def subject(self, context: Context) -> Subject:
        """Return what the case is about: what all refusals have in common."""
        return Subject(
            broker=only(context.broker(one) for one in self.brokers),
            topic=only(self.topics),
            group=only(self.groups),
        )

    def title(self, context: Context) -> str:
        """Return the sentence that says what is wrong, with names."""
        raise NotImplementedError

    def details(self, context: Context) -> list[str]:
        """Return further sentences: by default whose requests were refused."""
        said = []
        if self.topics:
            said.append(f"topics: {counted_names(self.topics)}")
        if self.groups:
            said.append(f"groups: {counted_names(self.groups)}")
        if self.hosts:
            said.append(f"clients: {counted_names(self.hosts)}")
        return said

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case, if anything was refused."""
        if not self.tally.count:
            return
        case = self.tally.case(self.title(context), self.subject(context))
        case.details = self.details(context)
        yield case


def only(names: Iterable[str]) -> str | None:
    """Return the name where there is one only."""
    different = set(names)
    return different.pop() if len(different) == 1 else None


def counted_names(counter: Counter[str]) -> str:
    """Return names with their numbers, the most frequent first: ``Orders (12), Bills (3)``."""
    ordered = sorted(counter.items(), key=lambda one: (-one[1], one[0]))
    said = ", ".join(f"{name} ({number})" for name, number in ordered[:MOST_SAID])
    more = len(ordered) - MOST_SAID
    return f"{said} and {more} more" if more > 0 else said


def times(count: int) -> str:
    """Return ``once``, ``twice`` or ``N times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
