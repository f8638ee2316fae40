"""Plan captured sends: select, rewrite, and schedule them as steps, or skip them with a reason.

Rules: pure and deterministic: the same sources and options give the same steps with the same
numbers, which resuming a journal relies on. A step is one send. Messages of one conversation and
queue stay in order; concurrent sends may be concurrent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from dissectors.budget import Budget
from dissectors.foreign import natural_of
from dissectors.remoting.command import ONEWAY_FLAG, RemotingCommand
from dissectors.remoting.send_fields import send_fields_of
from dissectors.rows.record import ONEWAY

from ..captured.captured_send import CapturedSend, Origin, Refusal, Refused, SkipReason, messages_of
from ..message import UNIQ_KEY, Message, SendMode, TransactionState
from .choose import Selection, in_sample, refusal_of
from .pace import Pace, PaceOptions
from .rewrite import Rewrite

MARK: Final = "RMQTOOL_REPLAY"
"""property that marks a replayed message; its value is the run's name"""
ORIGINAL_KEY: Final = "RMQTOOL_UNIQ_KEY"
"""property with the captured UNIQ_KEY where a new one was given"""
REQUEST_PROPERTIES: Final = ("CORRELATION_ID", "REPLY_TO_CLIENT", "TTL")
"""properties of a message that asks for a reply"""


class Mode(StrEnum):
    """The send mode of messages."""

    as_captured = "as-captured"
    sync = "sync"
    async_ = "async"
    oneway = "oneway"


class Ids(StrEnum):
    """Which UNIQ_KEY a replayed message gets."""

    keep = "keep"
    new = "new"


class QueuePolicy(StrEnum):
    """How the queue of a replayed message is chosen."""

    keep = "keep"
    strict = "strict"
    new = "new"


class SendOrder(StrEnum):
    """Which sends wait until earlier ones have ended."""

    keep = "keep"
    queue = "queue"
    none = "none"


class BatchPolicy(StrEnum):
    """How a batch is replayed."""

    keep = "keep"
    apart = "split"


class RequestPolicy(StrEnum):
    """How a message that asks for a reply is replayed."""

    send = "send"
    request = "request"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of the plan."""

    choice: Selection = field(default_factory=Selection)
    """which messages"""
    pace: PaceOptions = field(default_factory=PaceOptions)
    """how fast"""
    mode: Mode = Mode.as_captured
    """sync, async or oneway"""
    ids: Ids = Ids.keep
    """which UNIQ_KEY; from the second loop on always a new one"""
    queues: QueuePolicy = QueuePolicy.keep
    """which queue"""
    order: SendOrder = SendOrder.keep
    """which sends wait for earlier ones"""
    batches: BatchPolicy = BatchPolicy.keep
    """as one send, or split"""
    requests: RequestPolicy = RequestPolicy.send
    """as a plain message, or waiting for a reply"""
    group: str | None = None
    """producer group of all messages; None: the captured ones"""
    mark: str | None = None
    """value of the property `MARK`; None: messages are not marked"""
    limit: int | None = None
    """messages at most"""
    duration: int | None = None
    """ns of the run after which nothing is due any more"""
    raw: bool = False
    """whole requests are replayed as they are, not messages"""


class CapturedQueue(NamedTuple):
    """A captured queue."""

    broker: str
    """name of the broker group, else the address that was sent to"""
    queue_id: int
    strict: bool
    """whether no other queue may be used: ordered messages"""


class RawRequest(NamedTuple):
    """A complete request to resend, for the raw mode."""

    command: RemotingCommand
    """its header as captured, but for the opaque"""
    body: bytes


@dataclass(slots=True, eq=False)
class PlannedSend:
    """A planned send."""

    number: int
    """0, 1, ... over all loops"""
    due: int
    """ns since the run began"""
    captured: CapturedSend
    messages: tuple[Message, ...]
    """one, or those of a batch"""
    group: str
    """producer group"""
    mode: SendMode
    """how it is sent"""
    queue: CapturedQueue | None
    """where to; None: the producer chooses"""
    lanes: tuple[object, ...]
    """the step waits for those before it in these lanes"""
    is_batch: bool = False
    """sent as one batch, even of one message"""
    state: TransactionState | None = None
    """outcome of the transaction; None: none"""
    wants_reply: bool = False
    """sent as a request that waits for its reply"""
    deliver_after_ms: int | None = None
    """of a message with a delivery time: how long after the send that is"""
    captured_key: str | None = None
    """UNIQ_KEY in the capture"""
    loop: int = 0
    """number of the loop over the sources, 0 first"""
    raw: RawRequest | None = None
    """the request to send as it is; None: `messages` are sent"""

    @property
    def size(self) -> int:
        """Decompressed bytes of its bodies."""
        raw = len(self.raw.body) if self.raw is not None else 0
        return raw + sum(len(message.body) for message in self.messages)

    @property
    def origin(self) -> Origin:
        """The packet and source of the request."""
        return self.captured.seen.origin


class Skipped(NamedTuple):
    """A captured send that is not replayed."""

    origin: Origin
    why: SkipReason
    detail: str = ""
    topic: str = ""
    """its topic, where that is known"""
    unique_key: str | None = None


class Planner:
    """Turns captured sends into steps and skipped sends."""

    def __init__(
        self, options: PlanOptions, rewrite: Rewrite | None = None, budget: Budget | None = None
    ) -> None:
        """`budget`: limit of decompressed body bytes."""
        self.options = options
        self.ended = False
        """whether the limit or the duration is reached: nothing more will come"""
        self.messages = 0
        """messages of all steps so far"""
        self._rewrite = rewrite or Rewrite()
        self._budget = Budget() if budget is None else budget
        self._pace = Pace(options.pace)
        self._number = 0
        self._loop = 0

    def again(self) -> None:
        """Start another loop over the sources."""
        self._loop += 1
        self._pace.again()

    def steps(self, batch: Iterable[CapturedSend | Refused]) -> Iterator[PlannedSend | Skipped]:
        """Yield the steps of captured sends, in order; stop at the end of the plan."""
        for send in batch:
            if self.ended:
                return
            if isinstance(send, Refused):
                command = send.seen.command
                topic = command.ext_fields.get(send_fields_of(command.code).topic) or ""
                yield Skipped(send.seen.origin, *send.refusal, topic)
                continue
            yield from self._steps_of(send)

    def _steps_of(self, captured: CapturedSend) -> Iterator[PlannedSend | Skipped]:
        refusal = refusal_of(captured, self.options.choice)
        if refusal is not None:
            yield self._skipped(captured, *refusal)
            captured.release()
            return
        if self.options.raw:
            yield from self._raw_step_of(captured)
            return
        messages = messages_of(captured.seen, captured.header, self._budget)
        captured.release()
        if isinstance(messages, Refusal):
            yield self._skipped(captured, *messages)
            return
        chosen: list[tuple[Message, str]] = []
        for message in messages:
            ready = self._rewritten(captured, message)
            if isinstance(ready, SkipReason):
                yield self._skipped(captured, ready, "", message)
            else:
                chosen.append(ready)
        if not chosen:
            return
        groups = {group for _, group in chosen}
        topics = {message.topic for message, _ in chosen}
        # a rewrite may give its messages several topics or groups, which no batch can have
        is_batch = captured.header.is_batch and self.options.batches is BatchPolicy.keep
        if is_batch and len(groups) == len(topics) == 1:
            yield from self._step(captured, tuple(item for item, _ in chosen), chosen[0][1], True)
            return
        for message, group in chosen:
            yield from self._step(captured, (message,), group, False)

    def _raw_step_of(self, captured: CapturedSend) -> Iterator[PlannedSend | Skipped]:
        seen = captured.seen
        if seen.missing:
            yield self._skipped(
                captured, SkipReason.CUT, f"{seen.missing} bytes of the body are missing"
            )
            captured.release()
            return
        flag = ONEWAY_FLAG if seen.command.is_oneway else 0
        command = msgspec.structs.replace(seen.command, opaque=0, flag=flag, remark=None)
        raw = RawRequest(command, seen.body)
        message = Message(captured.header.topic, b"")
        key = captured.header.unique_key
        if key is not None:
            message.properties[UNIQ_KEY] = key
        captured.release()
        for step in self._step(captured, (message,), captured.header.group, False):
            step.raw = raw
            step.mode = SendMode.ONEWAY if command.is_oneway else SendMode.SYNC
            # not marked: the request is sent as it was captured
            step.messages = (message,)
            # an END_TRANSACTION is a request of its own here
            step.state = None
            yield step

    def _rewritten(
        self, captured: CapturedSend, message: Message
    ) -> tuple[Message, str] | SkipReason:
        if not in_sample(captured, message, self.options.choice):
            return SkipReason.NOT_SAMPLED
        group = captured.header.group
        if not self._rewrite.is_empty:
            done = self._rewrite.apply(message, group)
            if done is None:
                return SkipReason.DROPPED
            message, group = done
        return message, self.options.group or group

    def _step(
        self, captured: CapturedSend, messages: tuple[Message, ...], group: str, is_batch: bool
    ) -> Iterator[PlannedSend]:
        options = self.options
        limit = options.limit
        # a batch is sent whole or not at all
        if limit is not None and self.messages + len(messages) > limit:
            self.ended = True
            return
        due = self._pace.due(captured.seen.origin.time, len(messages))
        # due times never decrease: nothing that follows is within the time
        if options.duration is not None and due >= options.duration:
            self.ended = True
            return
        first = messages[0]
        wants_reply = (
            options.requests is RequestPolicy.request and "CORRELATION_ID" in first.properties
        )
        mode = self._mode_of(captured)
        queue = self._queue_of(captured, first)
        step = PlannedSend(
            self._number,
            due,
            captured,
            tuple(self._marked(message, wants_reply) for message in messages),
            group,
            mode,
            queue,
            _lanes_of(captured, first, mode, options.order),
            is_batch,
            captured.transaction_state,
            wants_reply,
            _delivery_of(captured, first),
            first.unique_key,
            self._loop,
        )
        self._number += 1
        self.messages += len(messages)
        yield step

    def _marked(self, message: Message, wants_reply: bool) -> Message:
        """Return the message with its replay mark, and the UNIQ_KEY kept or as a property."""
        properties = dict(message.properties)
        key = properties.get(UNIQ_KEY)
        # a second loop with the same ids would look like duplicates
        if key is not None and (self.options.ids is Ids.new or self._loop):
            del properties[UNIQ_KEY]
            properties[ORIGINAL_KEY] = key
        if self.options.mark is not None:
            properties[MARK] = self.options.mark
        if wants_reply:
            # the producer gives the request its own; these would name the captured client
            for name in REQUEST_PROPERTIES:
                properties.pop(name, None)
        return replace(message, properties=properties)

    def _mode_of(self, captured: CapturedSend) -> SendMode:
        wanted = self.options.mode
        if wanted is not Mode.as_captured:
            return SendMode(wanted.value)
        if captured.response.status == ONEWAY:
            return SendMode.ONEWAY
        # a synchronous client waits for a response before its next request
        return SendMode.ASYNC if captured.overlapped else SendMode.SYNC

    def _queue_of(self, captured: CapturedSend, message: Message) -> CapturedQueue | None:
        broker, queue_id = captured.place
        if self.options.queues is QueuePolicy.new or queue_id < 0:
            return None
        strict = self.options.queues is QueuePolicy.strict or message.sharding_key is not None
        return CapturedQueue(broker, queue_id, strict)

    def _skipped(
        self,
        captured: CapturedSend,
        why: SkipReason,
        detail: str = "",
        message: Message | None = None,
    ) -> Skipped:
        header = captured.header
        key = message.unique_key if message is not None else header.unique_key
        return Skipped(captured.seen.origin, why, detail, header.topic, key)


def _lanes_of(
    captured: CapturedSend, message: Message, mode: SendMode, order: SendOrder
) -> tuple[object, ...]:
    """Return the lanes of a step: it waits for earlier steps in them.

    `SendOrder.keep`: by sharding key; by queue if the client sent to its queues in order; by
    connection if its client never sent concurrently, as far as responses were captured. A oneway
    send has no response and ends when it is written.
    """
    if order is SendOrder.none:
        return ()
    origin = captured.seen.origin
    talk = origin.capture, origin.conversation
    queue = (*talk, message.topic, *captured.place)
    if order is SendOrder.queue:
        return (queue,)
    lanes: list[object] = []
    if message.sharding_key is not None:
        lanes.append((message.topic, message.sharding_key))
    alone = not (captured.concurrent or captured.overlapped or captured.response.is_unknown)
    if captured.in_turn or (alone and mode is SendMode.ONEWAY):
        lanes.append(queue)
    if alone and mode is SendMode.SYNC:
        lanes.append(talk)
    return tuple(lanes)


def _delivery_of(captured: CapturedSend, message: Message) -> int | None:
    """Return the delivery delay of a message with a delivery time, ms after its send."""
    due = natural_of(message.properties.get("TIMER_DELIVER_MS", ""))
    if due is None:
        return None
    return max(0, due - captured.seen.origin.time // 1_000_000)
