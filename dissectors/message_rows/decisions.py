"""Rows of later steps of a message: acknowledged, returned, ended, recalled.

RocketMQ: UpdateConsumerOffsetRequestHeader, PullMessageRequestHeader, AckMessageRequestHeader,
BatchAckMessageRequestBody, ChangeInvisibleTimeRequestHeader, ConsumerSendMsgBackRequestHeader,
EndTransactionRequestHeader, RecallMessageRequestHeader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..remoting.fastjson.codec import decode_json
from ..remoting.ids.message_ids import decode_recall_handle
from ..remoting.ids.pop_receipts import TOPIC_KINDS, decode_bit_set, retry_topic_of
from ..remoting.sysflag import transaction_of
from ..remoting.topic_names import original_topic_of_name
from ..rows.message_record import (
    ACKNOWLEDGED,
    BEFORE,
    COMMITTED,
    DEAD,
    RECALLED,
    REFUSED,
    RETURNED,
    ROLLED_BACK,
    THIS,
    UNDECIDED,
)
from .seen_exchange import (
    Facts,
    MessageEvent,
    SeenExchange,
    ended_well,
    lite_queue_of,
    number_of,
    time_of_ms,
)

MAX_ACKNOWLEDGED: Final = 4096
"""maximum rows of one batch acknowledgement"""
MAX_POPPED: Final = 32
"""maximum rows of one entry: a broker returns no more in one pop (PopMessageProcessor)"""
_DECISIONS: Final = {"commit": COMMITTED, "rollback": ROLLED_BACK}


def _event(seen: SeenExchange, event: str) -> str:
    return event if ended_well(seen) else REFUSED


def rows_of_commit(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of an offset commit."""
    offset = number_of(seen.fields.get("commitOffset"))
    yield row_of_commit(seen, offset, _event(seen, ACKNOWLEDGED))


def row_of_commit(seen: SeenExchange, offset: int | None, event: str) -> MessageEvent:
    """Return the row of a commit, which acknowledges all messages before its offset."""
    row = seen.row
    facts = Facts(
        row.topic,
        row.original_topic,
        row.queue_id,
        offset,
        BEFORE,
        consumer_group=row.group,
    )
    return MessageEvent(event, 0, facts)


def rows_of_ack(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of a POP acknowledgement."""
    yield MessageEvent(_event(seen, ACKNOWLEDGED), 0, _popped(seen)._replace(covers=THIS))


def rows_of_new_invisible_time(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of a popped message that a consumer postpones: the POP form of a return."""
    answered = seen.answered
    popped = number_of(answered.get("popTime"))
    invisible = number_of(answered.get("invisibleTime") or seen.fields.get("invisibleTime"))
    due = None
    if popped is not None and invisible is not None and ended_well(seen):
        due = time_of_ms(popped + invisible)
    yield MessageEvent(_event(seen, RETURNED), 0, _popped(seen)._replace(deliver_time=due))


def _popped(seen: SeenExchange) -> Facts:
    row = seen.row
    lite = seen.fields.get("liteTopic")
    return Facts(
        lite_queue_of(row.topic, lite) if row.topic and lite else row.topic,
        row.original_topic,
        row.queue_id,
        number_of(seen.fields.get("offset")),
        consumer_group=row.group,
    )


def rows_of_batch_ack(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield a row for each message in a POP batch acknowledgement."""
    assert seen.request is not None
    value = decode_json(seen.request.body).value
    acks = value.get("acks") if isinstance(value, dict) else None
    event = _event(seen, ACKNOWLEDGED)
    place = 0
    for ack in acks if isinstance(acks, list) else []:
        if not isinstance(ack, dict):
            continue
        topic, group = _text(ack.get("t")), _text(ack.get("c"))
        # `t` is the original topic; `r` tells whether the messages are in a retry topic, and which.
        if topic is not None and group is not None and ack.get("r") in TOPIC_KINDS:
            topic = retry_topic_of(str(ack["r"]), group, topic)
        first, queue = ack.get("so"), ack.get("q")
        places = decode_bit_set(_text(ack.get("b")) or "") or ()
        if not isinstance(first, int) or not isinstance(queue, int):
            continue
        # Each bit is a message of the pop, counted from its first offset.
        for bit in places[: min(MAX_POPPED, MAX_ACKNOWLEDGED - place)]:
            facts = Facts(
                topic,
                original_topic_of_name(topic, group),
                queue,
                first + bit,
                THIS,
                consumer_group=group,
            )
            yield MessageEvent(event, place, facts)
            place += 1


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def rows_of_return(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of a message that a consumer returns."""
    row, fields = seen.row, seen.fields
    level = number_of(fields.get("delayLevel"))
    origin = fields.get("originTopic")
    facts = Facts(
        origin or None,
        original_topic_of_name(origin, row.group),
        consumer_group=row.group,
        unique_key=fields.get("originMsgId") or None,
        commit_log_offset=number_of(fields.get("offset")),
        max_reconsume_times=number_of(fields.get("maxReconsumeTimes")),
        delay_level=level,
    )
    dead = level is not None and level < 0  # the consumer asks for the dead-letter queue at once
    yield MessageEvent(_event(seen, DEAD if dead else RETURNED), 0, facts)


def rows_of_transaction_end(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of a half message whose transaction its producer ends."""
    row, fields = seen.row, seen.fields
    decision = transaction_of(number_of(fields.get("commitOrRollback")) or 0)
    facts = Facts(
        row.topic,
        row.original_topic,
        producer_group=row.group,
        unique_key=fields.get("msgId") or fields.get("transactionId") or None,
        commit_log_offset=number_of(fields.get("commitLogOffset")),
        transaction_id=fields.get("transactionId") or None,
    )
    yield MessageEvent(_event(seen, _DECISIONS.get(decision, UNDECIDED)), 0, facts)


def rows_of_recall(seen: SeenExchange) -> Iterator[MessageEvent]:
    """Yield the row of a timed message that its producer recalls."""
    row, fields = seen.row, seen.fields
    handle = decode_recall_handle(fields.get("recallHandle") or "")
    facts = Facts(
        row.topic,
        row.original_topic,
        producer_group=row.group,
        unique_key=(handle.unique_key if handle is not None else None)
        or seen.answered.get("msgId"),
        deliver_time=time_of_ms(handle.deliver_time) if handle is not None else None,
    )
    yield MessageEvent(_event(seen, RECALLED), 0, facts)
