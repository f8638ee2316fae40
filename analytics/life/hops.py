"""Calls of gRPC and what a proxy asked brokers meanwhile: both are seen, the message went once.

Who speaks gRPC does it with a proxy, which speaks remoting with the brokers. A remoting row of the
same event and group within the time of a call is the hop behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dissectors.rows.message_record import DELIVERED, MessageRecord
from dissectors.rows.outcome import is_call

from .words import duration_text

MOST_CALLS: Final = 256
"""calls of one message that are looked at"""


def inner_hops(rows: Sequence[MessageRecord]) -> Mapping[int, MessageRecord]:
    """Return the calls behind which rows were made by a proxy, by the `id` of the row."""
    calls = [row for row in rows if is_call(row.request_name)][:MOST_CALLS]
    found: dict[int, MessageRecord] = {}
    if not calls:
        return found
    for row in rows:
        if is_call(row.request_name):
            continue
        begin, end = _span(row)
        for call in calls:
            first, last = _span(call)
            if (
                (call.event, call.consumer_group) == (row.event, _group_of(row, call))
                and call.broker_address != row.broker_address
                and first <= begin
                and end <= last
            ):
                found[id(row)] = call
                break
    return found


def hop_words(row: MessageRecord, call: MessageRecord) -> str:
    """Return what an inner hop says of where the time went."""
    if row.latency_us is None or call.latency_us is None:
        return "behind the proxy"
    mine, whole = row.latency_us, call.latency_us
    return (
        f"behind the proxy: {duration_text(mine)} of the {duration_text(whole)}"
        f" that the client waited, {duration_text(max(whole - mine, 0))} the proxy's own"
    )


def _group_of(row: MessageRecord, call: MessageRecord) -> str | None:
    """Return the consumer group, where one of the two has any."""
    return row.consumer_group if call.consumer_group is not None else None


def _span(row: MessageRecord) -> tuple[int, int]:
    """Return when the exchange of a row began and ended; a delivery has the time of its answer."""
    time, took = row.time or 0, 1000 * (row.latency_us or 0)
    return (time - took, time) if row.event == DELIVERED else (time, time + took)
