"""Send one step through a producer: choose its queue, and another one if that fails.

Rules: the captured queue is tried first: the broker of the same name, or the one mapped to it in
this run; the queue of the same number, or that number modulo the broker's queues. If other queues
are allowed, a failed send is retried by the producer's own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ..async_producer import AsyncProducer
from ..errors import (
    BrokerError,
    ClientError,
    NameServerError,
    ReplyTimeoutError,
    SendFailed,
    TransportError,
)
from ..message import (
    Attempt,
    AttemptOutcome,
    Message,
    MessageQueue,
    SendMode,
    SendResult,
    SendStatus,
)
from ..plan.planner import CapturedQueue, PlannedSend

MAX_BROKERS: Final = 4096
"""captured brokers that are given one of the target; more share the first"""
_MAYBE_STORED: Final = (
    AttemptOutcome.TIMEOUT,
    AttemptOutcome.LOST,
    AttemptOutcome.GARBAGE,
    AttemptOutcome.CANCELLED,
)
"""outcomes after which the broker may have stored the message anyway"""


class Sent(NamedTuple):
    """Result of sending a step."""

    result: SendResult | None
    """None: it failed"""
    error: ClientError | None
    """why it failed"""
    attempts: tuple[Attempt, ...]
    """all tries, whatever queue they were for"""

    @property
    def maybe_stored_before(self) -> bool:
        """Whether an attempt before the last may have been stored."""
        return any(attempt.outcome in _MAYBE_STORED for attempt in self.attempts[:-1])

    @property
    def is_unknown(self) -> bool:
        """Whether it failed, but a broker may have stored it anyway."""
        return self.result is None and (
            self.lacks_reply or any(attempt.outcome in _MAYBE_STORED for attempt in self.attempts)
        )

    @property
    def lacks_reply(self) -> bool:
        """Whether it was a request that was stored, and got no reply."""
        return isinstance(self.error, ReplyTimeoutError)

    @property
    def has_left(self) -> bool:
        """Whether anything was sent to a broker."""
        return self.result is not None or bool(self.attempts)

    @property
    def unreachable(self) -> NameServerError | None:
        """The NameServer error, if no NameServer could be reached."""
        cause = self.error.cause if isinstance(self.error, SendFailed) else self.error
        return cause if isinstance(cause, NameServerError) else None


class QueueMap:
    """Maps captured queues to queues of the target."""

    def __init__(self) -> None:
        self._order: dict[str, int] = {}

    def selector_of(
        self, wanted: CapturedQueue
    ) -> Callable[[Sequence[MessageQueue], Message], MessageQueue]:
        """Return a selector that chooses the mapped queue of a topic."""
        return lambda queues, _: self.find(queues, wanted)

    def find(self, queues: Sequence[MessageQueue], wanted: CapturedQueue) -> MessageQueue:
        """Return the mapped queue among the topic's queues (at least one)."""
        # a copy of the captured cluster has brokers of the same names
        own = [queue for queue in queues if queue.broker_name == wanted.broker]
        if not own:
            names = sorted({queue.broker_name for queue in queues})
            name = names[self._number_of(wanted.broker) % len(names)]
            own = [queue for queue in queues if queue.broker_name == name]
        for queue in own:
            if queue.queue_id == wanted.queue_id:
                return queue
        return own[wanted.queue_id % len(own)]

    def _number_of(self, broker: str) -> int:
        """Return the number of a captured broker, constant within a run."""
        if broker not in self._order and len(self._order) >= MAX_BROKERS:
            return 0
        return self._order.setdefault(broker, len(self._order))


class Resender:
    """Sends steps, without blocking."""

    def __init__(self, strict_tries: int) -> None:
        """`strict_tries`: number of attempts for a queue that must not be replaced."""
        self._queues = QueueMap()
        self._strict_tries = strict_tries

    async def send(self, producer: AsyncProducer, step: PlannedSend, now_ms: int) -> Sent:
        """Send a step; errors of the producer are part of the result."""
        messages = _timed(step, now_ms)
        attempts: tuple[Attempt, ...] = ()
        for number in range(1, self._strict_tries + 1):
            try:
                result = await self._try(producer, step, messages, number)
            except ClientError as error:
                attempts += error.attempts
                if not self._goes_on(step, error, number, producer.config.retried):
                    return Sent(None, error, attempts)
            else:
                return Sent(result, None, attempts + result.attempts)
        raise AssertionError("the last try returns")

    async def _try(
        self, producer: AsyncProducer, step: PlannedSend, messages: Sequence[Message], number: int
    ) -> SendResult:
        first, state, queue = messages[0], step.state, step.queue
        if state is not None:
            return await producer.send_in_transaction(first, lambda _: state)
        if step.wants_reply:
            return await _requested(producer, first)
        selector = None
        if queue is not None and (queue.strict or number == 1):
            selector = self._queues.selector_of(queue)
        if step.is_batch:
            return await producer.send_batch(messages, mode=step.mode, selector=selector)
        return await producer.send(first, mode=step.mode, selector=selector)

    def _goes_on(
        self, step: PlannedSend, error: ClientError, number: int, retried: frozenset[int]
    ) -> bool:
        """Return whether to try again, by the producer's rules if it chooses the queue."""
        queue = step.queue
        if queue is None or step.state is not None or step.wants_reply:
            return False
        # not strict: the second try is the producer's, with retries of its own
        if number >= (self._strict_tries if queue.strict else min(2, self._strict_tries)):
            return False
        if step.mode is SendMode.ONEWAY:
            return False
        cause = error.cause if isinstance(error, SendFailed) else error
        if isinstance(cause, BrokerError):
            return step.mode is SendMode.SYNC and cause.code in retried
        return isinstance(cause, TransportError)


async def _requested(producer: AsyncProducer, message: Message) -> SendResult:
    """Send a request and wait for its reply; `on_attempt` alone reports its attempts."""
    await producer.request(message)
    queue = MessageQueue(message.topic, "", -1)
    return SendResult(SendStatus.SEND_OK, message.unique_key or "", queue)


def _timed(step: PlannedSend, now_ms: int) -> tuple[Message, ...]:
    """Return the messages, with delivery times shifted to keep the captured delay."""
    if step.deliver_after_ms is None:
        return step.messages
    delivery = {"TIMER_DELIVER_MS": str(now_ms + step.deliver_after_ms)}
    return tuple(
        replace(message, properties={**message.properties, **delivery}) for message in step.messages
    )
