"""Rows of stored messages: those in answers to pull, pop, query, view and peek, and of checks.

RocketMQ: PullMessageProcessor, PopMessageProcessor, QueryMessageProcessor,
CheckTransactionStateRequestHeader.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..budget import Budget
from ..remoting.messages.batch import is_inner_batch, unwrap_inner_batch
from ..remoting.messages.message import StoredMessage
from ..remoting.messages.records import decode_messages
from ..rows.message_record import CHECKED, DELIVERED, VIEWED, MessageRecord
from .seen_exchange import (
    Facts,
    SeenExchange,
    body_of,
    commit_log_offset_of,
    deliver_time_of,
    lite_queue_of,
    number_of,
    original_topic_of,
    popped_topic_of,
    row_of,
    time_of_ms,
)
from .whole_records import facts_of_whole


def rows_of_fetch(seen: SeenExchange) -> Iterator[MessageRecord]:
    """Give the rows of the messages that a pull or a pop delivers."""
    return _rows_of_body(seen, DELIVERED, seen.row.group)


def rows_of_lite_fetch(seen: SeenExchange) -> Iterator[MessageRecord]:
    """Give the rows of the messages that a pop of lite topics delivers.

    An acknowledgement names the queue of the lite topic and the offset there, which are properties
    of the record; its own queue and offset are those in the topic around it.
    """
    response = seen.response
    if response is None or response.command.code != 0:
        return
    for place, message in enumerate(decode_messages(response.body).messages):
        facts = facts_of(message, seen.row.group, seen.body_limit, seen.budget)
        lite = message.properties.get("__LITE_TOPIC")
        queues = message.properties.get("INNER_MULTI_DISPATCH", "").split(",")
        offsets = message.properties.get("INNER_MULTI_QUEUE_OFFSET", "").split(",")
        queue = lite_queue_of(message.topic, lite) if lite else None
        if queue in queues and len(offsets) == len(queues):
            offset = number_of(offsets[queues.index(queue)])
            facts = facts._replace(topic=queue, queue_id=0, queue_offset=offset)
        yield row_of(seen, DELIVERED, place, facts)


def rows_of_view(seen: SeenExchange) -> Iterator[MessageRecord]:
    """Give the rows of the messages that somebody only looks at."""
    return _rows_of_body(seen, VIEWED, None)


def _rows_of_body(seen: SeenExchange, event: str, group: str | None) -> Iterator[MessageRecord]:
    response = seen.response
    if response is None or response.command.code != 0 or not response.body:
        return
    if not seen.body_limit:
        whole = facts_of_whole(response.body, group)
        if whole is not None:
            for place, facts in enumerate(whole):
                yield row_of(seen, event, place, facts)
            return
    place = 0
    for record in decode_messages(response.body).messages:
        inner = (
            unwrap_inner_batch(record, budget=seen.budget) if is_inner_batch(record) else (record,)
        )
        for message in inner:
            facts = facts_of(message, group, seen.body_limit, seen.budget)
            yield row_of(seen, event, place, facts)
            place += 1


def facts_of(
    message: StoredMessage, group: str | None, body_limit: int, budget: Budget | None = None
) -> Facts:
    """Return what a stored message says, delivered to a consumer group or only looked at."""
    properties = message.properties
    get = properties.get
    topic = message.topic
    original = original_topic_of(topic, properties)
    offset_id = message.offset_msg_id if message.store_host else None
    form, body = body_of(message, body_limit, budget)
    return Facts(
        popped_topic_of(topic, get("POP_CK"), group),
        original,
        message.queue_id,
        message.queue_offset,
        None,
        get("PGROUP"),
        group,
        get("UNIQ_KEY"),
        offset_id,
        message.physical_offset,
        get("KEYS"),
        get("TAGS"),
        get("__transactionId__"),
        time_of_ms(message.born_timestamp),
        time_of_ms(message.store_timestamp),
        deliver_time_of(properties),
        message.reconsume_times,
        None,
        number_of(get("DELAY")),
        len(message.body),
        message.body_crc,
        message.crc_ok,
        form,
        body,
    )


def rows_of_check(seen: SeenExchange) -> Iterator[MessageRecord]:
    """Give the row of a half message whose producer is asked what became of it."""
    assert seen.request is not None
    fields = seen.fields
    records = decode_messages(seen.request.body).messages
    message = records[0] if records else None
    facts = (
        facts_of(message, None, seen.body_limit, seen.budget) if message is not None else Facts()
    )
    offset_id = fields.get("offsetMsgId") or facts.offset_msg_id
    offset = number_of(fields.get("commitLogOffset"))
    yield row_of(
        seen,
        CHECKED,
        0,
        facts._replace(
            unique_key=facts.unique_key or fields.get("msgId"),
            transaction_id=fields.get("transactionId") or facts.transaction_id,
            offset_msg_id=offset_id,
            commit_log_offset=commit_log_offset_of(offset_id) if offset is None else offset,
        ),
        from_broker=True,
    )
