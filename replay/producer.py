"""A blocking producer: each call waits for its result and runs periodic tasks meanwhile.

Rules: one call at a time (further threads wait); no thread of its own, so heartbeats are sent and
brokers' requests are answered only while a call waits, and in `poll`. In a forked child a producer
starts fresh: it shares no connection or counter with the parent's.
RocketMQ: DefaultMQProducer, TransactionMQProducer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from .cluster.client import ClusterClient
from .config import ProducerConfig, config_in_child
from .errors import ClosedError
from .fault import FaultStrategy
from .forks import watch_forks
from .message import Message, MessageQueue, SendMode, SendResult, TransactionState
from .sending.request_reply import PendingRequests
from .sending.send import Selector, Sender, selector_of
from .sending.trace_message import TraceDispatcher
from .sending.transaction import Check, Transactions, state_of
from .transport.blocking import BlockingNetwork
from .wire.operation import RunningOperation
from .wire.steps import Steps

T = TypeVar("T")

_QUIET_NS = 1_000_000_000
"""time without a call after which the sockets are read before anything is written"""


class Producer:
    """Sends messages, one call at a time: `with Producer(config) as producer`."""

    def __init__(self, config: ProducerConfig) -> None:
        """Send nothing yet. Raises ConfigError, or NameServerError if none is configured."""
        self.config = config
        self._closed = False
        self._lock = threading.RLock()
        self._make()
        watch_forks(self)

    def _make(self) -> None:
        """Create the state of one process: connections and ids."""
        config = self.config
        self._network = BlockingNetwork(config.tls, config.guard)
        try:
            self._client = ClusterClient(config, self._network)
        except BaseException:
            self._network.close()
            raise
        self._sender = Sender(self._client)
        self._transactions = Transactions(self._sender)
        self._requests = PendingRequests(self._sender)
        self._tracing = TraceDispatcher(self._sender, self._transactions) if config.trace else None
        self._transactions.on_check = self._checked
        self._last = self._network.now()
        self._is_parents = False
        """connections and ids belong to the parent process"""

    def forked(self) -> None:
        """Leave all connections to the parent process; the next call opens new ones."""
        self._lock = threading.RLock()  # a thread of the parent may hold the old one
        if not self._closed:
            self._network.forked()
            self._is_parents = True

    def _own(self) -> Producer:
        """Return this producer, with new connections and ids after a fork."""
        if self._is_parents and not self._closed:
            with self._lock:
                if self._is_parents:
                    self.config = config_in_child(self.config)
                    self._make()
        return self

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def fault(self) -> FaultStrategy:
        """State of the latency fault strategy."""
        return self._own()._sender.strategy

    @property
    def client_id(self) -> str:
        """The client id that brokers see."""
        return self._own()._client.client_id

    @property
    def connections(self) -> int:
        """Number of connections that are open or being opened."""
        return self._own()._client.channels.open_count

    def send(
        self,
        message: Message,
        *,
        mode: SendMode = SendMode.SYNC,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        order_key: str | None = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Send a message; the result has queue, offset, status, and every attempt.

        `mode`: SYNC retries with other brokers, also after some error codes; ASYNC repeats the same
        request after transport errors; ONEWAY gets no response. `queue`, `selector`, or `order_key`
        (one queue per key) choose the queue.
        Raises InvalidMessageError, RouteError, NameServerError, SendFailed, ClosedError.
        """
        return self._run(
            lambda: self._sender.send(
                message,
                mode,
                timeout_ms,
                queue=queue,
                selector=selector_of(selector, order_key),
            )
        )

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        mode: SendMode = SendMode.SYNC,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        order_key: str | None = None,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Send messages of one topic as one request; otherwise as `send`."""
        return self._run(
            lambda: self._sender.send_batch(
                messages,
                mode,
                timeout_ms,
                queue=queue,
                selector=selector_of(selector, order_key),
            )
        )

    def send_in_transaction(
        self,
        message: Message,
        execute: Callable[[Message], TransactionState],
        *,
        timeout_ms: int | None = None,
    ) -> SendResult:
        """Send a half message, run the local transaction, and report its outcome to the broker.

        `execute` is called only if the half message is stored as configured (SEND_OK). If it
        raises, the outcome is unknown and the broker will ask `config.check_listener`, which runs
        within further calls and in `poll`. Raises as `send`.
        """
        half = self._run(lambda: self._transactions.half(message, timeout_ms))
        state, problem = self._transactions.decided(half), None
        if state is None:
            state, problem = _outcome_of(execute, message)
        return self._run(lambda: self._transactions.end(message, half, state, problem))

    def request(self, message: Message, *, timeout_ms: int | None = None) -> Message:
        """Send a request and wait for its reply.

        Raises ReplyTimeoutError if none came in time; otherwise as `send`.
        """
        return self._run(lambda: self._requests.request(message, timeout_ms))

    def queues_of(self, topic: str) -> list[MessageQueue]:
        """Return the writable queues of a topic. Raises RouteError, NameServerError."""
        return self._run(lambda: self._sender.find_queues(topic))

    def poll(self, seconds: float = 0.0) -> None:
        """Serve the connections for some seconds: heartbeats, brokers' requests, route refresh."""
        with self._lock:
            self._open()
            until = self._network.now() + round(seconds * 1e9)
            self._network.serve_ready()
            self._network.run(lambda: False, until)
            self._last = self._network.now()

    def close(self) -> None:
        """Unregister from the brokers (a second at most) and close all connections."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._is_parents:
                return
            try:
                runner = self._client.runner
                traces = self._tracing.farewell() if self._tracing is not None else ()
                farewells: list[RunningOperation[object]] = [
                    runner.start(steps) for steps in traces
                ]
                farewells += [runner.start(steps) for steps in self._client.farewell()]
                self._network.run(lambda: all(operation.done for operation in farewells))
            finally:
                self._client.close()
                self._network.close()

    def _open(self) -> None:
        if self._closed:
            raise ClosedError("the producer is closed")
        self._own()

    def _run(self, make: Callable[[], Steps[T]]) -> T:
        """Run an operation to its end, and serve all connections meanwhile."""
        with self._lock:
            self._open()
            network = self._network
            if network.now() - self._last > _QUIET_NS:
                network.serve_ready()  # a connection may have closed in the meantime
            operation = self._client.runner.start(make())
            try:
                network.run(lambda: operation.done)
            except BaseException:
                operation.cancel()
                raise
            finally:
                self._last = network.now()
            return operation.result

    def _checked(self, check: Check) -> None:
        """Queue a broker's check of a transaction; it is answered while events are processed."""
        listener = self.config.check_listener
        assert listener is not None  # without a listener there are no checks

        def respond() -> None:
            try:
                state, problem = _outcome_of(listener, check.message)
            finally:
                self._transactions.asked(check)
            self._client.runner.start(self._transactions.respond(check, state, problem))

        self._network.call_soon(respond)


def _outcome_of(
    ask: Callable[[Message], object], message: Message
) -> tuple[TransactionState, Exception | None]:
    """Return the application's outcome of a transaction, and the error that it raised."""
    try:
        return state_of(ask(message)), None
    except Exception as problem:
        return TransactionState.UNKNOWN, problem
