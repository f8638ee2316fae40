"""What an answer for a route says, read once: clients ask for the same routes all the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dissectors.remoting.broker_addresses import SEPARATOR
from dissectors.remoting.row_facts.routes import RoutedBroker, routed_brokers_in, slaves_in
from dissectors.rows.record import ExchangeRecord

REMEMBERED: Final = 256
"""different routes that are remembered"""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredRoute:
    """What an answer says. Answers that say the same have the same object, while it is remembered.

    Such an object is equal to itself only, so that it may be a key for what was made of it.
    """

    brokers: list[RoutedBroker]
    named: tuple[tuple[str, str], ...]
    """(name, address) of brokers"""
    addresses: frozenset[str]
    slaves: Mapping[str, str]
    """address -> id of those that are not a master"""


_RECENT: Final[dict[int, tuple[ExchangeRecord, AnsweredRoute]]] = {}
"""by its `id` an exchange, which each rule asks for, and what its answer says"""


def answered_route(row: ExchangeRecord) -> AnsweredRoute:
    """Return what the answer of an exchange says of brokers."""
    known = _RECENT.get(id(row))
    if known is not None and known[0] is row:
        return known[1]
    route = _route_of(tuple(row.brokers), tuple(row.facts))
    if len(_RECENT) >= REMEMBERED:
        _RECENT.clear()
    _RECENT[id(row)] = row, route
    return route


@lru_cache(REMEMBERED)
def _route_of(brokers: tuple[str, ...], facts: tuple[str, ...]) -> AnsweredRoute:
    parts = (one.rpartition(SEPARATOR) for one in brokers)
    named = tuple((name, address) for name, _, address in parts)
    addresses = frozenset(address for _, address in named)
    return AnsweredRoute(routed_brokers_in(facts), named, addresses, slaves_in(facts))
