"""Parsed route responses, cached because clients request the same routes repeatedly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from dissectors.remoting.broker_addresses import SEPARATOR
from dissectors.remoting.row_facts.routes import RoutedBroker, routed_brokers_in, slaves_in
from dissectors.rows.record import ExchangeRecord

from .keys import ROUTE, SUCCESS

READ: Final = 4
"""PermName.PERM_READ"""
WRITE: Final = 2
"""PermName.PERM_WRITE"""
REMEMBERED: Final = 256
"""different routes in the cache"""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredRoute:
    """Brokers and addresses of a route response. Equal responses share one cached object.

    Instances compare by identity, so they can be keys of derived data.
    """

    brokers: list[RoutedBroker]
    named: tuple[tuple[str, str], ...]
    """(name, address) of brokers"""
    addresses: frozenset[str]
    slaves: Mapping[str, str]
    """address -> broker id of slaves"""


_RECENT: Final[dict[int, tuple[ExchangeRecord, AnsweredRoute]]] = {}
"""parsed responses by the `id` of their exchange, which every rule looks up; _LAST has the latest
"""
_LAST: Final = 0


def answered_route(row: ExchangeRecord) -> AnsweredRoute:
    """Return the brokers in the route response of an exchange."""
    known = _RECENT.get(id(row))
    if known is not None and known[0] is row:
        return known[1]
    last = _RECENT.get(_LAST)
    if last is not None and last[0].facts == row.facts and last[0].brokers == row.brokers:
        route = last[1]
    else:
        route = _route_of(tuple(row.brokers), tuple(row.facts))
    if len(_RECENT) >= REMEMBERED:
        _RECENT.clear()
    # With its row: as long as that is alive, no other row can have its `id`.
    _RECENT[_LAST] = _RECENT[id(row)] = row, route
    return route


def latest_routes(rows: Sequence[ExchangeRecord]) -> Sequence[ExchangeRecord]:
    """Return exchanges of one flow; keep only the first and last of consecutive equal routes.

    This is enough to know the period of each route.
    """
    first = rows[0]
    if len(rows) == 1 or first.request_code != ROUTE or first.response_code != SUCCESS:
        return rows
    kept: list[ExchangeRecord] = []
    for _, group in groupby(rows, answered_route):
        same = list(group)
        first, last = min(same, key=_response_time), max(same, key=_response_time)
        kept += [last] if first is last else [first, last]
    return kept


def _response_time(row: ExchangeRecord) -> int:
    return row.response_time or 0


@lru_cache(REMEMBERED)
def _route_of(brokers: tuple[str, ...], facts: tuple[str, ...]) -> AnsweredRoute:
    parts = (broker.rpartition(SEPARATOR) for broker in brokers)
    named = tuple((name, address) for name, _, address in parts)
    addresses = frozenset(address for _, address in named)
    return AnsweredRoute(routed_brokers_in(facts), named, addresses, slaves_in(facts))
