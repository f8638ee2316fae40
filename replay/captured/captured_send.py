"""Captured exchange → messages, their outcome, or the reason why it is not replayed.

Nothing raises because of what a capture contains: a request that cannot be replayed has a reason
from the closed list `SkipReason`. A message is the application's: body decompressed, without the
properties that a producer sets again.
RocketMQ: SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageProcessor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple
from weakref import WeakSet

import msgspec

from dissectors.budget import Budget
from dissectors.conversations.conversation import Pdu
from dissectors.foreign import integer_of
from dissectors.remoting.code_sets import REPLIES, SENDS, STORED
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.messages.batch import decode_batch
from dissectors.remoting.messages.compression import decompress
from dissectors.remoting.messages.properties import decode_properties, value_in
from dissectors.remoting.send_fields import (
    BROKERS,
    GROUPS,
    TOPICS,
    first_of,
    send_fields_of,
)
from dissectors.remoting.sysflag import PREPARED, TRANSACTION_MASK, compression_of
from dissectors.rows.record import ANSWERED, ONEWAY, UNANSWERED

from ..message import Message, TransactionState, message_of_properties

BATCH: Final = int(RequestCode.SEND_BATCH_MESSAGE)
END_TRANSACTION: Final = int(RequestCode.END_TRANSACTION)
_MOST_LANGUAGE: Final = 64
"""kept characters of a language: a hostile one has megabytes"""
BODY_LIMIT: Final = 16 * 1024 * 1024
"""bytes of a decompressed body; a broker's default takes 4 MiB"""
SET_BY_PRODUCER: Final = ("TRAN_MSG", "PGROUP")
"""properties of a half message that the producer sets again"""
# what `unique_key` and `is_half` read after a release
_KEPT_PROPERTIES: Final = ("UNIQ_KEY", "TRAN_MSG")
_LONG_PROPERTIES: Final = 1024
_STATES: Final = {int(state): state for state in TransactionState}


class SkipReason(StrEnum):
    """The closed list of reasons why a captured command is not replayed."""

    NOT_A_SEND = "not a send request"
    ORPHAN = "a response whose request was not captured"
    CUT = "part of the request was not captured"
    DAMAGED = "the request does not decode"
    TOO_MUCH = "its body exceeds the decompression limit; see --max-output"
    ANOTHER_ATTEMPT = "another attempt to send a message that is replayed once"
    INNER_HOP = "made by a relay from a send that is replayed"
    ENDS_TRANSACTION = "goes with the half message that it ends"
    RETRY_TOPIC = "a retry topic"
    DLQ_TOPIC = "a dead-letter topic"
    SYSTEM_TOPIC = "a system topic"
    TRACE_TOPIC = "a trace topic"
    REPLY = "a reply: the consumer of the replayed request sends its own"
    NOT_IN_TIME = "not between --since and --until"
    NOT_WANTED = "does not match --where"
    NOT_SAMPLED = "left out by --sample"
    DROPPED = "dropped by a rewrite rule"
    NOT_ALLOWED = "not among the codes that raw mode may send (--codes)"
    DONE = "done in the run that is resumed"


RequestKey = tuple[str, int, int, int]
"""capture, conversation, packet and opaque of a request"""


class Origin(NamedTuple):
    """Where a request was captured."""

    capture: str
    """name of the capture or log"""
    packet: int
    """number of the packet that completed the request"""
    conversation: int
    """number of the TCP connection"""
    client_address: str
    """`address:port` that sent it"""
    server_address: str
    """`address:port` that it was sent to; nothing is ever sent there again"""
    time: int
    """when, ns since the epoch"""
    opaque: int
    """number that pairs it with its response"""

    def __str__(self) -> str:
        return f"{self.capture}, packet {self.packet}"

    @property
    def key(self) -> RequestKey:
        """The key that matches a response to this request."""
        return self.capture, self.conversation, self.packet, self.opaque


class Refusal(NamedTuple):
    """Why a request is not replayed."""

    why: SkipReason
    detail: str = ""
    """details; may quote the capture"""


class Seen(msgspec.Struct, gc=False):
    """A captured request."""

    origin: Origin
    command: RemotingCommand
    """its header; without ext fields once its messages were taken"""
    body: bytes = b""
    """the body as on the wire; empty in a log, which has `messages`"""
    missing: int = 0
    """missing bytes of the body"""
    messages: tuple[Message, ...] | None = None
    """messages of a log; None for a capture"""
    pdu: Pdu | None = None
    """the request in the capture, None in a log"""
    header_length: int = 0

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        logged = sum(len(message.body) for message in self.messages or ())
        return len(self.body) + logged + 2 * self.header_length + 3000


@dataclass(slots=True)
class CapturedResponse:
    """The captured outcome of a request, or of all attempts of a message."""

    status: str = UNANSWERED
    """answered, unanswered or oneway"""
    code: int | None = None
    remark: str | None = None
    latency_us: int | None = None
    """request to response, µs; of the attempt that was answered"""
    attempts: int = 1
    server_address: str = ""
    """`address:port` of the attempt that was answered, else of the last one"""
    broker: str = ""
    """its broker: as the request names it, else as a route does, else the address"""
    queue_id: int | None = None
    """queue in the response"""
    queue_offset: int | None = None
    """offset in it"""
    request: Pdu | None = None
    """the request that was answered, in the capture"""
    pdu: Pdu | None = None
    """the response in the capture"""
    uncaptured: bool = False
    """whether a response may exist but was not captured"""

    @property
    def is_unknown(self) -> bool:
        """Whether the capture does not show the outcome."""
        return self.status == UNANSWERED and self.uncaptured

    @property
    def is_stored(self) -> bool:
        """Whether the broker confirmed that the message is stored."""
        return self.code in STORED

    @property
    def is_durable(self) -> bool:
        """Whether the message is stored durably; otherwise clients may send it again."""
        return self.code == ResponseCode.SUCCESS

    @property
    def is_failed(self) -> bool:
        """Whether it was rejected, or is unanswered and not oneway."""
        return self.status != ONEWAY and not self.is_stored and not self.is_unknown


class CapturedHeader(NamedTuple):
    """The fields of a send header of either version."""

    topic: str
    group: str
    queue_id: int
    """-1 if absent"""
    broker_name: str
    """empty if absent"""
    sys_flag: int
    flag: int
    born_ms: int
    properties: str
    is_batch: bool
    is_reply: bool

    @property
    def unique_key(self) -> str | None:
        """The client's message id; for a batch, the batch's own."""
        return value_in(self.properties, "UNIQ_KEY") if self.properties else None

    def shortened(self) -> CapturedHeader:
        """Return a copy without the properties that are not needed later."""
        if len(self.properties) <= _LONG_PROPERTIES:
            return self
        kept = [(name, value_in(self.properties, name)) for name in _KEPT_PROPERTIES]
        texts = [f"{name}\x01{text}\x02" for name, text in kept if text is not None]
        return self._replace(properties="".join(texts))

    @property
    def is_half(self) -> bool:
        """Whether it is a half message."""
        return self.sys_flag & TRANSACTION_MASK == PREPARED or (
            value_in(self.properties, "TRAN_MSG") == "true"
        )


@dataclass(slots=True, eq=False)
class CapturedSend:
    """A send request and its captured outcome."""

    seen: Seen
    """the request; of several attempts the first"""
    header: CapturedHeader
    broker: str = ""
    """broker that it was sent to: as its header names it, else as a route does, else the address"""
    response: CapturedResponse = field(default_factory=CapturedResponse)
    """the outcome; may still be completed while the message is replayed"""
    state: TransactionState | None = None
    """outcome of a half message; None if not captured"""
    overlapped: bool = False
    """whether another send of its conversation was pending at the same time"""
    concurrent: bool = False
    """whether its client sent concurrently, on any of its connections"""
    in_turn: bool = False
    """whether its client sent to each queue of the topic in order"""
    overtaken_by: list[CapturedSend] = field(default_factory=list)
    """later sends of its conversation that got a response before it"""
    further_attempts: WeakSet[Refused] | None = None
    """later attempts of its message that are not taken yet"""
    held: int = 0
    """approximate memory while pending, in bytes"""
    gaps: int = 0
    """gaps in the other direction of its connection when it was sent"""
    settled: bool = False
    """whether nothing more is awaited"""
    due: int = 0
    """capture time at which waiting ends"""
    released: bool = False
    """whether its messages were taken"""

    @property
    def place(self) -> tuple[str, int]:
        """Broker and queue that stored it; if not stored, those of the first attempt.

        The queue is -1 if the capture does not show it.
        """
        response, header = self.response, self.header
        if not response.is_stored:
            return self.broker, header.queue_id
        queue_id = header.queue_id if response.queue_id is None else response.queue_id
        return response.broker or self.broker, queue_id

    @property
    def transaction_state(self) -> TransactionState | None:
        """Outcome of a half message, unknown if not captured; None if it is not a half message."""
        if not self.header.is_half:
            return None
        return self.state if self.state is not None else TransactionState.UNKNOWN

    def release(self) -> None:
        """Release the bytes of messages that were taken; no other reference may be left."""
        self.released = True
        self.seen.body = b""
        self.seen.messages = None
        command = self.seen.command
        self.seen.command = msgspec.structs.replace(
            command, ext_fields={}, remark=None, language=command.language[:_MOST_LANGUAGE]
        )
        if self.seen.pdu is not None:  # its connection may still wait for the response
            self.seen.pdu.forget_fields()
        self.header = self.header.shortened()
        # these keep the bytes of packets alive
        self.seen.pdu = self.response.pdu = self.response.request = None
        self.overtaken_by = []
        self.further_attempts = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Refused:
    """A send request that is not replayed, and the reason."""

    seen: Seen
    """the request, without its body"""
    refusal: Refusal


def any_header_of(seen: Seen) -> CapturedHeader:
    """Return topic, group, and queue from the header of any request; for the raw mode."""
    fields = seen.command.ext_fields
    header = send_header_of(seen) if seen.command.code in SENDS else None
    if isinstance(header, CapturedHeader):
        return header
    topic, group, broker = (first_of(fields, names) or "" for names in (TOPICS, GROUPS, BROKERS))
    queue = _int(fields.get("queueId"), -1)
    queue_id = -1 if queue is None else queue
    return CapturedHeader(topic, group, queue_id, broker, 0, 0, 0, "", False, False)


def send_header_of(seen: Seen) -> CapturedHeader | Refusal:
    """Return the header of a send request, or the reason why it cannot be read."""
    code, fields = seen.command.code, seen.command.ext_fields
    get = fields.get
    names = send_fields_of(code)
    topic = get(names.topic)
    if not topic:
        return Refusal(SkipReason.DAMAGED, "the header names no topic")
    queue_id = _int(get(names.queue_id), -1)
    sys_flag, flag = _int(get(names.sys_flag), 0), _int(get(names.flag), 0)
    if queue_id is None or sys_flag is None or flag is None:
        return Refusal(SkipReason.DAMAGED, "queue, sysFlag or flag of the header is not a number")
    properties = get(names.properties) or ""
    return CapturedHeader(
        topic,
        get(names.producer_group) or "",
        queue_id,
        get(names.broker_name) or first_of(fields, BROKERS) or "",
        sys_flag,
        flag,
        _int(get(names.born_timestamp), 0) or 0,
        properties,
        code == BATCH or get(names.batch) == "true",
        code in REPLIES or value_in(properties, "MSG_TYPE") == "reply",
    )


def messages_of(
    seen: Seen, header: CapturedHeader, budget: Budget | None = None
) -> tuple[Message, ...] | Refusal:
    """Return the messages of a send request, or the reason why they cannot be replayed.

    Decompressed bytes are taken from `budget`; the bytes of the request add to it.
    """
    if seen.missing:
        return Refusal(SkipReason.CUT, f"{seen.missing} bytes of the body are missing")
    if seen.messages is not None:
        return seen.messages or Refusal(SkipReason.DAMAGED, "the log has no message in its body")
    body = seen.body
    kind = compression_of(header.sys_flag)
    # Called as late as possible: messages that wait use most of a run's memory.
    if kind is not None:
        budget = Budget() if budget is None else budget
        budget.earn(seen.header_length + len(body))
        most = min(BODY_LIMIT, budget.room)
        output = decompress(body, kind, most)
        budget.spend(len(output.data))
        # the budget cut it: that says nothing about the capture
        if output.truncated and most < BODY_LIMIT:
            budget.end(str(seen.origin))
            return Refusal(SkipReason.TOO_MUCH)
        if output.problem is not None:
            return Refusal(SkipReason.DAMAGED, output.problem)
        if output.truncated:
            return Refusal(
                SkipReason.DAMAGED, f"the body decompresses to more than {BODY_LIMIT} bytes"
            )
        body = output.data
    if header.is_batch:
        return _batch_of(body, header.topic)
    properties = decode_properties(header.properties)
    return (message_of(header.topic, body, properties, header.flag),)


def message_of(topic: str, body: bytes, properties: Mapping[str, str], flag: int) -> Message:
    """Return the message as the application created it."""
    kept = {name: text for name, text in properties.items() if name not in SET_BY_PRODUCER}
    return message_of_properties(topic, body, kept, flag)


def _batch_of(body: bytes, topic: str) -> tuple[Message, ...] | Refusal:
    batch = decode_batch(body)
    if batch.problems or not batch.items:
        detail = batch.problems[0][1] if batch.problems else "an empty batch"
        return Refusal(SkipReason.DAMAGED, detail)
    return tuple(message_of(topic, item.body, item.properties, item.flag) for item in batch.items)


def add_response(
    response: CapturedResponse, code: int, remark: str | None, fields: Mapping[str, str]
) -> None:
    """Add a response to an outcome."""
    response.status = ANSWERED
    response.code = code
    response.remark = remark
    response.queue_id = _int(fields.get("queueId"), None)
    response.queue_offset = _int(fields.get("queueOffset"), None)


def transaction_state_of(fields: Mapping[str, str]) -> TransactionState | None:
    """Return the state in an END_TRANSACTION, or None if it is not one of the three."""
    number = _int(fields.get("commitOrRollback"), None)
    return _STATES.get(number) if number is not None else None


def _int(text: str | None, default: int | None) -> int | None:
    """Return a number of the header; `default` if absent, None if not a number."""
    return integer_of(text) if text else default
