"""Message properties: their text format, and the meanings of reserved names.

Rules: reading is as tolerant as Java's (optional final separator, entries without a value skipped,
the later of two equal names wins) and never raises. The format has no escaping. RocketMQ:
MessageDecoder.string2messageProperties, messageProperties2String, MessageConst.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from mypy_extensions import i64

from ...table_text import entries

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"


class PropertyType(StrEnum):
    """Type of a property value."""

    TEXT = "text"
    INT = "int"
    BOOLEAN = "boolean"
    TIME_MS = "time in ms since the epoch"
    MS = "duration in ms"
    SECONDS = "duration in s"


class Property(NamedTuple):
    """A property name with a meaning to RocketMQ."""

    name: str
    """Name on the wire."""
    constant: str
    """Constant of MessageConst."""
    type: PropertyType
    """Type of the value."""
    meaning: str
    """Meaning of the value."""
    reserved: bool = True
    """Applications may not set it as a user property."""
    since: str = ""
    """First release with it; empty: 5.3.3 or an earlier one."""


def _property_of(name: str, text: str) -> Property:
    columns, _, meaning = text.partition("; ")
    constant, type_, *rest = columns.split(", ")
    since = next((part.removeprefix("since ") for part in rest if part != "not reserved"), "")
    kind = PropertyType[type_.upper()]
    return Property(name, constant, kind, meaning, "not reserved" not in rest, since)


# NAME: CONSTANT of MessageConst, type; meaning
_TABLE: Final = """
# identity and content
KEYS: PROPERTY_KEYS, text; keys for queries, separated by blanks
TAGS: PROPERTY_TAGS, text; tag that consumers filter by
UNIQ_KEY: PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, text; message id made by the client; the same in
  every attempt to send
EXTEND_UNIQ_INFO: PROPERTY_EXTEND_UNIQ_INFO, text; addition to UNIQ_KEY
DUP_INFO: DUP_INFO, text; origin of a message copied between clusters
INSTANCE_ID: PROPERTY_INSTANCE_ID, text; namespace of the client
PGROUP: PROPERTY_PRODUCER_GROUP, text; producer group of a half message
BUYER_ID: PROPERTY_BUYER_ID, text; buyer, a routing hint of the application
__SHARDINGKEY: PROPERTY_SHARDING_KEY, text, not reserved; key that chose the queue of an ordered
  message
CLUSTER: PROPERTY_CLUSTER, text; cluster that stored the request, for its reply
MSG_REGION: PROPERTY_MSG_REGION, text; region of the broker that stored it
__BORNHOST: PROPERTY_BORN_HOST, text; host of a client behind the proxy
BORN_TIMESTAMP: PROPERTY_BORN_TIMESTAMP, time_ms; when such a client made it
__CRC32#: PROPERTY_CRC32, text; CRC of the record up to here, digits reversed
# sending
WAIT: PROPERTY_WAIT_STORE_MSG_OK, boolean; respond only when stored as asked
TRACE_ON: PROPERTY_TRACE_SWITCH, boolean; false: no trace of this message
TRACE_CONTEXT: PROPERTY_TRACE_CONTEXT, text, not reserved; tracing context
TRANSFER_FLAG: PROPERTY_TRANSFER_FLAG, text; unit the message came from
_SYS_MSG_PRIORITY_: PROPERTY_PRIORITY, int, since 5.4.0; priority, which chooses the queue in
  topics of that kind
CORRECTION_FLAG: PROPERTY_CORRECTION_FLAG, text; unit that corrects it
MQ2_FLAG: PROPERTY_MQ2_FLAG, text; message of the predecessor system
REDIRECT: PROPERTY_REDIRECT, text, not reserved; redirected message
PROPERTY_FORWARD_QUEUE_ID: PROPERTY_FORWARD_QUEUE_ID, int, not reserved; queue the message is
  forwarded to
INNER_NUM: PROPERTY_INNER_NUM, int, not reserved; messages in this record
INNER_BASE: PROPERTY_INNER_BASE, int, not reserved; queue offset of the first message in this
  record
INNER_MULTI_DISPATCH: PROPERTY_INNER_MULTI_DISPATCH, text, not reserved; light queues (LMQ) it is
  dispatched to, separated by commas
INNER_MULTI_QUEUE_OFFSET: PROPERTY_INNER_MULTI_QUEUE_OFFSET, text; its offsets in those queues, in
  the same order
__LITE_TOPIC: PROPERTY_LITE_TOPIC, text, since 5.5.0; lite topic within its topic
# queues and retries
REAL_TOPIC: PROPERTY_REAL_TOPIC, text; topic it is really for
REAL_QID: PROPERTY_REAL_QUEUE_ID, int; queue it is really for
RETRY_TOPIC: PROPERTY_RETRY_TOPIC, text; topic it was first consumed from
ORIGIN_MESSAGE_ID: PROPERTY_ORIGIN_MESSAGE_ID, text; offset message id of the first delivery
RECONSUME_TIME: PROPERTY_RECONSUME_TIME, int; failed deliveries so far
MAX_RECONSUME_TIMES: PROPERTY_MAX_RECONSUME_TIMES, int; failed deliveries before the dead-letter
  queue
DLQ_ORIGIN_TOPIC: PROPERTY_DLQ_ORIGIN_TOPIC, text; topic of a dead letter
DLQ_ORIGIN_MESSAGE_ID: PROPERTY_DLQ_ORIGIN_MESSAGE_ID, text; message id of a dead letter
ORIGIN_GROUP: PROPERTY_ORIGIN_GROUP, text, since 5.4.0; consumer group whose POP retry it is
MIN_OFFSET: PROPERTY_MIN_OFFSET, int; least offset of the queue when pulled
MAX_OFFSET: PROPERTY_MAX_OFFSET, int; end offset of the queue when pulled
CONSUME_START_TIME: PROPERTY_CONSUME_START_TIMESTAMP, time_ms; when a consumer began with it
# transactions
TRAN_MSG: PROPERTY_TRANSACTION_PREPARED, boolean; half message
__transactionId__: PROPERTY_TRANSACTION_ID, text, not reserved; id of the transaction
TRAN_PREPARED_QUEUE_OFFSET: PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET, int; offset of the half
  message in its own queue
TRANSACTION_CHECK_TIMES: PROPERTY_TRANSACTION_CHECK_TIMES, int, not reserved; checks sent back for
  this half message
CHECK_IMMUNITY_TIME_IN_SECONDS: PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS, seconds, not reserved; no
  check before this time is over
TRANS_OFFSET: PROPERTY_TRANS_OFFSET, int, not reserved, since 5.4.0; commit log offset of the half
  message, where RocksDB keeps the transactions
# request and reply
CORRELATION_ID: PROPERTY_CORRELATION_ID, text; joins a reply to its request
REPLY_TO_CLIENT: PROPERTY_MESSAGE_REPLY_TO_CLIENT, text; client id that waits for the reply
TTL: PROPERTY_MESSAGE_TTL, ms; how long the requester waits
ARRIVE_TIME: PROPERTY_REPLY_MESSAGE_ARRIVE_TIME, time_ms; reply at the broker
PUSH_REPLY_TIME: PROPERTY_PUSH_REPLY_TIME, time_ms; reply pushed to the client
MSG_TYPE: PROPERTY_MESSAGE_TYPE, text; `reply` marks a reply message
# delay and timer
DELAY: PROPERTY_DELAY_TIME_LEVEL, int; delay level, 1 to 18 by default
TIMER_DELAY_SEC: PROPERTY_TIMER_DELAY_SEC, seconds; delay asked for
TIMER_DELAY_MS: PROPERTY_TIMER_DELAY_MS, ms; delay asked for
TIMER_DELIVER_MS: PROPERTY_TIMER_DELIVER_MS, time_ms; delivery time asked for
TIMER_OUT_MS: PROPERTY_TIMER_OUT_MS, time_ms; delivery time as rounded
TIMER_ENQUEUE_MS: PROPERTY_TIMER_ENQUEUE_MS, time_ms; put into the timer wheel
TIMER_DEQUEUE_MS: PROPERTY_TIMER_DEQUEUE_MS, time_ms; taken from the wheel
TIMER_ROLL_TIMES: PROPERTY_TIMER_ROLL_TIMES, int; rounds of the timer wheel
TIMER_DEL_UNIQKEY: PROPERTY_TIMER_DEL_UNIQKEY, text; UNIQ_KEY of the timer message that this one
  recalls
TIMER_DELAY_LEVEL: PROPERTY_TIMER_DELAY_LEVEL, int; level of a timer message
TIMER_ROLL_LABEL: PROPERTY_TIMER_ROLL_LABEL, text, not reserved, since 5.4.0; `R`: not due yet,
  put back into the timer that RocksDB keeps
# POP
POP_CK: PROPERTY_POP_CK, text; receipt to acknowledge the message with
POP_CK_OFFSET: PROPERTY_POP_CK_OFFSET, int; offset of the check point
1ST_POP_TIME: PROPERTY_FIRST_POP_TIME, time_ms; first time it was popped
# inside a process
__RMQ.TRANSIENT.TOPIC_SYS_FLAG: PROPERTY_TRANSIENT_TOPIC_CONFIG, int, not reserved; sysFlag of the
  topic
__RMQ.TRANSIENT.GROUP_SYS_FLAG: PROPERTY_TRANSIENT_GROUP_CONFIG, int, not reserved; sysFlag of the
  group
"""
PROPERTIES: Final = tuple(_property_of(name, text) for name, text in entries(_TABLE))
"""Every property name of MessageConst."""

_BY_NAME: Final = {item.name: item for item in PROPERTIES}


def property_of(name: str) -> Property | None:
    """Return RocketMQ's meaning of a property name, or None for application names."""
    return _BY_NAME.get(name)


def decode_properties(text: str) -> dict[str, str]:
    """Return the properties of a record, a batch item or a send header, in their order.

    A value may hold further 0x01; an entry without name or without value is skipped.
    """
    properties: dict[str, str] = {}
    for entry in text.split(PROPERTY_SEPARATOR):
        name, _, value = entry.partition(NAME_VALUE_SEPARATOR)
        if value and name:
            properties[name] = value
    return properties


def value_in(text: str, name: str) -> str | None:
    """Return the value of a property, or None; of duplicate names, the last one with a value.

    The rest of the text is not parsed.
    """
    entry = f"{name}{NAME_VALUE_SEPARATOR}"
    at: i64 = text.rfind(entry)
    while at >= 0:
        if at == 0 or text[at - 1] == PROPERTY_SEPARATOR:  # else the end of another name
            start: i64 = at + len(entry)
            end: i64 = text.find(PROPERTY_SEPARATOR, start)
            value = text[start:end] if end >= 0 else text[start:]
            if value:
                return value
        at = text.rfind(entry, 0, at)
    return None


def encode_properties(properties: Mapping[str, str | None], *, final_separator: bool = True) -> str:
    """Encode properties; None values are omitted.

    `final_separator`: releases up to 4.9.0 and from 5.2.0 end the last entry with 0x02, those from
    4.9.1 to 5.1.4 do not. Raise ValueError for a separator inside a name or value.
    """
    entries = [
        f"{name}{NAME_VALUE_SEPARATOR}{value}"
        for name, value in properties.items()
        if value is not None
    ]
    text = PROPERTY_SEPARATOR.join(entries)
    # Counted once instead of searched in each: this runs for every message that is sent.
    torn = text.count(NAME_VALUE_SEPARATOR) != len(entries)
    if torn or text.count(PROPERTY_SEPARATOR) != max(len(entries) - 1, 0):
        _refuse_torn(properties)
    return text + PROPERTY_SEPARATOR if entries and final_separator else text


def _refuse_torn(properties: Mapping[str, str | None]) -> None:
    """Raise ValueError for a separator that would split an entry; 0x01 in a value would not."""
    for name, value in properties.items():
        if value is not None and (
            NAME_VALUE_SEPARATOR in name
            or PROPERTY_SEPARATOR in name
            or PROPERTY_SEPARATOR in value
        ):
            raise ValueError(f"a separator inside the property {name!r}")
