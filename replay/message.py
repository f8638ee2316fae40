"""Messages, queues, attempts, and results of a producer.

A message is the application's: a send adds only its UNIQ_KEY, once, so a resend has the same id. A
result lists all attempts, failed ones included, each with the fields of a decoded log row.
RocketMQ: Message, MessageQueue, SendResult, SendStatus, CommunicationMode, LocalTransactionState.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

import msgspec

from dissectors.foreign import natural_of
from dissectors.remoting import sysflag
from dissectors.remoting.codes import RequestCode

UNIQ_KEY: Final = "UNIQ_KEY"
"""Property with the client's message id."""


class SendMode(StrEnum):
    """How a send waits for its response."""

    SYNC = "sync"
    ASYNC = "async"
    ONEWAY = "oneway"


class SendStatus(StrEnum):
    """How a message was stored; all four mean that the broker has it."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class TransactionState(IntEnum):
    """Outcome of a half message; the numbers are those of END_TRANSACTION."""

    UNKNOWN = sysflag.NO_TRANSACTION
    COMMIT = sysflag.COMMIT
    ROLLBACK = sysflag.ROLLBACK


class AttemptOutcome(StrEnum):
    """Outcome of one attempt."""

    ANSWERED = "answered"
    ONEWAY = "oneway"
    TIMEOUT = "timeout"
    CONNECT = "connect"
    LOST = "lost"
    BUSY = "busy"
    GARBAGE = "garbage"
    CANCELLED = "cancelled"
    REFUSED = "refused"


class MessageQueue(NamedTuple):
    """One queue of a topic on one broker."""

    topic: str
    """topic, as the broker knows it"""
    broker_name: str
    """name of the broker group"""
    queue_id: int
    """number of the queue, 0 first"""


@dataclass(slots=True)
class Message:
    """A message to send."""

    topic: str
    """topic, as the application knows it: without namespace"""
    body: bytes
    """body, not compressed"""
    tags: str | None = None
    """tag that consumers filter by"""
    keys: str | None = None
    """keys for queries, separated by blanks"""
    properties: dict[str, str] = field(default_factory=dict)
    """all other properties; UNIQ_KEY is added by the first send"""
    flag: int = 0
    """the application's flag"""
    wait_store_ok: bool | None = True
    """whether the broker responds only when the message is flushed and replicated as configured;
    None: the message does not say, as replies do not"""

    @property
    def unique_key(self) -> str | None:
        """The client's message id; None before the first send."""
        return self.properties.get(UNIQ_KEY)

    @property
    def delay_level(self) -> int:
        """The delay level; 0 if absent or not a number."""
        return natural_of(self.properties.get("DELAY", "0")) or 0

    @property
    def sharding_key(self) -> str | None:
        """The key that chose the queue of an ordered message."""
        return self.properties.get("__SHARDINGKEY")

    def with_properties(self, properties: Mapping[str, str]) -> Message:
        """Return a copy with these properties added."""
        return replace(self, properties={**self.properties, **properties})

    def with_delay_level(self, level: int) -> Message:
        """Return a copy that is delivered after the time of a delay level: 1 is 1 s, 18 is 2 h."""
        return self.with_properties({"DELAY": str(level)})

    def with_delivery_at(self, time_ms: int) -> Message:
        """Return a copy that is delivered at a time, ms since the epoch (brokers since 5.0)."""
        return self.with_properties({"TIMER_DELIVER_MS": str(time_ms)})

    def with_delay_ms(self, delay_ms: int) -> Message:
        """Return a copy that is delivered with a delay in ms (brokers since 5.0)."""
        return self.with_properties({"TIMER_DELAY_MS": str(delay_ms)})

    def with_sharding_key(self, key: str) -> Message:
        """Return a copy with a sharding key."""
        return self.with_properties({"__SHARDINGKEY": key})


def message_of_properties(
    topic: str, body: bytes, properties: Mapping[str, str], flag: int = 0
) -> Message:
    """Return the message that was sent with these properties: the inverse of a send."""
    rest = dict(properties)
    tags, keys = rest.pop("TAGS", None), rest.pop("KEYS", None)
    wait = rest.pop("WAIT", None)
    waits = None if wait is None else wait.lower() == "true"
    return Message(topic, body, tags, keys, rest, flag, waits)


# Attempts and results are made for each message on the hot path, hence msgspec structs.
class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One attempt to send a message to one broker, with its outcome."""

    number: int
    """1 for the first try"""
    queue: MessageQueue
    """where it was to be stored"""
    address: str
    """`host:port` of the broker; empty if it was not known"""
    begin: int
    """when the request was written or the connection begun, ns since the epoch"""
    end: int | None = None
    """when the response or the failure was known, ns since the epoch; None for oneway"""
    outcome: str = AttemptOutcome.ANSWERED
    """a value of `AttemptOutcome`"""
    code: int | None = None
    """response code; None without a response"""
    remark: str | None = None
    """remark of the response"""
    error: str | None = None
    """why there is no response, one sentence"""
    why: str = ""
    """why this broker and queue: the fault strategy's, the selector's or the caller's reason"""
    local: str = ""
    """`address:port` of our side; empty without a connection"""
    conversation: int = 0
    """number of the connection, in the order in which they were opened"""
    opaque: int = 0
    """number that pairs request and response; 0 if nothing was sent"""
    request_code: int = int(RequestCode.SEND_MESSAGE_V2)
    """request code"""
    serialize_type: str = "JSON"
    """JSON or ROCKETMQ"""
    language: str = "PYTHON"
    """language of the request's header"""
    version: int = 0
    """MQVersion ordinal of the request's header"""
    group: str = ""
    """producer group"""
    request_bytes: int | None = None
    """whole frame of the request; None if nothing was sent"""
    response_bytes: int | None = None
    """whole frame of the response; None without one"""
    body_bytes: int = 0
    """body of the request as sent, compressed or not"""
    message_count: int = 1
    """messages in the request"""
    queue_id: int | None = None
    """queue that the broker says; None without a response that says one"""
    queue_offset: int | None = None
    """offset in that queue"""
    offset_msg_id: str | None = None
    """broker's message id; several, joined by commas, for a batch"""

    @property
    def latency_us(self) -> int | None:
        """Time from begin to end in µs; None until the end is known."""
        return (self.end - self.begin) // 1000 if self.end is not None else None


class SendResult(msgspec.Struct, frozen=True, gc=False):
    """The result of a successful send; a oneway message was only written."""

    status: SendStatus
    """how it was stored"""
    unique_key: str
    """client's message id (Java's msgId); of a batch all of them, joined by commas"""
    queue: MessageQueue
    """where it was stored; of a oneway send: where it was sent"""
    queue_offset: int | None = None
    """offset in the queue; None for oneway"""
    offset_msg_id: str | None = None
    """broker's message id; None for oneway"""
    transaction_id: str | None = None
    """id of the transaction of a half message"""
    recall_handle: str | None = None
    """handle that recalls a timer message"""
    region: str | None = None
    """region of the broker, for traces"""
    trace_on: bool = True
    """whether the broker wants traces"""
    transaction_state: TransactionState | None = None
    """outcome of the local transaction; None without one"""
    attempts: tuple[Attempt, ...] = ()
    """every try, the last one is the one that succeeded"""
    hook_errors: tuple[Exception, ...] = ()
    """errors of send hooks, which did not stop the send"""


CheckListener = Callable[[Message], TransactionState | Awaitable[TransactionState]]
"""Return the outcome of a half message's transaction; may be a coroutine function for an
`AsyncProducer`."""
