"""A producer on an asyncio loop: every call gives a future; no task and no timer a message.

Rules: made and used within one running loop. A future that is cancelled gives its send up; what was
written may be stored all the same. A check listener that is a coroutine function runs as a task.
RocketMQ: DefaultMQProducer, TransactionMQProducer with SendCallback.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TypeVar

from .cluster.client import ClusterClient
from .config import ProducerConfig, config_in_child
from .errors import ClosedError, UnsentError
from .fault import FaultStrategy
from .forks import watch_forks
from .message import Message, MessageQueue, SendMode, SendResult, TransactionState
from .send_queue import Flushed, SendQueue, run_steps
from .sending.order_key import Selector, selector_of
from .sending.request_reply import PendingRequests
from .sending.send import Sender
from .sending.trace_message import TraceDispatcher
from .sending.transaction import Check, Transactions, state_of
from .transport.aio import AioNetwork
from .wire.steps import Steps

T = TypeVar("T")

_log = logging.getLogger("rmqtool.replay")


class _Core:
    """What a started producer has."""

    def __init__(self, config: ProducerConfig) -> None:
        self.loop = asyncio.get_running_loop()
        self.network = AioNetwork(config.tls, config.guard)
        self.client = ClusterClient(config, self.network)
        self.sender = Sender(self.client)
        self.transactions = Transactions(self.sender)
        self.requests = PendingRequests(self.sender)
        self.tracing = TraceDispatcher(self.sender, self.transactions) if config.trace else None
        self.checks: set[asyncio.Task[None]] = set()
        self.queue = SendQueue(self.client.runner, self.network, config.in_flight_least)
        self.closing = False
        """no further send is taken"""

    def run(self, steps: Steps[T]) -> asyncio.Future[T]:
        """Begin an operation that no flush waits for; the future has its end."""
        return run_steps(self.client.runner, steps)


class AsyncProducer:
    """Sends messages from the coroutines of one loop: `async with AsyncProducer(config) as p`."""

    def __init__(self, config: ProducerConfig) -> None:
        """Nothing is opened or sent yet."""
        self.config = config
        self._core: _Core | None = None
        self._is_parents = False
        """it was started by the parent of this process"""
        watch_forks(self)

    async def start(self) -> None:
        """Make ready; nothing is sent yet. Raises NameServerError where none is named."""
        if self._is_parents:
            self.config = config_in_child(self.config)
            self._is_parents = False
        if self._core is None:
            core = self._core = _Core(self.config)
            core.transactions.on_check = self._checked

    async def __aenter__(self) -> AsyncProducer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close; see `close`.

        After an exception of the block that is not an `Exception`, such as a cancellation, no send
        is waited for. Raise UnsentError where sends had not ended in time and the block itself
        raised nothing.
        """
        at_once = kind is not None and not issubclass(kind, Exception)
        flushed = await self.close(0 if at_once else None)
        if flushed.unfinished and kind is None:
            raise UnsentError(flushed.unfinished)

    @property
    def peers(self) -> list[str]:
        """The other ends of all open connections, `ip:port`."""
        return [] if self._core is None else self._core.network.peers

    @property
    def fault(self) -> FaultStrategy:
        """State of the latency fault strategy."""
        return self._started.sender.strategy

    @property
    def client_id(self) -> str:
        """How brokers know this producer."""
        return self._started.client.client_id

    @property
    def connections(self) -> int:
        """Connections that are open or being opened."""
        return self._started.client.channels.open_count

    @property
    def in_flight(self) -> int:
        """Requests that are not answered yet."""
        return self._started.client.channels.in_flight

    def send(
        self,
        message: Message,
        *,
        mode: SendMode = SendMode.ASYNC,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        order_key: str | None = None,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[SendResult]:
        """Send a message; the future has the result, with where and how it was stored.

        `mode` chooses the rules: ASYNC repeats the same request after errors of transport; SYNC
        retries with other brokers, also after some error codes; ONEWAY is written and not answered.
        `queue`, or `selector`, or `order_key` (one queue for each key) choose where to. The future
        fails with InvalidMessageError, RouteError, NameServerError, SendFailed, ClosedError.
        """
        try:
            core = self._started
            if order_key is not None:
                selector = selector_of(selector, order_key)
        except Exception as error:
            return _failed(error)
        send = core.sender.send
        return core.queue.add(
            lambda: send(message, mode, timeout_ms, queue=queue, selector=selector),
            self._timeout_of(timeout_ms),
        )

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        mode: SendMode = SendMode.ASYNC,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        order_key: str | None = None,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[SendResult]:
        """Send messages of one topic as one request; otherwise as `send`."""
        try:
            core = self._started
            batch = list(messages)
            selector = selector_of(selector, order_key)
        except Exception as error:
            return _failed(error)
        send = core.sender.send_batch
        return core.queue.add(
            lambda: send(batch, mode, timeout_ms, queue=queue, selector=selector),
            self._timeout_of(timeout_ms),
        )

    async def send_in_transaction(
        self,
        message: Message,
        execute: Callable[[Message], TransactionState | Awaitable[TransactionState]],
        *,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Send a half message, run the local transaction, tell the broker its outcome.

        `execute` is called only when the half message is stored as configured (SEND_OK); what it
        raises makes the outcome unknown: the broker will ask `config.check_listener`. Raises as
        `send`.
        """
        core = self._started
        whole = core.queue.track()
        try:
            steps = core.transactions.half
            first = core.queue.add(lambda: steps(message, timeout_ms), self._timeout_of(timeout_ms))
            first.counts = False  # `whole` does, to the end of the transaction
            half = await first
            state, problem = core.transactions.decided(half), None
            if state is None:
                state, problem = await _outcome_of(execute, message)
            result = await core.run(core.transactions.end(message, half, state, problem))
        except BaseException:
            whole.cancel()
            raise
        if not whole.done():
            whole.set_result(None)
        return result

    async def request(self, message: Message, *, timeout_ms: int | None = None) -> Message:
        """Send a request and wait for the reply to it.

        Raises ReplyTimeoutError where none came in time; otherwise as `send`.
        """
        core = self._started
        return await core.queue.add(
            lambda: core.requests.request(message, timeout_ms),
            self._timeout_of(timeout_ms),
        )

    async def queues_of(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be written to. Raises RouteError,
        NameServerError.
        """
        core = self._started
        return await core.run(core.sender.find_queues(topic))

    def brokers_of(self, topic: str) -> list[str] | None:
        """Return the masters' addresses of all routes in use; None where the topic's is not known.

        `queues_of` asks for a route; nothing is sent to its brokers by that.
        """
        return self._started.sender.known_brokers(topic)

    async def flush(self, timeout: float | None = None) -> Flushed:
        """Wait until the sends that were begun so far have ended; return how they did.

        `timeout` is in seconds; None: as long as it takes, which the sends' own timeouts bound. A
        send that has not ended then goes on.
        """
        return await self._started.queue.flush(timeout)

    async def close(self, timeout: float | None = None) -> Flushed:
        """Take no further send, wait for those that were begun, and end all connections.

        Sends that have not ended within `timeout` seconds (None: `close_timeout_ms`) fail with
        ClosedError, or with SendFailed because of it; they are counted and logged. A second more
        may go into telling the brokers that we leave. Return how the sends ended.
        """
        core = self._core
        if core is None:
            return Flushed(0, 0, 0)
        _refuse_other_loop(core)
        if core.closing:
            return await core.queue.flush(timeout)
        core.closing = True
        flushed = Flushed(0, 0, 0)
        try:
            seconds = self.config.close_timeout_ms / 1000 if timeout is None else timeout
            flushed = await core.queue.flush(seconds)
            core.queue.abandon()
            if flushed.unfinished:
                _log.warning("%s", UnsentError(flushed.unfinished).reason)
            await self._leave(core)
        finally:
            self._core = None
            core.queue.abandon()
            for task in core.checks:
                task.cancel()
            core.client.close()
            unsent = await core.network.close()
            if unsent:
                _log.warning("%d bytes of one-way requests were not sent before the end", unsent)
        return flushed

    async def _leave(self, core: _Core) -> None:
        """Send what is left of traces, and tell the brokers that we leave."""
        said: list[asyncio.Future[object]] = []
        if core.tracing is not None:
            said += [core.run(steps) for steps in core.tracing.farewell()]
        said += [core.run(steps) for steps in core.client.farewell()]
        await asyncio.gather(*said, return_exceptions=True)

    def forked(self) -> None:
        """Leave all connections to the parent of this process."""
        core, self._core = self._core, None
        if core is not None:
            core.network.forked()
            self._is_parents = True

    # -- inside ---------------------------------------------------------------------------------

    @property
    def _started(self) -> _Core:
        core = self._core
        if self._is_parents:
            hint = "start() it in this process, or make a producer here"
            raise ClosedError("the producer was started by the parent of this process", hint)
        if core is None or core.closing:
            hint = "use it within `async with`, or start() it first"
            raise ClosedError("the producer is closed, or was not started", hint)
        _refuse_other_loop(core)
        return core

    def _timeout_of(self, timeout_ms: int | None) -> int:
        return self.config.send_timeout_ms if timeout_ms is None else timeout_ms

    def _checked(self, check: Check) -> None:
        """Answer a broker that asks what became of a transaction."""
        core = self._core
        if core is None:
            return  # closed meanwhile
        task = core.loop.create_task(self._answer(core, check))
        core.checks.add(task)
        task.add_done_callback(core.checks.discard)
        task.add_done_callback(lambda _: core.transactions.asked(check))

    async def _answer(self, core: _Core, check: Check) -> None:
        listener = self.config.check_listener
        if listener is not None:
            state, problem = await _outcome_of(listener, check.message)
            await core.run(core.transactions.answer(check, state, problem))


def _refuse_other_loop(core: _Core) -> None:
    if core.loop is not asyncio.get_running_loop():
        hint = "make a producer of its own for each loop"
        raise ClosedError("the producer was started on another event loop", hint)


async def _outcome_of(
    ask: Callable[[Message], TransactionState | Awaitable[TransactionState]], message: Message
) -> tuple[TransactionState, Exception | None]:
    """Return what the application says of a transaction, and what it raised."""
    try:
        said = ask(message)
        return state_of(await said if inspect.isawaitable(said) else said), None
    except Exception as problem:
        return TransactionState.UNKNOWN, problem


def _failed(error: Exception) -> asyncio.Future[SendResult]:
    future: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future
