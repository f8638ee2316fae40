"""A producer on an asyncio loop: every send is a future, no task and no timer of its own.

RocketMQ: DefaultMQProducer, TransactionMQProducer with SendCallback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import TypeVar

from .client import Client
from .config import ProducerConfig
from .errors import ClosedError
from .message import Message, MessageQueue, SendMode, SendResult
from .operation import Operation
from .send import KeySelector, Selector, Sender
from .steps import Steps
from .transport.aio import AioNetwork

T = TypeVar("T")


class AsyncProducer:
    """Sends messages from the coroutines of one loop; used with `async with`."""

    def __init__(self, config: ProducerConfig) -> None:
        self.config = config
        self._network: AioNetwork | None = None
        self._client: Client | None = None
        self._sender: Sender | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Make ready; nothing is sent yet. Raises NameServerError where none is named."""
        self._loop = asyncio.get_running_loop()
        self._network = AioNetwork(self.config.tls)
        self._client = Client(self.config, self._network)
        self._sender = Sender(self._client)

    async def __aenter__(self) -> AsyncProducer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

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
        """Send a message."""
        if order_key is not None:
            selector = KeySelector(order_key)
        try:
            steps = self._started.send(message, mode, timeout_ms, queue=queue, selector=selector)
        except Exception as error:
            return self._failed(error)
        return self._run(steps)

    def send_batch(
        self,
        messages: Sequence[Message],
        *,
        mode: SendMode = SendMode.ASYNC,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[SendResult]:
        """Send messages as one."""
        try:
            steps = self._started.send_batch(
                messages, mode, timeout_ms, queue=queue, selector=selector
            )
        except Exception as error:
            return self._failed(error)
        return self._run(steps)

    @property
    def _started(self) -> Sender:
        if self._sender is None:
            raise ClosedError("the producer is not started", "use it as `async with`")
        return self._sender

    def _run(self, steps: Steps[T]) -> asyncio.Future[T]:
        assert self._client is not None and self._loop is not None
        future: asyncio.Future[T] = self._loop.create_future()

        def ended(operation: Operation[T]) -> None:
            if future.done():
                return
            if operation.error is not None:
                future.set_exception(operation.error)
            else:
                future.set_result(operation.value)  # type: ignore[arg-type]

        self._client.runner.start(steps, ended)
        return future

    def _failed(self, error: Exception) -> asyncio.Future[SendResult]:
        future: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
        future.set_exception(error)
        return future

    async def close(self) -> None:
        """Tell the brokers that we leave, end all connections."""
        if self._client is None or self._network is None:
            return
        client, self._client, self._sender = self._client, None, None
        futures = []
        for steps in client.farewell():
            future = self._loop.create_future()
            client.runner.start(steps, lambda op, f=future: f.done() or f.set_result(None))
            futures.append(future)
        await asyncio.gather(*futures)
        client.close()
        await self._network.close()
