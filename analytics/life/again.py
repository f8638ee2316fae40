"""Reasons of repeated deliveries to a consumer group, shared by message traces and reports."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dissectors.rows.message_record import DELIVERED, RETURNED
from dissectors.rows.outcome import is_pop

from .hops import MessageRow


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
