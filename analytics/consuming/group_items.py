"""Turn rows into items for the fold of one consumer group: members, pulls, locks, and commits.

Items of a group are sorted by the time of the request, or of the connection's start or end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import offsets_in
from dissectors.remoting.row_facts.heartbeats import consumers_in
from dissectors.remoting.row_facts.names import (
    FROM_BROKER,
    GROUP,
    QUEUES_LOCKED,
    QUEUES_REQUESTED,
    fact_in,
    facts_in,
)
from dissectors.remoting.row_facts.names import MEMBER as MEMBER_FACT
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ..diagnosis.keys import COMMIT, HEARTBEAT, joined_key
from ..diagnosis.rules.consumers.inconsistent_subscription import STOPS
from ..diagnosis.rules.consumers.orderly_lock_lost import LOCK
from ..diagnosis.rules.consumers.queue_pulls import CLAIM
from ..diagnosis.rules.consumers.rebalance_storm import CHANGED
from ..diagnosis.rules.consumers.rebalance_storm import MEMBERS as LISTS
from ..inputs.rows import json_text_of
from .items import Item
from .known import Known

UNLOCK: Final = int(RequestCode.UNLOCK_BATCH_MQ)
RESET: Final = int(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
REQUESTED_OF_CLIENTS: Final = frozenset((CHANGED, RESET))
"""requests of a broker to a client"""
REQUESTS: Final = (
    FETCHES | REQUESTED_OF_CLIENTS | {HEARTBEAT, STOPS, LISTS, LOCK, UNLOCK, CLAIM, COMMIT}
)

# kinds of events
BEAT, LEFT, NOTIFIED, LISTED, CLAIMED = "beat", "left", "told", "listed", "claimed"
LOCKED, UNLOCKED, PULL, COMMITTED, MOVED = "locked", "unlocked", "pull", "committed", "moved"
OPENED, ENDED = "opened", "ended"
MICRO: Final = 1000
"""ns in a µs, the unit of tables"""
Rows = list[dict[str, object]]
"""rows of a table"""
_KINDS: Final = {
    HEARTBEAT: BEAT,
    STOPS: LEFT,
    CHANGED: NOTIFIED,
    LISTS: LISTED,
    LOCK: LOCKED,
    UNLOCK: UNLOCKED,
    CLAIM: CLAIMED,
    COMMIT: COMMITTED,
    RESET: MOVED,
    **dict.fromkeys(FETCHES, PULL),
}


class GroupEvent(msgspec.Struct, array_like=True, gc=False):
    """An event of a group; fields that do not apply are absent."""

    kind: str
    time: int
    client: str
    """client id, or its address if unknown"""
    endpoint: str
    """`address:port` of the client"""
    broker: str
    address: str
    """`address:port` of the broker"""
    capture: str
    packet: int
    conversation: int
    operation: str = ""
    result: str | None = None
    """response code or status; for a connection, how it ended and which side ended it"""
    answered: int | None = None
    """time of the response"""
    topic: str | None = None
    queue: int | None = None
    asked: int | None = None
    """offset of a pull or commit; number of queues to lock"""
    following: int | None = None
    """next offset to pull; number of queues locked"""
    messages: int | None = None
    from_broker: str | None = None
    """id of the suggested broker for the next pull"""
    texts: tuple[str, ...] = ()
    """facts of a heartbeat; members of a list"""


def items_of_group_exchanges(rows: Iterable[ExchangeRecord], known: Known) -> Iterator[Item]:
    """Yield the items of exchanges that concern consumer groups."""
    for row in rows:
        kind = _KINDS.get(row.request_code or 0)
        if kind is None or row.request_time is None:
            continue
        event = event_of(row, kind, row.request_time, known)
        text = json_text_of(event)  # once, although a heartbeat may be of many groups
        for group in _groups_of(row, kind):
            key = joined_key(group)
            yield Item(key, row.request_time, row.request_packet or 0, text)


def _groups_of(row: ExchangeRecord, kind: str) -> list[str]:
    if kind == BEAT:
        return [group.name for group in consumers_in(row.facts)]
    group = fact_in(row.facts, GROUP) if kind in (LOCKED, UNLOCKED) else row.group
    return [group] if group else []


def event_of(row: ExchangeRecord, kind: str, time: int, known: Known) -> GroupEvent:
    """Return the event of an exchange."""
    endpoint, address = row.client_address, row.server_address
    if row.request_code in REQUESTED_OF_CLIENTS:  # here the broker is the client of the exchange
        endpoint, address = address, endpoint
    event = GroupEvent(
        kind,
        time,
        row.client_id or known.context.client(endpoint),
        endpoint,
        known.broker(row.broker_name, address),
        address,
        row.capture,
        row.request_packet or 0,
        row.conversation,
        operation=row.request_name or "",
        result=row.response_name or row.status,
        answered=row.response_time,
        topic=row.topic,
        queue=row.queue_id,
    )
    if kind == PULL:
        event.asked, event.following, _, _ = offsets_in(row.facts)
        event.from_broker = fact_in(row.facts, FROM_BROKER)
        event.messages = row.message_count
    elif kind == COMMITTED:
        event.asked = row.queue_offset
    elif kind in (LOCKED, UNLOCKED):
        event.asked = number_in(row.facts, QUEUES_REQUESTED)
        event.following = number_in(row.facts, QUEUES_LOCKED)
    elif kind == BEAT:
        event.texts = tuple(row.facts)
    elif kind == LISTED:
        event.texts = tuple(sorted(facts_in(row.facts, MEMBER_FACT)))
    return event


def items_of_connections(rows: Iterable[ConversationRecord], known: Known) -> Iterator[Item]:
    """Yield the start and end of connections on which members sent heartbeats."""
    for row in rows:
        client = known.context.clients.get(row.client_address)
        if client is None:
            continue
        groups = known.groups.get(client, ())
        for kind, time in ((OPENED, row.start_time), (ENDED, row.end_time)):
            # The first captured packet is not the start of such a connection.
            if kind == OPENED and row.start == tcp.MIDSTREAM:
                continue
            # The capture ended first, so its last packet is not the end.
            if kind == ENDED and row.end == "open":
                continue
            event = GroupEvent(
                kind,
                time,
                client,
                row.client_address,
                known.broker(None, row.server_address),
                row.server_address,
                row.capture,
                0,
                row.conversation,
                result=f"{row.end} by the {row.ended_by}" if row.ended_by else row.end,
            )
            text = json_text_of(event)
            for group in groups:
                yield Item(joined_key(group), time, 0, text)
