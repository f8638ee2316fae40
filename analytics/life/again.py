"""Rows of a message that repeat others: those of relays, and repeated deliveries with reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from dissectors.endpoint import host_of
from dissectors.quantities import duration_text
from dissectors.rows.message_record import DELIVERED, RETURNED, STORED, MessageRecord
from dissectors.rows.outcome import is_call, is_pop
from dissectors.rows.relays import Hop, Relay, inner_hops


class MessageRow(Protocol):
    """The columns of `MessageRecord` that reports have in their rows of messages, too."""

    event: str
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    client_address: str
    server_address: str
    client_id: str | None
    consumer_group: str | None
    request_name: str | None
    capture: str
    latency_us: int | None
    offset_msg_id: str | None
    reconsume_times: int | None

    @property
    def time(self) -> int | None:
        """When the command with the message was captured, in ns."""

    @property
    def broker_name(self) -> str | None:
        """Name of the broker."""


def inner_rows(rows: Sequence[MessageRow], relays: Collection[Relay]) -> Mapping[int, int]:
    """Map rows that a relay caused to rows of its client, by their indexes.

    `relays` are those proved by any messages.
    """
    # a relay passes an event on as it is, so only rows of one event and group can be two hops
    same: dict[tuple[str, str | None], list[int]] = {}
    for place, row in enumerate(rows):
        same.setdefault((row.event, row.consumer_group), []).append(place)
    return {
        places[inner]: places[outer]
        for places in same.values()
        if len(places) > 1
        for inner, outer in inner_hops([_hop_of(rows[place]) for place in places], relays).items()
    }


def _hop_of(row: MessageRow) -> Hop:
    took = 1000 * (row.latency_us or 0)
    # the time of a delivery is that of the response
    begin = (row.time or 0) - (took if row.event == DELIVERED else 0)
    return Hop(
        begin,
        None if row.latency_us is None else begin + took,
        host_of(row.client_address),
        row.server_address,
        row.offset_msg_id if row.event == STORED else None,
        is_call(row.request_name),
        row.capture,
    )


def hop_words(row: MessageRecord, outer: MessageRecord) -> str:
    """Describe how an inner hop contributed to the latency."""
    if row.latency_us is None or outer.latency_us is None:
        return "behind the proxy"
    mine, whole = row.latency_us, outer.latency_us
    return (
        f"behind the proxy: {duration_text(mine)} of the {duration_text(whole)}"
        f" that the client waited, {duration_text(max(whole - mine, 0))} the proxy's own"
    )


class Again(StrEnum):
    """A reason; the values appear in tables."""

    RETURNED = "returned"
    EXPIRED = "POP time ended"
    RETURNED_UNSEEN = "returned unseen"
    OTHER_CLIENT = "another client"
    OTHER_CONNECTION = "other connection"
    SAME = "fetched again"
    STORED_AGAIN = "stored again"


def why_again(row: MessageRow, before: Sequence[MessageRow]) -> Again | None:
    """Return why a delivery repeats earlier ones, or None for the first one of its group."""
    group = row.consumer_group
    earlier = [
        delivery
        for delivery in before
        if delivery.event == DELIVERED and delivery.consumer_group == group
    ]
    if not earlier or group is None:
        return None
    # A redelivery through a retry topic is another record; a fetch that is repeated is the same.
    same = [delivery for delivery in earlier if record_of(delivery) == record_of(row)]
    if not same and row.reconsume_times:
        if any(
            delivery.event == RETURNED and delivery.consumer_group == group for delivery in before
        ):
            return Again.RETURNED
        popped = is_pop(row.request_name)
        return Again.EXPIRED if popped else Again.RETURNED_UNSEEN
    if not same:
        return Again.STORED_AGAIN
    last = same[-1]
    if last.client_address == row.client_address:
        return Again.SAME
    known = last.client_id is not None and last.client_id == row.client_id
    return Again.OTHER_CONNECTION if known else Again.OTHER_CLIENT


def record_of(row: MessageRow) -> tuple[str | None, int | None, str | None, int | None]:
    """Return the identity of a stored record."""
    return row.topic, row.queue_id, row.broker_name or row.server_address, row.queue_offset
