"""Facts of routes: brokers with their permissions and queues, and their slaves.

RocketMQ: TopicRouteData.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from .names import MAX_FACTS, ROUTE, SLAVE, fact, facts_in
from .values import number_of, number_or_zero, objects_in, text_in

MASTER_ID: Final = "0"
"""MixAll.MASTER_ID"""


class RoutedBroker(NamedTuple):
    """A broker of a route."""

    perm: int | None
    """bits: 4 readable, 2 writable, 1 inherited; None without queues of the topic"""
    read_queues: int
    write_queues: int
    ids: tuple[str, ...]
    """keys of its addresses; `0` is the master"""
    name: str


def routed_brokers_in(facts: Iterable[str]) -> list[RoutedBroker]:
    """Return the brokers of a route."""
    brokers = map(_routed_broker, facts_in(facts, ROUTE))
    return [broker for broker in brokers if broker is not None]


@lru_cache(maxsize=4096)  # clients request the same routes all the time
def _routed_broker(value: str) -> RoutedBroker | None:
    parts = value.split(" ", 4)
    if len(parts) != 5:
        return None
    perm, read, write, ids, name = parts
    each = tuple(ids.split(",")) if ids != "-" else ()
    return RoutedBroker(number_of(perm), number_or_zero(read), number_or_zero(write), each, name)


def route_facts(value: dict[str, object]) -> list[str]:
    """Return the facts of a route."""
    queues = {text_in(one.get("brokerName")): one for one in objects_in(value.get("queueDatas"))}
    brokers = {text_in(one.get("brokerName")): one for one in objects_in(value.get("brokerDatas"))}
    facts: list[str] = []
    slaves: list[str] = []
    for name in dict.fromkeys((*queues, *brokers)):
        if name is None:
            continue
        queue, addresses = queues.get(name, {}), brokers.get(name, {}).get("brokerAddrs")
        by_id = addresses if isinstance(addresses, dict) else {}
        ids = sorted(str(one) for one in by_id if _is_id(one))
        numbers = [_whole_number(queue.get(field)) for field in _QUEUE_FIELDS]
        facts.append(fact(ROUTE, " ".join((*numbers, ",".join(ids[:16]) or "-", name))))
        slaves += [
            fact(SLAVE, f"{one} {address}")
            for one, address in by_id.items()
            if _is_id(one) and str(one) != MASTER_ID and isinstance(address, str)
        ]
    return (facts + slaves)[:MAX_FACTS]


def _is_id(value: object) -> bool:
    """Return whether a value is a broker id; a blank or comma would shift the following parts."""
    return number_of(str(value)) is not None and not isinstance(value, float)


def _whole_number(value: object) -> str:
    """Format a 32-bit number; `-` for anything else."""
    return str(value) if type(value) is int and -(1 << 31) <= value < 1 << 31 else "-"


def slaves_in(facts: Iterable[str]) -> dict[str, str]:
    """Return address → id of the slaves of a route."""
    parts = (value.split(" ", 1) for value in facts_in(facts, SLAVE))
    return {part[1]: part[0] for part in parts if len(part) == 2}


_QUEUE_FIELDS: Final = ("perm", "readQueueNums", "writeQueueNums")
