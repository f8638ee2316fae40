"""Send operations: choice of queue and broker, retries, timeouts, and reports.

The rules are Java's. A synchronous send tries up to 1 + `retries` brokers, an asynchronous one
repeats the same request; a send to a chosen queue stays there, and a oneway send is one attempt.
RocketMQ: DefaultMQProducerImpl (sendDefaultImpl, sendSelectImpl, updateFaultItem), MQClientAPIImpl
(sendMessageAsync, onExceptionImpl), NettyRemotingClient.invokeAsync.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from dissectors.remoting.java_hash import java_hash
from dissectors.remoting.versions import V5_2_0, ordinal_of

from ..cluster.client import ClusterClient, Detector
from ..cluster.route import PublishTable
from ..config import ProducerConfig
from ..errors import (
    BrokerError,
    ClientError,
    ConnectError,
    ForbiddenError,
    HookError,
    InvalidMessageError,
    ResponseError,
    RouteError,
    SendFailed,
    TooManyRequestsError,
    TransportError,
    UnknownBrokerError,
)
from ..fault import AttemptEvent, ChoiceReason, FaultSettings, FaultStrategy
from ..message import Message, MessageQueue, SendMode, SendResult, SendStatus
from ..namespace import wrap_namespace
from ..unique_id import UniqueIds
from ..validators import Invalid, why_not_batch, why_not_encoded, why_not_message, why_not_topic
from ..wire.network import MS, Network
from ..wire.steps import Acquire, Permits, Steps
from .attempt import AttemptSender, Sending, with_attempts
from .send_request import SendEncoder

Selector = Callable[[Sequence[MessageQueue], Message], MessageQueue]
"""chooses the queue of a message among those of its topic"""


class KeySelector:
    """Selects one queue per key, the same as a Java client."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.why = f"order key {key!r}"

    def __call__(self, queues: Sequence[MessageQueue], _: Message) -> MessageQueue:
        """Return the queue of the key."""
        number = java_hash(self.key)
        # Java's abs(hash % size) gives the same: its remainder has the sign of the hash
        place = abs(number) % len(queues)
        return queues[place]


def selector_of(selector: Selector | None, order_key: str | None) -> Selector | None:
    """Return the given selector, or one for the order key, or None."""
    return selector if order_key is None else KeySelector(order_key)


_NOT_THE_BROKERS = (HookError, InvalidMessageError)
"""errors in the application's own code or message, which say nothing of a broker"""


class FaultReports:
    """Reports of one producer to its strategy.

    An asynchronous attempt is reported twice: when it is handed over, and when its end is known.
    """

    __slots__ = ("_connects_behind", "_network", "_strategy", "enabled")

    def __init__(self, strategy: FaultStrategy, network: Network) -> None:
        self._strategy = strategy
        self._network = network
        self.enabled = strategy.settings.enabled
        """whether the strategy is on"""
        # Up to 5.1 a client connects before the handing over: a failure to connect is known first,
        # and the handing over, with the time that it took, has the last word.
        since = ordinal_of(strategy.settings.rules.name) or 0
        self._connects_behind = since >= V5_2_0

    def report(self, broker: str, event: AttemptEvent, began: int) -> None:
        """Report an event of an attempt that began at `began`."""
        if self.enabled:
            now = self._network.now()
            self._strategy.report(broker, event, (now - began) // MS, now // MS)

    def synchronous(self, broker: str, error: ClientError, began: int) -> None:
        """Report a failed attempt of a synchronous send."""
        if isinstance(error, _NOT_THE_BROKERS):
            return
        if isinstance(error, BrokerError):
            event = AttemptEvent.BROKER_ERROR
        elif isinstance(error, (ResponseError, ForbiddenError, RouteError)):
            event = AttemptEvent.CLIENT_ERROR
        else:
            event = AttemptEvent.TRANSPORT_ERROR
        self.report(broker, event, began)

    def handing_over(self, broker: str, connected: bool, began: int) -> bool:
        """Report the handing over of an asynchronous attempt; return whether that comes later."""
        if not self.enabled:
            return False
        if connected or self._connects_behind:
            self.report(broker, AttemptEvent.HANDED_OVER, began)
            return False
        return True

    def asynchronous(
        self, broker: str, error: ClientError | None, began: int, handed_late: bool
    ) -> None:
        """Report the end of an asynchronous attempt; `handed_late` as `handing_over` said."""
        if isinstance(error, _NOT_THE_BROKERS):
            return
        event = self._async_event_of(error)
        if handed_late and event is not AttemptEvent.NOT_SENT:
            self.report(broker, AttemptEvent.HANDED_OVER, began)
        self.report(broker, event, began)
        if handed_late and event is AttemptEvent.NOT_SENT:
            self.report(broker, AttemptEvent.HANDED_OVER, began)

    def _async_event_of(self, error: ClientError | None) -> AttemptEvent:
        if error is None:
            return AttemptEvent.ANSWERED
        if isinstance(error, (BrokerError, ResponseError)):
            return AttemptEvent.ASYNC_ERROR
        if isinstance(error, ForbiddenError):
            return AttemptEvent.CLIENT_ERROR
        if isinstance(error, (UnknownBrokerError, TooManyRequestsError)):
            return AttemptEvent.NOT_SENT
        if isinstance(error, ConnectError) and not self._connects_behind:
            return AttemptEvent.NOT_SENT
        return AttemptEvent.ASYNC_LOST


CALLER: Final = "chosen by the caller"
SELECTED: Final = "chosen by the selector"
# Java's floors of backPressureForAsyncSendNum and backPressureForAsyncSendSize
_LEAST_NUM: Final = 10
_LEAST_SIZE: Final = 1024 * 1024


class Sender:
    """The send operations of one producer."""

    def __init__(
        self,
        client: ClusterClient,
        random: Random | None = None,
        config: ProducerConfig | None = None,
    ) -> None:
        """`config` overrides the client's."""
        config = config or client.config
        self.config: ProducerConfig = config
        self.client = client
        fault = config.fault or FaultSettings.of_version(config.client_version, enabled=False)
        self.strategy = FaultStrategy(fault, random)
        """state of the latency fault strategy"""
        instance = (random or client.random).getrandbits(32)
        self.encoder = SendEncoder(config, UniqueIds(client.ip, os.getpid(), instance))
        self.attempts = AttemptSender(client, config, self.encoder)
        self._reports = FaultReports(self.strategy, client.network)
        self._detector = Detector(client, self.strategy)
        self._room = Permits(max(config.backpressure_num, _LEAST_NUM))
        self._size_room = Permits(max(config.backpressure_size, _LEAST_SIZE))
        self._shares_timeout = config.shares_timeout

    # -- entry points ---------------------------------------------------------------------------

    def send(
        self,
        message: Message,
        mode: SendMode,
        timeout_ms: int | None = None,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        half: bool = False,
    ) -> Steps[SendResult]:
        """Send one message; raises InvalidMessageError at once, SendFailed at the end."""
        _refuse(why_not_message(message, self.config.max_message_size))
        sending = self._sending(message, mode, timeout_ms, half)
        return self._run(sending, queue, selector)

    def send_batch(
        self,
        messages: Sequence[Message],
        mode: SendMode,
        timeout_ms: int | None = None,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
    ) -> Steps[SendResult]:
        """Send messages of one topic as one request; as `send`."""
        batch = list(messages)
        _refuse(why_not_batch(batch, self.config.max_message_size))
        sending = self._sending(batch[0], mode, timeout_ms, False)
        sending.messages = batch
        return self._run(sending, queue, selector)

    def find_queues(self, topic: str, timeout_ms: int | None = None) -> Steps[list[MessageQueue]]:
        """Yield the writable queues of a topic; raises RouteError, NameServerError."""
        timeout = self.config.api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self.client.network.now() + timeout * MS
        table = yield from self.client.routes.find_table(self._wrapped(topic), deadline)
        # the application knows the topic without its namespace
        return [queue._replace(topic=topic) for queue in table.queues]

    def known_brokers(self, topic: str) -> list[str] | None:
        """Return the masters of all routes in use, or None if the topic's route is unknown."""
        routes = self.client.routes
        return None if routes.table_of(self._wrapped(topic)) is None else routes.masters()

    def _sending(
        self, message: Message, mode: SendMode, timeout_ms: int | None, half: bool
    ) -> Sending:
        if self.config.namespace:
            _refuse(why_not_topic(self._wrapped(message.topic)))
        timeout = self.config.send_timeout_ms if timeout_ms is None else timeout_ms
        if type(mode) is not SendMode:
            raise InvalidMessageError(f"mode is {mode!r}", "use a SendMode: SYNC, ASYNC, ONEWAY")
        if type(timeout) is not int:
            kind = type(timeout).__name__
            reason = f"timeout_ms must be an int, not a value of type {kind}"
            raise InvalidMessageError(reason, "write whole milliseconds")
        begin = self.client.network.now()
        return Sending(message, mode, begin, begin + timeout * MS, half)

    def _run(
        self, sending: Sending, queue: MessageQueue | None, selector: Selector | None
    ) -> Steps[SendResult]:
        if sending.mode is SendMode.ASYNC:
            if self.config.backpressure:
                return self._with_room(sending, queue, selector)
            return self._async(sending, queue, selector)
        if sending.mode is SendMode.ONEWAY or queue is not None or selector is not None:
            return self._once(sending, queue, selector)
        return self._sync(sending)

    # -- send modes -----------------------------------------------------------------------------

    def _sync(self, sending: Sending) -> Steps[SendResult]:
        """Try until one attempt is stored, within the timeout and retry limit."""
        table = yield from self._table(sending)
        total = 1 + self.config.retries
        last: str | None = None
        cause: ClientError | None = None
        stored: SendResult | None = None
        out_of_time = False
        for number in range(1, total + 1):
            began = self.client.network.now()
            # before the look at the clock, as in Java: the index advances even if no time is left
            queue, why = self.strategy.select(table, last, number > 1, began // MS)
            if began >= sending.deadline and self._shares_timeout:
                out_of_time = True
                break
            last = queue.broker_name
            broker = table.broker_of(queue)
            deadline = self._attempt_deadline(sending, began, number < total)
            request = self.attempts.request(sending, queue, broker)
            try:
                stored = yield from self.attempts.attempt(
                    sending, request, queue, broker, why, deadline
                )
            except ClientError as error:
                cause = error
                self._reports.synchronous(last, error, began)
                if self._gives_up(error):
                    break
            else:
                self._reports.report(last, AttemptEvent.ANSWERED, began)
                store_ok = stored.status is SendStatus.SEND_OK
                if store_ok or not self.config.retry_another_broker_when_not_store_ok:
                    return stored
        # as Java: stored but not OK is a result, even if the attempts after it failed
        if stored is not None:
            return with_attempts(stored, sending)
        raise self._failed(sending, cause, out_of_time) from cause

    def _once(
        self, sending: Sending, queue: MessageQueue | None, selector: Selector | None
    ) -> Steps[SendResult]:
        """Make one attempt: oneway, or to the queue that the caller or a selector chose."""
        table = yield from self._table(sending, queue)
        began = self.client.network.now()
        target, why = self._choice(sending, table, queue, selector, began)
        broker = table.broker_of(target)
        request = self.attempts.request(sending, target, broker)
        # Java reports to the strategy only where the strategy chose the broker
        free = queue is None and selector is None
        try:
            result = yield from self.attempts.attempt(
                sending, request, target, broker, why, self._whole_deadline(sending, began)
            )
        except ClientError as error:
            if free:
                self._reports.synchronous(target.broker_name, error, began)
            raise self._failed(sending, error, False) from error
        if free:
            self._reports.report(target.broker_name, AttemptEvent.HANDED_OVER, began)
        return result

    def _async(
        self, sending: Sending, queue: MessageQueue | None, selector: Selector | None
    ) -> Steps[SendResult]:
        """Repeat the same request after transport errors."""
        table = yield from self._table(sending, queue)
        began = self.client.network.now()
        target, why = self._choice(sending, table, queue, selector, began)
        broker = table.broker_of(target)
        request = self.attempts.request(sending, target, broker)
        free = queue is None and selector is None
        reports, late = self._reports, False
        if free and reports.enabled:
            connected = self._is_connected(broker)
            late = reports.handing_over(target.broker_name, connected, began)
        retried = 0
        while True:
            try:
                result = yield from self.attempts.attempt(
                    sending, request, target, broker, why, sending.deadline
                )
            except ClientError as error:
                reports.asynchronous(target.broker_name, error, began, late)
                late = False  # only the first attempt is handed over
                now = self.client.network.now()
                # as Java: neither an error code nor a missing permit is retried
                again = isinstance(error, TransportError)
                again = again and not isinstance(error, TooManyRequestsError)
                retried += 1
                out_of_time = again and now >= sending.deadline
                if not again or out_of_time or retried > self.config.retries_async:
                    raise self._failed(sending, error, out_of_time) from error
                began = now
            else:
                reports.asynchronous(target.broker_name, None, began, late)
                return result
            if free:
                other, why = self.strategy.select(table, target.broker_name, False, now // MS)
                broker = table.broker_of(other)
                # Java repeats the written bytes: only the target changes, not the content.
                target = target._replace(broker_name=other.broker_name)

    def _with_room(
        self, sending: Sending, queue: MessageQueue | None, selector: Selector | None
    ) -> Steps[SendResult]:
        """Wait for an in-flight permit, then send asynchronously."""
        messages = sending.messages or [sending.message]
        # a message larger than the limit would wait forever, so it takes all permits
        size = min(sum([len(message.body) for message in messages]), self._size_room.limit)
        acquired: list[tuple[Permits, int]] = []
        try:
            for permits, count in ((self._room, 1), (self._size_room, size)):
                if not permits.take(count):
                    try:
                        yield Acquire(permits, count, sending.deadline)
                    except TooManyRequestsError as error:
                        raise self._failed(sending, error, True) from error
                acquired.append((permits, count))
            return (yield from self._async(sending, queue, selector))
        finally:
            for permits, count in acquired:
                permits.give(count)

    # -- parts of a send ------------------------------------------------------------------------

    def _table(self, sending: Sending, queue: MessageQueue | None = None) -> Steps[PublishTable]:
        """Yield the queues of the message's topic, and prepare the message."""
        now_ms = (sending.begin + self.client.offset) // MS
        try:
            if sending.messages is not None:
                prepared = self.encoder.prepare_batch(sending.messages, now_ms)
                size, most = len(prepared.body), self.config.max_message_size
                if size > most:
                    reason = f"the batch has {size} bytes, more than the {most} allowed"
                    raise InvalidMessageError(reason, "send fewer messages in one batch", 13)
            else:
                prepared = self.encoder.prepare(sending.message, now_ms, half=sending.half)
        except ValueError as error:
            if isinstance(error, InvalidMessageError):
                raise
            raise InvalidMessageError(str(error)) from None
        if len(prepared.properties) > 8000:  # a character has at most four bytes
            _refuse(why_not_encoded(prepared.properties.encode("utf-8", "surrogatepass")))
        sending.prepared = prepared
        topic = prepared.topic
        if queue is not None and self._wrapped(queue.topic) != topic:
            raise InvalidMessageError(
                f"a message of {sending.message.topic} for a queue of {queue.topic}",
                "choose a queue of the message's topic",
            )
        table = self.client.routes.table_of(topic)
        if table is None:
            table = yield from self.client.routes.find_table(topic, sending.deadline)
        return table

    def _choice(
        self,
        sending: Sending,
        table: PublishTable,
        queue: MessageQueue | None,
        selector: Selector | None,
        now: int,
    ) -> tuple[MessageQueue, str]:
        """Return the queue of the first attempt, and the reason."""
        if queue is not None:
            return MessageQueue(sending.prepared.topic, *queue[1:]), CALLER
        if selector is None:
            if self._reports.enabled:
                return self.strategy.select(table, None, False, now // MS)
            queues = table.queues  # the choice of every generation when the strategy is off
            return queues[table.index.next() % len(queues)], ChoiceReason.ROUND_ROBIN
        topic = sending.message.topic
        seen = [
            each if each.topic == topic else each._replace(topic=topic) for each in table.queues
        ]
        chosen = selector(seen, sending.message)
        if chosen not in seen:
            raise InvalidMessageError(
                f"the selector chose {chosen}, which is not a queue of {topic}"
            )
        return table.queues[seen.index(chosen)], getattr(selector, "why", SELECTED)

    def _attempt_deadline(self, sending: Sending, now: int, more: bool) -> int:
        """Return the deadline of an attempt, which may reserve time for further ones."""
        most = self.config.send_max_timeout_per_request_ms
        deadline = self._whole_deadline(sending, now)
        if most < 0 or not more:
            return deadline
        return min(deadline, now + most * MS)

    def _whole_deadline(self, sending: Sending, now: int) -> int:
        """Return the deadline of an attempt that starts now, by the client's release."""
        # a release that does not share the timeout gives it whole to each synchronous attempt
        if self._shares_timeout or sending.mode is not SendMode.SYNC:
            return sending.deadline
        return now + sending.deadline - sending.begin

    def _gives_up(self, error: ClientError) -> bool:
        """Return whether an error ends a synchronous send."""
        if isinstance(error, BrokerError):
            return error.code not in self.config.retried
        return not error.retriable

    def _is_connected(self, broker: str) -> bool:
        address = self.client.routes.master_of(broker)
        channel = self.client.channels.get(address) if address is not None else None
        return channel is not None and channel.link is not None

    def _failed(self, sending: Sending, cause: ClientError | None, out_of_time: bool) -> SendFailed:
        elapsed = (self.client.network.now() - sending.begin) // MS
        topic = sending.message.topic
        failed = SendFailed(topic, tuple(sending.attempts), elapsed, cause, out_of_time)
        failed.hook_errors = tuple(sending.hook_errors)
        return failed

    def _wrapped(self, topic: str) -> str:
        return wrap_namespace(self.config.namespace, topic)


def _refuse(problem: Invalid | None) -> None:
    if problem is not None:
        code = problem.code if problem.code >= 0 else None
        raise InvalidMessageError(problem.reason, problem.hint, code, problem.part)
