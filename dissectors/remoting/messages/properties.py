"""Message properties: the text between two control characters, and what the reserved names mean.

Rules: reading is tolerant as Java's reader is (a final separator or none, entries without a value
skipped, the later of two equal names wins) and never raises. There is no escaping in this format.
RocketMQ: MessageDecoder.string2messageProperties, messageProperties2String, MessageConst.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"
KEY_SEPARATOR: Final = " "
"""Between the keys inside the value of KEYS."""
TRANSIENT_PREFIX: Final = "__RMQ.TRANSIENT."
"""Names with this prefix live inside a process and are not meant for the wire."""


class PropertyType(StrEnum):
    """What the text of a property's value stands for."""

    TEXT = "text"
    INT = "int"
    BOOLEAN = "boolean"
    TIME_MS = "time in ms since the epoch"
    MS = "duration in ms"
    SECONDS = "duration in s"


_TEXT: Final = PropertyType.TEXT
_INT: Final = PropertyType.INT
_BOOLEAN: Final = PropertyType.BOOLEAN
_TIME_MS: Final = PropertyType.TIME_MS
_MS: Final = PropertyType.MS
_SECONDS: Final = PropertyType.SECONDS


class Property(NamedTuple):
    """One property name that RocketMQ itself gives a meaning."""

    name: str
    """Name on the wire."""
    constant: str
    """Constant of MessageConst."""
    type: PropertyType
    """How to read the value."""
    meaning: str
    """What it says."""
    reserved: bool = True
    """Applications may not set it as a user property."""
    since: str = ""
    """First release with it; empty: 5.3.3 or an earlier one."""


PROPERTIES: Final[tuple[Property, ...]] = (
    # identity and content
    Property("KEYS", "PROPERTY_KEYS", _TEXT, "keys for queries, separated by blanks"),
    Property("TAGS", "PROPERTY_TAGS", _TEXT, "tag that consumers filter by"),
    Property(
        "UNIQ_KEY",
        "PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX",
        _TEXT,
        "message id made by the client; the same in every attempt to send",
    ),
    Property("EXTEND_UNIQ_INFO", "PROPERTY_EXTEND_UNIQ_INFO", _TEXT, "addition to UNIQ_KEY"),
    Property("DUP_INFO", "DUP_INFO", _TEXT, "origin of a message copied between clusters"),
    Property("INSTANCE_ID", "PROPERTY_INSTANCE_ID", _TEXT, "namespace of the client"),
    Property("PGROUP", "PROPERTY_PRODUCER_GROUP", _TEXT, "producer group of a half message"),
    Property("BUYER_ID", "PROPERTY_BUYER_ID", _TEXT, "buyer, a routing hint of the application"),
    Property(
        "__SHARDINGKEY",
        "PROPERTY_SHARDING_KEY",
        _TEXT,
        "key that chose the queue of an ordered message",
        reserved=False,
    ),
    Property(
        "CLUSTER", "PROPERTY_CLUSTER", _TEXT, "cluster that stored the request, for its reply"
    ),
    Property("MSG_REGION", "PROPERTY_MSG_REGION", _TEXT, "region of the broker that stored it"),
    Property("__BORNHOST", "PROPERTY_BORN_HOST", _TEXT, "host of a client behind the proxy"),
    Property("BORN_TIMESTAMP", "PROPERTY_BORN_TIMESTAMP", _TIME_MS, "when such a client made it"),
    Property("__CRC32#", "PROPERTY_CRC32", _TEXT, "CRC of the record up to here, digits reversed"),
    # sending
    Property("WAIT", "PROPERTY_WAIT_STORE_MSG_OK", _BOOLEAN, "answer only when stored as asked"),
    Property("TRACE_ON", "PROPERTY_TRACE_SWITCH", _BOOLEAN, "false: no trace of this message"),
    Property("TRACE_CONTEXT", "PROPERTY_TRACE_CONTEXT", _TEXT, "tracing context", reserved=False),
    Property("TRANSFER_FLAG", "PROPERTY_TRANSFER_FLAG", _TEXT, "unit the message came from"),
    Property(
        "_SYS_MSG_PRIORITY_",
        "PROPERTY_PRIORITY",
        _INT,
        "priority, which chooses the queue in topics of that kind",
        since="5.4.0",
    ),
    Property("CORRECTION_FLAG", "PROPERTY_CORRECTION_FLAG", _TEXT, "unit that corrects it"),
    Property("MQ2_FLAG", "PROPERTY_MQ2_FLAG", _TEXT, "message of the predecessor system"),
    Property("REDIRECT", "PROPERTY_REDIRECT", _TEXT, "redirected message", reserved=False),
    Property(
        "PROPERTY_FORWARD_QUEUE_ID",
        "PROPERTY_FORWARD_QUEUE_ID",
        _INT,
        "queue the message is forwarded to",
        reserved=False,
    ),
    Property("INNER_NUM", "PROPERTY_INNER_NUM", _INT, "messages in this record", reserved=False),
    Property(
        "INNER_BASE",
        "PROPERTY_INNER_BASE",
        _INT,
        "queue offset of the first message in this record",
        reserved=False,
    ),
    Property(
        "INNER_MULTI_DISPATCH",
        "PROPERTY_INNER_MULTI_DISPATCH",
        _TEXT,
        "light queues (LMQ) it is dispatched to, separated by commas",
        reserved=False,
    ),
    Property(
        "INNER_MULTI_QUEUE_OFFSET",
        "PROPERTY_INNER_MULTI_QUEUE_OFFSET",
        _TEXT,
        "its offsets in those queues, in the same order",
    ),
    Property(
        "__LITE_TOPIC", "PROPERTY_LITE_TOPIC", _TEXT, "lite topic within its topic", since="5.5.0"
    ),
    # queues and retries
    Property("REAL_TOPIC", "PROPERTY_REAL_TOPIC", _TEXT, "topic it is really for"),
    Property("REAL_QID", "PROPERTY_REAL_QUEUE_ID", _INT, "queue it is really for"),
    Property("RETRY_TOPIC", "PROPERTY_RETRY_TOPIC", _TEXT, "topic it was first consumed from"),
    Property(
        "ORIGIN_MESSAGE_ID",
        "PROPERTY_ORIGIN_MESSAGE_ID",
        _TEXT,
        "offset message id of the first delivery",
    ),
    Property("RECONSUME_TIME", "PROPERTY_RECONSUME_TIME", _INT, "failed deliveries so far"),
    Property(
        "MAX_RECONSUME_TIMES",
        "PROPERTY_MAX_RECONSUME_TIMES",
        _INT,
        "failed deliveries before the dead-letter queue",
    ),
    Property("DLQ_ORIGIN_TOPIC", "PROPERTY_DLQ_ORIGIN_TOPIC", _TEXT, "topic of a dead letter"),
    Property(
        "DLQ_ORIGIN_MESSAGE_ID",
        "PROPERTY_DLQ_ORIGIN_MESSAGE_ID",
        _TEXT,
        "message id of a dead letter",
    ),
    Property(
        "ORIGIN_GROUP",
        "PROPERTY_ORIGIN_GROUP",
        _TEXT,
        "consumer group whose POP retry it is",
        since="5.4.0",
    ),
    Property("MIN_OFFSET", "PROPERTY_MIN_OFFSET", _INT, "least offset of the queue when pulled"),
    Property("MAX_OFFSET", "PROPERTY_MAX_OFFSET", _INT, "end offset of the queue when pulled"),
    Property(
        "CONSUME_START_TIME",
        "PROPERTY_CONSUME_START_TIMESTAMP",
        _TIME_MS,
        "when a consumer began with it",
    ),
    # transactions
    Property("TRAN_MSG", "PROPERTY_TRANSACTION_PREPARED", _BOOLEAN, "half message"),
    Property(
        "__transactionId__",
        "PROPERTY_TRANSACTION_ID",
        _TEXT,
        "id of the transaction",
        reserved=False,
    ),
    Property(
        "TRAN_PREPARED_QUEUE_OFFSET",
        "PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET",
        _INT,
        "offset of the half message in its own queue",
    ),
    Property(
        "TRANSACTION_CHECK_TIMES",
        "PROPERTY_TRANSACTION_CHECK_TIMES",
        _INT,
        "checks sent back for this half message",
        reserved=False,
    ),
    Property(
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS",
        _SECONDS,
        "no check before this time is over",
        reserved=False,
    ),
    Property(
        "TRANS_OFFSET",
        "PROPERTY_TRANS_OFFSET",
        _INT,
        "commit log offset of the half message, where RocksDB keeps the transactions",
        reserved=False,
        since="5.4.0",
    ),
    # request and reply
    Property("CORRELATION_ID", "PROPERTY_CORRELATION_ID", _TEXT, "joins a reply to its request"),
    Property(
        "REPLY_TO_CLIENT",
        "PROPERTY_MESSAGE_REPLY_TO_CLIENT",
        _TEXT,
        "client id that waits for the reply",
    ),
    Property("TTL", "PROPERTY_MESSAGE_TTL", _MS, "how long the requester waits"),
    Property("ARRIVE_TIME", "PROPERTY_REPLY_MESSAGE_ARRIVE_TIME", _TIME_MS, "reply at the broker"),
    Property("PUSH_REPLY_TIME", "PROPERTY_PUSH_REPLY_TIME", _TIME_MS, "reply pushed to the client"),
    Property("MSG_TYPE", "PROPERTY_MESSAGE_TYPE", _TEXT, "`reply` marks a reply message"),
    # delay and timer
    Property("DELAY", "PROPERTY_DELAY_TIME_LEVEL", _INT, "delay level, 1 to 18 by default"),
    Property("TIMER_DELAY_SEC", "PROPERTY_TIMER_DELAY_SEC", _SECONDS, "delay asked for"),
    Property("TIMER_DELAY_MS", "PROPERTY_TIMER_DELAY_MS", _MS, "delay asked for"),
    Property("TIMER_DELIVER_MS", "PROPERTY_TIMER_DELIVER_MS", _TIME_MS, "delivery time asked for"),
    Property("TIMER_OUT_MS", "PROPERTY_TIMER_OUT_MS", _TIME_MS, "delivery time as rounded"),
    Property("TIMER_ENQUEUE_MS", "PROPERTY_TIMER_ENQUEUE_MS", _TIME_MS, "put into the timer wheel"),
    Property("TIMER_DEQUEUE_MS", "PROPERTY_TIMER_DEQUEUE_MS", _TIME_MS, "taken from the wheel"),
    Property("TIMER_ROLL_TIMES", "PROPERTY_TIMER_ROLL_TIMES", _INT, "rounds of the timer wheel"),
    Property(
        "TIMER_DEL_UNIQKEY",
        "PROPERTY_TIMER_DEL_UNIQKEY",
        _TEXT,
        "UNIQ_KEY of the timer message that this one recalls",
    ),
    Property("TIMER_DELAY_LEVEL", "PROPERTY_TIMER_DELAY_LEVEL", _INT, "level of a timer message"),
    Property(
        "TIMER_ROLL_LABEL",
        "PROPERTY_TIMER_ROLL_LABEL",
        _TEXT,
        "`R`: not due yet, put back into the timer that RocksDB keeps",
        reserved=False,
        since="5.4.0",
    ),
    # POP
    Property("POP_CK", "PROPERTY_POP_CK", _TEXT, "receipt to acknowledge the message with"),
    Property("POP_CK_OFFSET", "PROPERTY_POP_CK_OFFSET", _INT, "offset of the check point"),
    Property("1ST_POP_TIME", "PROPERTY_FIRST_POP_TIME", _TIME_MS, "first time it was popped"),
    # inside a process
    Property(
        "__RMQ.TRANSIENT.TOPIC_SYS_FLAG",
        "PROPERTY_TRANSIENT_TOPIC_CONFIG",
        _INT,
        "sysFlag of the topic",
        reserved=False,
    ),
    Property(
        "__RMQ.TRANSIENT.GROUP_SYS_FLAG",
        "PROPERTY_TRANSIENT_GROUP_CONFIG",
        _INT,
        "sysFlag of the group",
        reserved=False,
    ),
)
"""Every property name of MessageConst."""

_BY_NAME: Final = {item.name: item for item in PROPERTIES}


def property_of(name: str) -> Property | None:
    """Return what RocketMQ means by a property name; None for the application's own names."""
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


def encode_properties(properties: Mapping[str, str | None], *, final_separator: bool = True) -> str:
    """Return the text of properties; None values are left out.

    `final_separator`: releases up to 4.9.0 and from 5.2.0 end the last entry with 0x02, those
    from 4.9.1 to 5.1.4 do not. ValueError if a separator inside a name or value would tear it.
    """
    entries = [
        f"{name}{NAME_VALUE_SEPARATOR}{value}"
        for name, value in properties.items()
        if value is not None
    ]
    text = PROPERTY_SEPARATOR.join(entries)
    # Counted once and not looked for in each: this is run for every message that is sent.
    torn = text.count(NAME_VALUE_SEPARATOR) != len(entries)
    if torn or text.count(PROPERTY_SEPARATOR) != max(len(entries) - 1, 0):
        _refuse_torn(properties)
    return text + PROPERTY_SEPARATOR if entries and final_separator else text


def _refuse_torn(properties: Mapping[str, str | None]) -> None:
    """Raise ValueError for a separator that would tear an entry; in a value 0x01 would not."""
    for name, value in properties.items():
        if value is not None and (
            NAME_VALUE_SEPARATOR in name
            or PROPERTY_SEPARATOR in name
            or PROPERTY_SEPARATOR in value
        ):
            raise ValueError(f"a separator inside the property {name!r}")
