"""The traces of a producer on their way: collected from its sends, sent beside them.

Rules: traces are sent asynchronously by a second producer group over the same connections; one that
cannot be sent is lost, and no send fails because of it. Traces are not traced.
RocketMQ: AsyncTraceDispatcher.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ..cluster.client import ClusterClient
from ..config import ProducerConfig
from ..message import Attempt, SendMode, SendResult
from ..wire.network import MS
from ..wire.operation import RunningOperation
from ..wire.steps import Steps
from .attempt import Sending
from .send import Sender
from .trace_message import TraceBuffer, record_of_end, record_of_send, trace_group
from .transaction import End, Transactions

_STEP_MS: Final = 500
_TIMEOUT_MS: Final = 5000


class TraceDispatcher:
    """Collects and sends the traces of one producer."""

    def __init__(self, sender: Sender, transactions: Transactions) -> None:
        config = sender.config
        self.failed = 0
        """messages of traces that could not be sent"""
        self._client: ClusterClient = sender.client
        self._config: ProducerConfig = config
        self._buffer = TraceBuffer(topic=config.trace_topic)
        group = trace_group(config.group, 1)
        self._sender = Sender(
            sender.client,
            config=replace(
                config, group=group[:120], check_hooks=(), hooks=(), on_attempt=None, fault=None
            ),
        )
        sender.attempts.on_stored = self._stored
        transactions.on_end = self._transaction_ended
        sender.client.repeat(_STEP_MS, self._step)

    def farewell(self) -> Iterable[Steps[SendResult]]:
        """Return what is still to be sent before the end."""
        return [
            self._sender.send(message, SendMode.ASYNC, 1000)
            for message in self._buffer.take(self._now_ms(), everything=True)
        ]

    def _stored(self, sending: Sending, result: SendResult, attempt: Attempt) -> None:
        latency = attempt.latency_us or 0
        record = record_of_send(
            sending.message,
            result,
            self._client.group,
            attempt.begin // MS,
            latency // 1000,
            attempt.body_bytes,
            self._config.namespace,
        )
        if record is not None:
            self._buffer.add(record, self._now_ms())
            self._send_due()

    def _transaction_ended(self, end: End) -> None:
        now = self._now_ms()
        record = record_of_end(
            end.message,
            end.unique_key,
            end.transaction_id or end.unique_key,
            self._client.group,
            end.address,
            end.state,
            now,
            from_check=end.from_check,
            namespace=self._config.namespace,
        )
        self._buffer.add(record, now)
        self._send_due()

    def _step(self, _: int) -> None:
        self._send_due()

    def _send_due(self) -> None:
        now = self._now_ms()
        due = self._buffer.due_ms()
        if due is None or due > now:
            return
        for message in self._buffer.take(now):
            steps = self._sender.send(message, SendMode.ASYNC, _TIMEOUT_MS)
            self._client.runner.start(steps, self._ended)

    def _ended(self, operation: RunningOperation[SendResult]) -> None:
        if operation.error is not None:
            self.failed += 1

    def _now_ms(self) -> int:
        return (self._client.network.now() + self._client.offset) // MS
