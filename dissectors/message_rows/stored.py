"""Rows of stored messages in responses to pull, pop, query, view, and peek, and in checks.

RocketMQ: PullMessageProcessor, PopMessageProcessor, QueryMessageProcessor,
CheckTransactionStateRequestHeader.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..remoting.messages.batch import unwrap_inner_batch
from ..remoting.messages.records import decode_messages
from ..rows.message_record import CHECKED, DELIVERED, VIEWED
from .message_writer import FactsReader
from .seen_exchange import (
    Facts,
    MessageEvent,
    SeenExchange,
    commit_log_offset_of,
    lite_queue_of,
    number_of,
)


def rows_of_fetch(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the rows of the messages that a pull or a pop delivers."""
    return _rows_of_body(seen, DELIVERED, seen.row.group)


def rows_of_lite_fetch(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the rows of the messages that a pop of lite topics delivers."""
    response = seen.response
    if response is None or response.command.code != 0:
        return
    reader = FactsReader(seen.row.group)
    for place, message in enumerate(decode_messages(response.body).messages):
        facts = reader.facts_of(message, seen.body_limit, seen.budget)
        lite = message.properties.get("__LITE_TOPIC")
        queues = message.properties.get("INNER_MULTI_DISPATCH", "").split(",")
        offsets = message.properties.get("INNER_MULTI_QUEUE_OFFSET", "").split(",")
        queue = lite_queue_of(message.topic, lite) if lite else None
        if queue in queues and len(offsets) == len(queues):
            offset = number_of(offsets[queues.index(queue)])
            # Acknowledgements use the queue and offset of the lite topic, not those of the record.
            facts = facts._replace(topic=queue, queue_id=0, queue_offset=offset)
        yield MessageEvent(DELIVERED, place, facts)


def rows_of_view(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the rows of messages that are only viewed."""
    return _rows_of_body(seen, VIEWED, None)


def _rows_of_body(seen: SeenExchange, event: str, group: str | None) -> Iterator[MessageEvent]:
    response = seen.response
    if response is None or response.command.code != 0 or not response.body:
        return
    reader = FactsReader(group)
    place = 0
    for record in decode_messages(response.body).messages:
        for message in unwrap_inner_batch(record, budget=seen.budget):
            facts = reader.facts_of(message, seen.body_limit, seen.budget)
            yield MessageEvent(event, place, facts)
            place += 1


def rows_of_check(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of a half message whose transaction a broker checks."""
    assert seen.request is not None
    fields = seen.fields
    records = decode_messages(seen.request.body).messages
    message = records[0] if records else None
    facts = Facts()
    if message is not None:
        facts = FactsReader(None).facts_of(message, seen.body_limit, seen.budget)
    offset_id = fields.get("offsetMsgId") or facts.offset_msg_id
    offset = number_of(fields.get("commitLogOffset"))
    facts = facts._replace(
        unique_key=facts.unique_key or fields.get("msgId"),
        transaction_id=fields.get("transactionId") or facts.transaction_id,
        offset_msg_id=offset_id,
        commit_log_offset=commit_log_offset_of(offset_id) if offset is None else offset,
    )
    yield MessageEvent(CHECKED, 0, facts, from_broker=True)
