"""Select captured sends by filter, time window, sample, and kind of topic.

Rules: pure; a choice depends on the message alone, so it is the same in each run and after a
resume. A sample uses a key's hash: it has all messages of a key, or none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from dissectors.decode.exchange import Exchange
from dissectors.decode.exchange_row import record_of
from dissectors.remoting.code_names import request_name, response_name
from dissectors.remoting.topic_names import (
    DLQ_PREFIX,
    REPLY_SUFFIX,
    RETRY_PREFIX,
    is_internal_topic,
    is_trace_topic,
)
from dissectors.rows.record import COLUMNS, ExchangeRecord

from ..captured.captured_send import CapturedSend, Refusal, Seen, SkipReason
from ..message import Message

_HASHES: Final = 1 << 64


class OptionalKind(StrEnum):
    """Kinds of messages that are replayed only on request."""

    retry = "retry"
    dlq = "dlq"
    system = "system"
    trace = "trace"
    replies = "replies"


_REASONS: Final = {
    OptionalKind.retry: SkipReason.RETRY_TOPIC,
    OptionalKind.dlq: SkipReason.DLQ_TOPIC,
    OptionalKind.system: SkipReason.SYSTEM_TOPIC,
    OptionalKind.trace: SkipReason.TRACE_TOPIC,
    OptionalKind.replies: SkipReason.REPLY,
}


class SampleBy(StrEnum):
    """What a sample keeps together."""

    key = "key"
    topic = "topic"
    group = "group"
    conversation = "conversation"


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of captured messages."""

    where: Callable[[object], bool] | None = None
    """test of the exchange's record; None: all"""
    since: int | None = None
    """ns since the epoch; earlier requests are left out"""
    until: int | None = None
    """ns since the epoch; requests at or after that are left out"""
    include: frozenset[OptionalKind] = frozenset()
    """additional kinds to replay"""
    sample: Fraction | None = None
    """share of the keys; None: all"""
    sample_by: SampleBy = SampleBy.key
    """what is kept together"""


def kind_of(topic: str, is_reply: bool = False) -> OptionalKind | None:
    """Return the kind of a message that is skipped by default; None for an application's."""
    if topic.startswith(RETRY_PREFIX):
        return OptionalKind.retry
    if topic.startswith(DLQ_PREFIX):
        return OptionalKind.dlq
    if is_reply or topic.endswith(REPLY_SUFFIX):
        return OptionalKind.replies
    if is_trace_topic(topic):
        return OptionalKind.trace
    if is_internal_topic(topic):
        return OptionalKind.system
    return None


def refusal_of(captured: CapturedSend, choice: Selection) -> Refusal | None:
    """Return why a send is skipped, or None if it is selected. `in_sample` checks the sample."""
    header = captured.header
    time = captured.seen.origin.time
    if choice.since is not None and time < choice.since:
        return Refusal(SkipReason.NOT_IN_TIME)
    if choice.until is not None and time >= choice.until:
        return Refusal(SkipReason.NOT_IN_TIME)
    kind = kind_of(header.topic, header.is_reply)
    if kind is not None and kind not in choice.include:
        return Refusal(_REASONS[kind], header.topic)
    if choice.where is not None and not choice.where(record_of_captured(captured)):
        return Refusal(SkipReason.NOT_WANTED)
    return None


def in_sample(captured: CapturedSend, message: Message, choice: Selection) -> bool:
    """Return whether the message's key is in the sample."""
    if choice.sample is None or choice.sample >= 1:
        return True
    # not hash(), whose seed differs between processes and runs
    key = _key_of(captured, message, choice.sample_by).encode(errors="surrogatepass")
    digest = hashlib.blake2b(key, digest_size=8)
    return Fraction(int.from_bytes(digest.digest(), "big"), _HASHES) < choice.sample


def _key_of(captured: CapturedSend, message: Message, by: SampleBy) -> str:
    """Return the sampling key: the sharding key, the first key, or the message's own id."""
    if by is SampleBy.topic:
        return captured.header.topic
    if by is SampleBy.group:
        return captured.header.group
    if by is SampleBy.conversation:
        return f"{captured.seen.origin.client_address} {captured.seen.origin.server_address}"
    keys = (message.keys or "").split()
    return message.sharding_key or (keys[0] if keys else message.unique_key or "")


def record_of_captured(captured: CapturedSend) -> ExchangeRecord:
    """Return the exchange as a decoded row; of several attempts, the answered one."""
    seen, response = captured.seen, captured.response
    if seen.pdu is not None:
        return record_of(Exchange(response.request or seen.pdu, response.pdu), seen.origin.capture)
    return _record_of_log(captured, seen)


def _record_of_log(captured: CapturedSend, seen: Seen) -> ExchangeRecord:
    """Return the exchange of a log as a row, without columns that need the bytes."""
    header, response, origin = captured.header, captured.response, seen.origin
    command = seen.command
    message = seen.messages[0] if seen.messages and not header.is_batch else None
    values: dict[str, object] = {column.name: None for column in COLUMNS}
    values |= {
        "capture": origin.capture,
        "conversation": origin.conversation,
        "client_address": origin.client_address,
        "server_address": origin.server_address,
        "status": response.status,
        "request_packet": origin.packet,
        "request_time": origin.time,
        "latency_us": response.latency_us,
        "opaque": origin.opaque,
        "request_code": command.code,
        "request_name": request_name(command.code),
        "response_code": response.code,
        "remark": response.remark,
        "language": command.language or None,
        "version": command.version,
        "serialize_type": command.serialize_type,
        "topic": header.topic,
        "group": header.group or None,
        "queue_id": header.queue_id if header.queue_id >= 0 else response.queue_id,
        "broker_name": header.broker_name or None,
        "unique_key": header.unique_key,
        "keys": message.keys if message else None,
        "tags": message.tags if message else None,
        "body_bytes": sum(len(item.body) for item in seen.messages or ()),
        "missing_bytes": seen.missing,
        "message_count": len(seen.messages or ()),
        "queue_offset": response.queue_offset,
        "findings": [],
        "brokers": [],
    }
    if response.code is not None:
        values["response_name"] = response_name(response.code, command.code, command.version)
    return ExchangeRecord(**values)  # type: ignore[arg-type]
