"""Relays between clients and brokers: of the sends of a message those that its client made.

RocketMQ: the proxy of 5.x sends a message on while its own client waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.endpoint import host_of
from dissectors.rows.record import ExchangeRecord

from ..sends.attempts import WITHIN_US

Placed = tuple[str, ExchangeRecord]
"""a send and the input it was seen in"""
Relay = tuple[str, str, str]
"""host of a relay and of its clients, address of the relay, address that it sends to"""
_WITHIN: Final = WITHIN_US * 1000


def relays_in(messages: Iterable[Sequence[Placed]]) -> frozenset[Relay]:
    """Return the relays that run where their clients do: there an address proves nothing.

    Two answers with one id of a broker are one stored message, so the exchange that took longer is
    the outer one.
    """
    found: set[Relay] = set()
    for rows in messages:
        by_id: dict[tuple[str, str], ExchangeRecord] = {}
        for _, row in rows:
            if row.offset_msg_id is None or row.latency_us is None:
                continue
            host = host_of(row.requester)
            other = by_id.setdefault((host, row.offset_msg_id), row)
            outer, inner = (row, other) if _longer(row, other) else (other, row)
            if outer.responder != inner.responder:
                found.add((host, outer.responder, inner.responder))
    return frozenset(found)


def _longer(row: ExchangeRecord, other: ExchangeRecord) -> bool:
    return (row.latency_us or 0) > (other.latency_us or 0)


def without_inner_hops(
    rows: Iterable[Placed], relays: frozenset[Relay] = frozenset()
) -> list[Placed]:
    """Return the sends of a message that its client made, by time.

    A relay, such as a proxy of 5.x, sends a message again while its own client waits: from the
    address that was asked, to another one, within the time of the outer exchange. `relays` are
    those that ask from the address of their client.
    """
    ordered = sorted(rows, key=lambda one: (one[1].request_time or 0, one[1].opaque))
    kept: list[Placed] = []
    for source, row in ordered:
        if not any(_is_inner(row, outer, relays) for _, outer in kept):
            kept.append((source, row))
    return kept


def _is_inner(row: ExchangeRecord, outer: ExchangeRecord, relays: frozenset[Relay]) -> bool:
    """Return whether who took one send of a message made the other one."""
    begin = row.request_time or 0
    if outer.responder == row.responder or begin > (outer.response_time or begin):
        return False
    if outer.offset_msg_id is not None and outer.offset_msg_id == row.offset_msg_id:
        return True
    host = host_of(row.requester)
    if host_of(outer.requester) != host:
        return host_of(outer.responder) == host
    soon = outer.response_time is not None or begin - (outer.request_time or 0) <= _WITHIN
    return soon and (host, outer.responder, row.responder) in relays
