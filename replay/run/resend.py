"""Send one step: its messages through a producer, or in the raw mode the captured request itself.

The captured queue is tried first: the broker of the same name, or the one mapped to it in this run;
the queue of the same number, or that number modulo the broker's queues. A raw request keeps all but
its opaque, queue, and signature, and goes only to the broker that the user named.
RocketMQ: RemotingCommand, GetTopicConfigRequestHeader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import time_ns
from typing import Final, NamedTuple

import msgspec

from dissectors.foreign import natural_of
from dissectors.remoting.bodies.registry import decode_body
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.send_fields import V1, V2, send_fields_of

from ..acl import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE
from ..async_producer import AsyncProducer
from ..cluster.client import ClusterClient
from ..config import ProducerConfig
from ..errors import (
    BrokerError,
    ClientError,
    NameServerError,
    ReplyTimeoutError,
    SendFailed,
    SendTimeoutError,
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
from ..plan.planner import CapturedQueue, PlannedSend, RawRequest
from ..send_queue import run_steps
from ..sending.attempt import STATUSES, Stored, stored_of
from ..transport.aio import AioNetwork
from ..wire.network import MS
from ..wire.request import PlainRequest, plain_request
from ..wire.steps import Invoke, Steps

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


SECRETS: Final = (ACCESS_KEY, SIGNATURE, SECURITY_TOKEN)
"""ext fields of a captured signature"""
QUEUE_FIELDS: Final = (V2.queue_id, V1.queue_id)
_TOPICS: Final = 10_000


def raw_request(raw: RawRequest, fields: dict[str, str]) -> PlainRequest:
    """Return a captured request with these ext fields, without the signature of the capture."""
    kept = {name: text for name, text in fields.items() if name not in SECRETS}
    return PlainRequest(msgspec.structs.replace(raw.command, ext_fields=kept), raw.body)


class RawSender:
    """Sends captured requests to one broker; made within a running loop."""

    def __init__(self, config: ProducerConfig) -> None:
        """Use the NameServer in `config` as the broker. Raises ConfigError, NameServerError."""
        self.config = config
        self.address = config.namesrv_addresses()[0]
        self._network = AioNetwork(config.tls, config.guard)
        self._client = ClusterClient(config, self._network)
        self._queues: dict[str, asyncio.Task[int | None]] = {}

    @property
    def peers(self) -> list[str]:
        """Peer addresses of all open connections, `ip:port`."""
        return self._network.peers

    async def send(self, step: PlannedSend) -> Sent:
        """Send the request of a step; errors are part of the result."""
        raw = step.raw
        assert raw is not None
        fields = await self._fields_of(step, raw)
        request = raw_request(raw, fields)
        begin = time_ns()
        invoke = Invoke(self.address, request, self._deadline(), True)
        error: ClientError | None = None
        try:
            await self._asked(invoke)
        except ClientError as problem:
            error = problem
        return self._sent(step, raw, invoke, request, begin, error)

    async def close(self) -> None:
        """Close the connection."""
        self._client.close()
        await self._network.close()

    def _deadline(self) -> int:
        return self._network.now() + self.config.send_timeout_ms * MS

    async def _asked(self, invoke: Invoke) -> Invoke:
        return await run_steps(self._client.runner, _ask(invoke))

    async def _fields_of(self, step: PlannedSend, raw: RawRequest) -> dict[str, str]:
        """Return the ext fields, with an existing queue of the broker's topic."""
        fields = dict(raw.command.ext_fields)
        topic = step.messages[0].topic
        for name in QUEUE_FIELDS:
            queue = natural_of(fields.get(name, ""))
            if topic and queue is not None and queue < 1_000_000_000:
                most = await self._queues_of(topic)
                if most is not None and queue >= most:
                    fields[name] = str(queue % most)
        return fields

    async def _queues_of(self, topic: str) -> int | None:
        """Return the number of queues of the broker's topic, or None if unknown."""
        asking = self._queues.get(topic)
        if asking is None:
            if len(self._queues) >= _TOPICS:
                return None
            # a task: concurrent steps of a topic wait for the same response
            asking = self._queues[topic] = asyncio.ensure_future(self._ask_queues(topic))
        return await asyncio.shield(asking)

    async def _ask_queues(self, topic: str) -> int | None:
        code = RequestCode.GET_TOPIC_CONFIG
        request = plain_request(self.config, code, {"topic": topic, "lo": "true"})
        try:
            response = await self._asked(Invoke(self.address, request, self._deadline(), True))
        except ClientError:
            return None
        return _write_queues(response)

    def _sent(
        self,
        step: PlannedSend,
        raw: RawRequest,
        invoke: Invoke,
        request: PlainRequest,
        begin: int,
        error: ClientError | None,
    ) -> Sent:
        command = invoke.command
        outcome = AttemptOutcome.ONEWAY if request.oneway else AttemptOutcome.ANSWERED
        if error is not None:
            timed_out = isinstance(error, SendTimeoutError)
            outcome = AttemptOutcome.TIMEOUT if timed_out else AttemptOutcome.LOST
            # None: nothing was written
            outcome = outcome if invoke.request_bytes is not None else AttemptOutcome.CONNECT
        header = step.captured.header
        sent_to = natural_of(request.fields().get(send_fields_of(request.code).queue_id, ""))
        queue_id = header.queue_id if sent_to is None else sent_to
        queue = MessageQueue(step.messages[0].topic, header.broker_name, queue_id)
        response = stored_of(command, queue) if command and request.code in SENDS else None
        stored = response if isinstance(response, Stored) else None
        attempt = Attempt(
            1,
            queue,
            self.address,
            begin,
            None if request.oneway else begin + max(0, invoke.ended - invoke.began),
            outcome,
            code=None if command is None else command.code,
            remark=None if command is None else command.remark,
            error=None if error is None else error.reason,
            why="raw",
            local=invoke.local,
            conversation=invoke.conversation,
            opaque=invoke.opaque,
            request_code=request.code,
            serialize_type=raw.command.serialize_type,
            group=step.group,
            request_bytes=invoke.request_bytes,
            response_bytes=invoke.response_bytes,
            body_bytes=len(request.body),
            queue_id=None if stored is None else stored.queue.queue_id,
            queue_offset=None if stored is None else stored.queue_offset,
            offset_msg_id=None if stored is None else stored.offset_msg_id,
        )
        if self.config.on_attempt is not None:
            self.config.on_attempt(step.messages[0], attempt)
        if error is None and command is not None and command.code not in STORED:
            error = BrokerError(command.code, command.remark)
        if error is not None:
            return Sent(None, error, (attempt,))
        status = SendStatus.SEND_OK if command is None else STATUSES[command.code]
        key, offset, msg_id = step.captured_key or "", attempt.queue_offset, attempt.offset_msg_id
        place = queue if stored is None else stored.queue
        return Sent(SendResult(status, key, place, offset, msg_id), None, (attempt,))


def _ask(invoke: Invoke) -> Steps[Invoke]:
    yield invoke
    return invoke


def _write_queues(response: Invoke) -> int | None:
    """Return the number of write queues from a topic config response."""
    command = response.command
    if command is None or command.code != ResponseCode.SUCCESS:
        return None
    code = int(RequestCode.GET_TOPIC_CONFIG)
    value = decode_body(code, True, command.code, response.body, {}).value
    number = value.get("writeQueueNums") if isinstance(value, dict) else None
    return number if isinstance(number, int) and number > 0 else None
