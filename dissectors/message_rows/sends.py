"""Rows of batch sends and replies; `message_writer` has other sends.

RocketMQ: MessageDecoder.decodeMessages, ReplyMessageRequestHeader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..remoting.codes import RequestCode
from ..remoting.messages.batch import BatchItem, decode_batch
from ..remoting.messages.message import StoredMessage
from ..remoting.messages.properties import decode_properties
from ..remoting.send_fields import V1, send_fields_of
from ..remoting.topic_names import original_topic_of
from ..rows.message_record import DELIVERED
from .message_writer import event_of
from .seen_exchange import (
    Facts,
    MessageEvent,
    SeenExchange,
    body_of,
    commit_log_offset_of,
    deliver_time_of,
    number_of,
    time_of_ms,
)

SEND_BATCH: Final = int(RequestCode.SEND_BATCH_MESSAGE)


def rows_of_batch(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the rows of the items of a batch."""
    request = seen.request
    assert request is not None
    fields = request.command.ext_fields
    names = send_fields_of(request.command.code)
    event = event_of(request.view, seen.response.view if seen.response is not None else None)
    created = time_of_ms(number_of(fields.get(names.born_timestamp)))
    reconsumed = number_of(fields.get(names.reconsume_times))
    ids = (seen.row.offset_msg_id or "").split(",")  # one for each item, in their order
    for place, item in enumerate(decode_batch(request.body).items):
        offset_msg_id = ids[place] if place < len(ids) else ""
        facts = _facts_of_item(seen, item, place, offset_msg_id, created, reconsumed)
        yield MessageEvent(event, place, facts)


def _facts_of_item(
    seen: SeenExchange,
    item: BatchItem,
    place: int,
    offset_msg_id: str,
    created: int | None,
    reconsumed: int | None,
) -> Facts:
    """Return the facts of a batch item."""
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
        created,
        deliver_time=deliver_time_of(properties),
        reconsume_times=reconsumed,
        delay_level=number_of(properties.get("DELAY")),
        body_bytes=len(item.body),
        body_form=form,
        body=body,
    )


def rows_of_pushed_reply(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of a reply that a broker pushes to the producer."""
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
    yield MessageEvent(DELIVERED, 0, facts, from_broker=True)
