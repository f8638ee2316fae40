"""What an answer for a route says, read once: clients ask for the same routes all the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from dissectors.remoting.broker_addresses import SEPARATOR
from dissectors.remoting.codes import RequestCode, ResponseCode
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
"""by its `id` an exchange, which each rule asks for, and what its answer says; by _LAST the last"""
_LAST: Final = 0
_ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
_SUCCESS: Final = int(ResponseCode.SUCCESS)


def answered_route(row: ExchangeRecord) -> AnsweredRoute:
    """Return what the answer of an exchange says of brokers."""
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
    _RECENT[_LAST] = _RECENT[id(row)] = row, route
    return route


def latest_routes(rows: Sequence[ExchangeRecord]) -> Sequence[ExchangeRecord]:
    """Return exchanges of one flow; of equal routes in a row only the earliest and the latest.

    That is enough to know since when and until when something was said.
    """
    first = rows[0]
    if len(rows) == 1 or first.request_code != _ROUTE or first.response_code != _SUCCESS:
        return rows
    kept: list[ExchangeRecord] = []
    for _, group in groupby(rows, answered_route):
        same = list(group)
        first, last = min(same, key=_answer_time), max(same, key=_answer_time)
        kept += [last] if first is last else [first, last]
    return kept


def _answer_time(row: ExchangeRecord) -> int:
    return row.response_time or 0


@lru_cache(REMEMBERED)
def _route_of(brokers: tuple[str, ...], facts: tuple[str, ...]) -> AnsweredRoute:
    parts = (one.rpartition(SEPARATOR) for one in brokers)
    named = tuple((name, address) for name, _, address in parts)
    addresses = frozenset(address for _, address in named)
    return AnsweredRoute(routed_brokers_in(facts), named, addresses, slaves_in(facts))
