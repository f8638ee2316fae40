"""Rows of sent messages: single ones, batches, half messages, replies.

RocketMQ: SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader,
ReplyMessageRequestHeader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..remoting.code_sets import STORED as STORED_CODES
from ..remoting.codes import RequestCode
from ..remoting.ids.message_ids import decode_recall_handle
from ..remoting.messages.batch import BatchItem, decode_batch
from ..remoting.messages.message import StoredMessage
from ..remoting.messages.properties import decode_properties
from ..remoting.send_fields import V1, send_fields_of
from ..remoting.sysflag import transaction_of
from ..remoting.topic_names import DLQ_PREFIX, RETRY_PREFIX
from ..rows.message_record import (
    DEAD,
    DELIVERED,
    PREPARED,
    REFUSED,
    RETURNED,
    SENT,
    STORED,
    MessageRecord,
)
from ..rows.record import ANSWERED
from .seen_exchange import (
    Facts,
    SeenExchange,
    body_of,
    commit_log_offset_of,
    deliver_time_of,
    made,
    names_itself,
    number_of,
    original_topic_of,
    row_of,
    time_of_ms,
)

_LATER: Final = frozenset(("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"))
"""properties of messages that the broker does not give to their queue at once"""
SEND_BATCH: Final = int(RequestCode.SEND_BATCH_MESSAGE)


def rows_of_send(seen: SeenExchange) -> Iterable[MessageRecord]:
    """Return the row of each message of a send."""
    request = seen.request
    assert request is not None
    fields = request.command.ext_fields
    names = send_fields_of(request.command.code)
    sys_flag = number_of(fields.get(names.sys_flag)) or 0
    half = sys_flag != 0 and transaction_of(sys_flag) == "prepared"
    event = _event_of(seen, half)
    born = time_of_ms(number_of(fields.get(names.born_timestamp)))
    reconsumed = number_of(fields.get(names.reconsume_times))
    if request.command.code == SEND_BATCH and request.body:
        items = decode_batch(request.body).items
        if items:
            return _rows_of_batch(seen, items, event, born, reconsumed)
    row = seen.row
    properties = _properties_of(seen, fields.get(names.properties) or "")
    transaction = seen.answered.get("transactionId") if half else None
    # A half message and one that is due later have their offset in another queue than theirs.
    in_queue = event in (STORED, RETURNED, DEAD) and _LATER.isdisjoint(properties)
    form = body = None
    if seen.body_limit:
        message = StoredMessage(row.topic or "", request.body, properties, sys_flag=sys_flag)
        form, body = body_of(message, seen.body_limit, seen.budget)
    facts = made(
        Facts,
        (
            row.topic,
            original_topic_of(row.topic, properties),
            row.queue_id,
            row.queue_offset if in_queue else None,
            None,
            row.group,
            None,
            row.unique_key,
            row.offset_msg_id,
            commit_log_offset_of(row.offset_msg_id),
            row.keys,
            row.tags,
            transaction or properties.get("__transactionId__"),
            born,
            None,
            _due_time(seen, properties),
            reconsumed,
            number_of(fields.get(names.max_reconsume_times)),
            number_of(properties.get("DELAY")),
            request.body_length,
            None,
            None,
            form,
            body,
        ),
    )
    return [row_of(seen, event, 0, facts)]


def _rows_of_batch(
    seen: SeenExchange,
    items: Sequence[BatchItem],
    event: str,
    born: int | None,
    reconsumed: int | None,
) -> Iterator[MessageRecord]:
    """Give the rows of the items of a batch."""
    ids = (seen.row.offset_msg_id or "").split(",")
    for place, item in enumerate(items):
        offset_msg_id = ids[place] if place < len(ids) else ""
        facts = _facts_of_item(seen, item, place, offset_msg_id, born, reconsumed)
        yield row_of(seen, event, place, facts)


def _properties_of(seen: SeenExchange, text: str) -> dict[str, str]:
    """Return the properties of a send; none where all that counts is in the row of the exchange."""
    is_plain = not seen.body_limit and names_itself(seen.row.topic or "")
    if is_plain and "DELAY" not in text and "TIMER_" not in text and "__" not in text:
        return {}
    return decode_properties(text)


def _due_time(seen: SeenExchange, properties: dict[str, str]) -> int | None:
    text = seen.answered.get("recallHandle")
    handle = decode_recall_handle(text) if text else None
    if handle is not None:
        return time_of_ms(handle.deliver_time)
    return deliver_time_of(properties) if properties else None


def _event_of(seen: SeenExchange, half: bool) -> str:
    row = seen.row
    if row.status != ANSWERED:
        return SENT
    if row.response_code not in STORED_CODES:
        return REFUSED
    if half:
        return PREPARED
    topic = row.topic or ""
    if topic.startswith(DLQ_PREFIX):
        return DEAD
    # A consumer sends what it cannot give back itself to its retry topic.
    return RETURNED if topic.startswith(RETRY_PREFIX) else STORED


def _facts_of_item(
    seen: SeenExchange,
    item: BatchItem,
    place: int,
    offset_msg_id: str,
    born: int | None,
    reconsumed: int | None,
) -> Facts:
    """Return what the row of an item of a batch says."""
    row, properties = seen.row, item.properties
    first = row.queue_offset if offset_msg_id else None
    form = body = None
    if seen.body_limit:
        message = StoredMessage(row.topic or "", item.body, properties, missing=item.missing)
        form, body = body_of(message, seen.body_limit, seen.budget)
    return Facts(
        row.topic,
        original_topic_of(row.topic, properties),
        row.queue_id,
        None if first is None else first + place,
        None,
        row.group,
        None,
        properties.get("UNIQ_KEY"),
        offset_msg_id or None,
        commit_log_offset_of(offset_msg_id),
        properties.get("KEYS"),
        properties.get("TAGS"),
        properties.get("__transactionId__"),
        born,
        deliver_time=deliver_time_of(properties),
        reconsume_times=reconsumed,
        delay_level=number_of(properties.get("DELAY")),
        body_bytes=len(item.body),
        body_form=form,
        body=body,
    )


def rows_of_pushed_reply(seen: SeenExchange) -> Iterator[MessageRecord]:
    """Give the row of a reply that a broker pushes to who asked."""
    assert seen.request is not None
    fields = seen.fields
    properties = decode_properties(fields.get(V1.properties) or "")
    sys_flag = number_of(fields.get(V1.sys_flag)) or 0
    topic = fields.get(V1.topic) or ""
    message = StoredMessage(topic, seen.request.body, properties, sys_flag=sys_flag)
    form, body = body_of(message, seen.body_limit, seen.budget)
    facts = Facts(
        fields.get(V1.topic),
        original_topic_of(fields.get(V1.topic), properties),
        number_of(fields.get(V1.queue_id)),
        producer_group=fields.get(V1.producer_group),
        unique_key=properties.get("UNIQ_KEY"),
        keys=properties.get("KEYS"),
        tags=properties.get("TAGS"),
        born_time=time_of_ms(number_of(fields.get(V1.born_timestamp))),
        store_time=time_of_ms(number_of(fields.get("storeTimestamp"))),
        reconsume_times=number_of(fields.get(V1.reconsume_times)),
        body_bytes=seen.request.body_length,
        body_form=form,
        body=body,
    )
    yield row_of(seen, DELIVERED, 0, facts, from_broker=True)
