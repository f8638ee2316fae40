"""Names of brokers, topics, groups, and clients in sentences and subjects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from typing import Final, TypeVar

from .context import Context
from .problem import Subject

MAX_NAMED: Final = 256
"""maximum topics, groups, and clients of a fold"""
MOST_LISTED: Final = 3
"""maximum names in one sentence"""
MOST_FIRST: Final = 5
"""maximum names in a list of examples"""
T = TypeVar("T")


class Names(Counter[str]):
    """Counts of at most MAX_NAMED different names."""

    def note(self, name: str | None, count: int = 1) -> None:
        """Count a name, unless it is None or empty, or a new one beyond the limit."""
        if name and (name in self or len(self) < MAX_NAMED):
            self[name] += count


def by_client(endpoints: Mapping[str, int], context: Context) -> Counter[str]:
    """Convert counts by address to counts by client id, or address if the id is unknown."""
    named: Counter[str] = Counter()
    for endpoint, number in endpoints.items():
        named[context.client(endpoint)] += number
    return named


def subject_of(
    addresses: Iterable[str],
    context: Context,
    topic: str | None,
    group: str | None,
    message: str | None = None,
) -> Subject:
    """Return a subject with the only broker among the servers, or the proxy if there is no broker.

    `addresses` may also be broker names.
    """
    servers = set(addresses)
    proxies = {server for server in servers if context.is_proxy(server)}
    return Subject(
        broker=only(context.broker(one) for one in servers - proxies),
        topic=topic,
        group=group,
        message=message,
        server=None if servers - proxies else only(proxies),
    )


def only(items: Iterable[T]) -> T | None:
    """Return the item if all are equal; None also if there is none."""
    different = set(items)
    return different.pop() if len(different) == 1 else None


def listed(names: Iterable[str]) -> str:
    """Join names for a sentence: ``broker-a and broker-b``."""
    ordered = sorted(set(names))
    more = len(ordered) - MOST_LISTED
    parts = [*ordered[:MOST_LISTED], *([f"{more} more"] if more > 0 else [])]
    return (
        parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
    )


def first_of(names: Iterable[str], most: int = MOST_FIRST) -> str:
    """Return the first names, without the number of the others: ``client-1, client-2``."""
    return ", ".join(sorted(set(names))[:most])


def called(noun: str, names: Iterable[str]) -> str:
    """Return names with their noun: ``group a``, ``groups a and b``."""
    different = set(names)
    return f"{noun if len(different) == 1 else noun + 's'} {listed(different)}"


def counted_names(counter: Mapping[str, int]) -> str:
    """Return names with counts, the most frequent first: ``Orders (12), Bills (3)``."""
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    text = ", ".join(f"{name} ({number:,})" for name, number in ordered[:MOST_LISTED])
    more = len(ordered) - MOST_LISTED
    return f"{text} and {more} more" if more > 0 else text


def was(count: int) -> str:
    """Return the verb for so many things: ``was``, ``were``."""
    return "was" if count == 1 else "were"


def and_again(periods: Sized) -> str:
    """Return how often a problem came again: ``, and twice more``; empty for one period."""
    more = len(periods) - 1
    return f", and {times(more)} more" if more > 0 else ""


def times(count: int) -> str:
    """Return ``once``, ``twice`` or ``N times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
