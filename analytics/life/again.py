"""Why a message came to a consumer group again: judged here alone, for lives and for reports."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from dissectors.rows.message_record import DELIVERED, RETURNED
from dissectors.rows.outcome import is_pop


class Delivery(Protocol):
    """What is asked of a row about a message; names are those of `MessageRecord`."""

    event: str
    request_name: str | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    broker_address: str
    client_address: str
    client_id: str | None
    consumer_group: str | None
    reconsume_times: int | None

    @property
    def broker_name(self) -> str | None:
        """Name of the broker."""


class Again(StrEnum):
    """A reason; the value is what tables say."""

    RETURNED = "returned"
    EXPIRED = "POP time ended"
    RETURNED_UNSEEN = "returned unseen"
    OTHER_CLIENT = "another client"
    OTHER_CONNECTION = "other connection"
    SAME = "fetched again"
    STORED_AGAIN = "stored again"


def why_again(row: Delivery, before: Sequence[Delivery]) -> Again | None:
    """Return why a delivery came after those before it; None: it is its group's first one."""
    group = row.consumer_group
    earlier = [one for one in before if one.event == DELIVERED and one.consumer_group == group]
    if not earlier or group is None:
        return None
    same = [one for one in earlier if record_of(one) == record_of(row)]
    if not same and row.reconsume_times:
        if any(one.event == RETURNED and one.consumer_group == group for one in before):
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


def record_of(row: Delivery) -> tuple[str | None, int | None, str | None, int | None]:
    """Return what tells a stored record from others."""
    return row.topic, row.queue_id, row.broker_name or row.broker_address, row.queue_offset
