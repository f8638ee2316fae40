"""Input of the message row builders, and helpers shared by their rows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mypy_extensions import i64

from ..budget import Budget
from ..conversations.conversation import Pdu
from ..foreign import integer_of
from ..remoting.ids.message_ids import physical_offset_of
from ..remoting.ids.pop_receipts import decode_pop_receipt
from ..remoting.messages.message import StoredMessage
from ..remoting.topic_names import LITE_PREFIX
from ..rows.record import ExchangeRecord

MILLI: Final = 1_000_000
"""nanoseconds per millisecond"""
LAST_MS: Final = (1 << 63) // MILLI - 1


class SeenExchange(NamedTuple):
    """An exchange with its row and the client of its connection."""

    request: Pdu | None
    """the request"""
    response: Pdu | None
    """the response"""
    row: ExchangeRecord
    """the row of the exchange, made from them"""
    client_id: str | None
    """client id announced on the connection"""
    body_limit: int
    """maximum bytes of a body; 0: none"""
    budget: Budget
    """budget for decompressed bodies"""

    @property
    def fields(self) -> dict[str, str]:
        """Ext fields of the request."""
        return self.request.command.ext_fields if self.request is not None else {}

    @property
    def answered(self) -> dict[str, str]:
        """Ext fields of the response."""
        return self.response.command.ext_fields if self.response is not None else {}


class Facts(NamedTuple):
    """Facts of a message, besides those shared with its exchange."""

    topic: str | None = None
    original_topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    covers: str | None = None
    producer_group: str | None = None
    consumer_group: str | None = None
    unique_key: str | None = None
    offset_msg_id: str | None = None
    commit_log_offset: int | None = None
    keys: str | None = None
    tags: str | None = None
    transaction_id: str | None = None
    born_time: int | None = None
    store_time: int | None = None
    deliver_time: int | None = None
    reconsume_times: int | None = None
    max_reconsume_times: int | None = None
    delay_level: int | None = None
    body_bytes: int | None = None
    body_crc: int | None = None
    crc_ok: bool | None = None
    body_form: str | None = None
    body: str | None = None


class MessageEvent(NamedTuple):
    """A message in an exchange, as returned by a row builder."""

    event: str
    """what happened to it"""
    place: int
    """index among the messages of the exchange"""
    facts: Facts
    """facts for its row"""
    from_broker: bool = False
    """the broker sent the request"""


CARRIED_BACK: Final = frozenset(("delivered", "viewed"))
"""events of messages that a response carries"""


def ended_well(seen: SeenExchange) -> bool:
    """Return whether the request was not refused, as far as known."""
    return seen.row.response_code in (0, None)


def number_of(text: str | None) -> int | None:
    """Return a decimal 64-bit integer, or None for anything else."""
    return None if text is None else integer_of(text)


def time_of_ms(ms: int | None) -> int | None:
    """Return a time in nanoseconds, or None if absent or implausible."""
    if ms is None or not 0 < ms <= LAST_MS:
        return None
    # In 64 bits: Python handles signals during large-integer multiplication, and compiled code
    # treats an exception raised there as a failed allocation, and aborts.
    whole: i64 = ms
    return whole * MILLI


def commit_log_offset_of(offset_msg_id: str | None) -> int | None:
    """Return the commit log offset in a broker's message id."""
    return physical_offset_of(offset_msg_id) if offset_msg_id else None


def popped_topic_of(topic: str, receipt_text: str | None, group: str | None) -> str | None:
    """Return the topic of a stored message's queue, or None if unknown."""
    if receipt_text is not None:
        receipt = decode_pop_receipt(receipt_text)
        if receipt is not None:
            # A broker gives a POP retry its original topic, but its queue and offset are in a topic
            # named after the group.
            if group is not None:
                return receipt.retry_topic(group, topic)
            if receipt.topic_kind != "0":
                return None
    return topic or None


def lite_queue_of(topic: str, lite_topic: str) -> str:
    """Return the queue name of a lite topic within its topic (LiteUtil.toLmqName)."""
    return f"{LITE_PREFIX}{topic}${lite_topic}"


def deliver_time_of(properties: dict[str, str]) -> int | None:
    """Return the earliest delivery time of a message from its properties, or None."""
    for name in ("TIMER_OUT_MS", "TIMER_DELIVER_MS", "__STARTDELIVERTIME"):
        text = properties.get(name)
        if text:
            return time_of_ms(number_of(text))
    return None


def body_of(
    message: StoredMessage, limit: int, budget: Budget | None = None
) -> tuple[str | None, str | None]:
    """Return form and text of a body's first bytes, or (None, None) for limit 0.

    The body is decompressed as far as `budget` allows, and replaced by a plug-in's output, if any.
    """
    if limit <= 0:
        return None, None
    from ..remoting.bodies.messages import message_value

    value: dict[str, Any] = message_value(message, limit, budget)
    if "content" in value:
        from ..remoting.bodies.custom import decoded_text

        decoded = decoded_text(value["content"])
        if decoded is not None:
            return decoded[0], decoded[1][:limit]
    return value["bodyForm"], value["body"]
