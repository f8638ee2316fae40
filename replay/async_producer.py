"""A producer on an asyncio loop: every call returns a future, without a task or timer per message.

Rules: made and used within one running loop. Cancelling a future abandons its send; a request that
was written may be stored anyway. A check listener that is a coroutine function runs as a task.
RocketMQ: DefaultMQProducer, TransactionMQProducer with SendCallback.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from .cluster.client import ClusterClient
from .config import ProducerConfig, config_in_child
from .errors import ClosedError, UnsentError
from .fault import FaultStrategy
from .forks import watch_forks
from .message import Message, MessageQueue, SendMode, SendResult, TransactionState
from .send_queue import Flushed, SendQueue, run_steps
from .sending.request_reply import PendingRequests
from .sending.send import Selector, Sender, selector_of
from .sending.trace_message import TraceDispatcher
from .sending.transaction import Check, Transactions, state_of
from .transport.aio import AioNetwork
from .wire.steps import Steps

T = TypeVar("T")

_log = logging.getLogger("rmqtool.replay")


class _Core:
    """The state of a started producer."""

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
        """no further sends are accepted"""

    def run(self, steps: Steps[T]) -> asyncio.Future[T]:
        """Start an operation that no flush waits for; the future has its result."""
        return run_steps(self.client.runner, steps)


class AsyncProducer:
    """Sends messages from the coroutines of one loop: `async with AsyncProducer(config) as p`."""

    def __init__(self, config: ProducerConfig) -> None:
        """Open and send nothing yet."""
        self.config = config
        self._core: _Core | None = None
        self._is_parents = False
        """it was started by the parent process"""
        watch_forks(self)

    async def start(self) -> None:
        """Prepare to send; nothing is sent yet. Raises NameServerError if none is configured."""
        if self._is_parents:
            self.config = config_in_child(self.config)
            self._is_parents = False
        if self._core is None:
            core = self._core = _Core(self.config)
            core.transactions.on_check = self._checked

    async def __aenter__(self) -> AsyncProducer:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close; see `close`.

        After a `BaseException` of the block, such as a cancellation, no send is waited for. Raise
        UnsentError if sends had not ended in time and the block raised nothing.
        """
        at_once = kind is not None and not issubclass(kind, Exception)
        flushed = await self.close(0 if at_once else None)
        if flushed.unfinished and kind is None:
            raise UnsentError(flushed.unfinished)

    @property
    def peers(self) -> list[str]:
        """Peer addresses of all open connections, `ip:port`."""
        return [] if self._core is None else self._core.network.peers

    @property
    def fault(self) -> FaultStrategy:
        """State of the latency fault strategy."""
        return self._started.sender.strategy

    @property
    def client_id(self) -> str:
        """The client id that brokers see."""
        return self._started.client.client_id

    @property
    def connections(self) -> int:
        """Number of connections that are open or being opened."""
        return self._started.client.channels.open_count

    @property
    def in_flight(self) -> int:
        """Number of unanswered requests."""
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
        """Send a message; the future has the result: queue, offset, and status.

        `mode`: ASYNC repeats the same request after transport errors; SYNC retries with other
        brokers, also after some error codes; ONEWAY gets no response. `queue`, `selector`, or
        `order_key` (one queue per key) choose the queue. The future fails with InvalidMessageError,
        RouteError, NameServerError, SendFailed, ClosedError.
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
        """Send a half message, run the local transaction, and report its outcome to the broker.

        `execute` is called only if the half message is stored as configured (SEND_OK). If it
        raises, the outcome is unknown and the broker will ask `config.check_listener`. Raises as
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
        # `close` may have cancelled it
        if not whole.done():
            whole.set_result(None)
        return result

    async def request(self, message: Message, *, timeout_ms: int | None = None) -> Message:
        """Send a request and wait for its reply.

        Raises ReplyTimeoutError if none came in time; otherwise as `send`.
        """
        core = self._started
        return await core.queue.add(
            lambda: core.requests.request(message, timeout_ms),
            self._timeout_of(timeout_ms),
        )

    async def queues_of(self, topic: str) -> list[MessageQueue]:
        """Return the writable queues of a topic. Raises RouteError, NameServerError."""
        core = self._started
        return await core.run(core.sender.find_queues(topic))

    def brokers_of(self, topic: str) -> list[str] | None:
        """Return the masters' addresses of all routes in use, or None if the topic's is unknown.

        `queues_of` queries a route without contacting its brokers.
        """
        return self._started.sender.known_brokers(topic)

    async def flush(self, timeout: float | None = None) -> Flushed:
        """Wait until all sends started so far have ended; return their outcomes.

        `timeout` is in seconds; None waits until the sends' own timeouts. A send that has not ended
        by then continues.
        """
        return await self._started.queue.flush(timeout)

    async def close(self, timeout: float | None = None) -> Flushed:
        """Accept no further sends, wait for those in progress, and close all connections.

        Sends that have not ended within `timeout` seconds (None: `close_timeout_ms`) fail with
        ClosedError, or with SendFailed caused by it; they are counted and logged. Unregistering
        from the brokers may take another second. Return the outcomes of the sends.
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
            # again: a cancellation may have ended the wait above
            core.queue.abandon()
            for task in core.checks:
                task.cancel()
            core.client.close()
            unsent = await core.network.close()
            if unsent:
                _log.warning("%d bytes of oneway requests were not sent before the end", unsent)
        return flushed

    async def _leave(self, core: _Core) -> None:
        """Send the remaining traces and unregister from the brokers."""
        farewells: list[asyncio.Future[object]] = []
        if core.tracing is not None:
            farewells += [core.run(steps) for steps in core.tracing.farewell()]
        farewells += [core.run(steps) for steps in core.client.farewell()]
        await asyncio.gather(*farewells, return_exceptions=True)

    def forked(self) -> None:
        """Leave all connections to the parent process."""
        core, self._core = self._core, None
        if core is not None:
            core.network.forked()
            self._is_parents = True

    # -- internal -------------------------------------------------------------------------------

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
        """Respond to a broker's check of a transaction."""
        core = self._core
        if core is None:
            return  # closed in the meantime
        task = core.loop.create_task(self._respond(core, check))
        core.checks.add(task)
        task.add_done_callback(core.checks.discard)
        # also after a cancellation: the check would count forever
        task.add_done_callback(lambda _: core.transactions.asked(check))

    async def _respond(self, core: _Core, check: Check) -> None:
        listener = self.config.check_listener
        if listener is not None:
            state, problem = await _outcome_of(listener, check.message)
            await core.run(core.transactions.respond(check, state, problem))


def _refuse_other_loop(core: _Core) -> None:
    if core.loop is not asyncio.get_running_loop():
        hint = "make a producer of its own for each loop"
        raise ClosedError("the producer was started on another event loop", hint)


async def _outcome_of(
    ask: Callable[[Message], TransactionState | Awaitable[TransactionState]], message: Message
) -> tuple[TransactionState, Exception | None]:
    """Return the application's outcome of a transaction, and the error that it raised."""
    try:
        outcome = ask(message)
        return state_of(await outcome if inspect.isawaitable(outcome) else outcome), None
    except Exception as problem:
        return TransactionState.UNKNOWN, problem


def _failed(error: Exception) -> asyncio.Future[SendResult]:
    future: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future
