"""Message traces: a producer's records of its sends for the trace topic.

Only sends with a response are traced, each as one record. Records are buffered, then sent as one
message whose KEYS are the traced ids and keys. A trace that cannot be sent is lost.
RocketMQ: AsyncTraceDispatcher, TraceDataEncoder, SendMessageTraceHookImpl,
EndTransactionTraceHookImpl.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from dissectors.remoting.bodies.trace import encode_trace
from dissectors.remoting.send_fields import DEFAULT_REGION
from dissectors.remoting.topic_names import TRACE_TOPIC, TRACER_PREFIX, is_trace_topic

from ..cluster.client import ClusterClient
from ..config import ProducerConfig
from ..message import Attempt, Message, SendMode, SendResult, SendStatus, TransactionState
from ..namespace import unwrap_namespace, wrap_namespace
from ..validators import GROUP_LENGTH
from ..wire.network import MS
from ..wire.operation import RunningOperation
from ..wire.steps import Steps
from .attempt import Sending
from .send import Sender
from .transaction import End, Transactions

_STEP_MS: Final = 500
# sendMsgTimeout of AsyncTraceDispatcher's producer
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
        # A second group over the same connections, without hooks: traces are not traced.
        group = trace_group(config.group)
        wrapped = len(wrap_namespace(config.namespace, group)) - len(group)
        self._sender = Sender(
            sender.client,
            # cut: a longer group is not valid; on_attempt sees only the application's messages
            config=replace(
                config,
                group=group[: GROUP_LENGTH - wrapped],
                check_hooks=(),
                hooks=(),
                on_attempt=None,
                fault=None,
            ),
        )
        sender.attempts.on_stored = self._stored
        transactions.on_end = self._transaction_ended
        sender.client.repeat(_STEP_MS, lambda _: self._send_due())

    def farewell(self) -> Iterable[Steps[SendResult]]:
        """Return the traces to send before closing."""
        return [
            self._send(message, 1000)
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

    def _send_due(self) -> None:
        now = self._now_ms()
        due = self._buffer.due_ms()
        if due is None or due > now:
            return
        for message in self._buffer.take(now):
            self._client.runner.start(self._send(message, _TIMEOUT_MS), self._ended)

    def _send(self, message: Message, timeout_ms: int) -> Steps[SendResult]:
        # a generator: an invalid message fails this operation, not the traced send
        return (yield from self._sender.send(message, SendMode.ASYNC, timeout_ms))

    def _ended(self, operation: RunningOperation[SendResult]) -> None:
        if operation.error is not None:
            self.failed += 1

    def _now_ms(self) -> int:
        return (self._client.network.now() + self._client.offset) // MS


# AsyncTraceDispatcher.maxMsgSize
MAX_BODY: Final = 128_000
"""bytes of records in one message"""
BATCH: Final = 10
"""records that are sent at once (traceMsgBatchNum)"""
WAIT_MS: Final = 5000
"""how long a record waits for others"""
# AsyncTraceDispatcher.queueSize
MAX_WAITING: Final = 2048
"""records that wait at most; further ones are dropped and counted"""

_STATE_NAMES: Final = {
    TransactionState.COMMIT: "COMMIT_MESSAGE",
    TransactionState.ROLLBACK: "ROLLBACK_MESSAGE",
    TransactionState.UNKNOWN: "UNKNOW",  # Java's spelling
}
_DELAYS: Final = ("DELAY", "__STARTDELIVERTIME")

TraceRecord = Mapping[str, object]


def trace_group(group: str) -> str:
    """Return the producer group for traces of a group's first producer."""
    return f"{TRACER_PREFIX}-{group}-PRODUCE-1"


def record_of_send(
    message: Message,
    result: SendResult,
    group: str,
    begin_ms: int,
    cost_ms: int,
    body_bytes: int,
    namespace: str = "",
) -> TraceRecord | None:
    """Return the record of a send, or None if it is not traced.

    `begin_ms` is when the last attempt began, ms since the epoch, `body_bytes` the body as sent.
    """
    if is_trace_topic(message.topic) or not result.trace_on or not result.attempts:
        return None
    return {
        "kind": "Pub",
        "timeStamp": begin_ms,
        "regionId": result.region or DEFAULT_REGION,
        "group": unwrap_namespace(namespace, group),
        "topic": unwrap_namespace(namespace, message.topic),
        "msgId": result.unique_key,
        "tags": message.tags,
        "keys": message.keys,
        "storeHost": result.attempts[-1].address,
        "bodyLength": body_bytes,
        "costTime": cost_ms,
        "msgType": _type_of(message, result),
        "offsetMsgId": result.offset_msg_id,
        "success": result.status == SendStatus.SEND_OK,
    }


def _type_of(message: Message, result: SendResult) -> str:
    if result.transaction_state is not None or "TRAN_MSG" in message.properties:
        return "Trans_Msg_Half"
    if any(name in message.properties for name in _DELAYS):
        return "Delay_Msg"
    return "Normal_Msg"


def record_of_end(
    message: Message,
    unique_key: str,
    transaction_id: str,
    group: str,
    store_host: str,
    state: TransactionState,
    now_ms: int,
    *,
    from_check: bool,
    namespace: str = "",
) -> TraceRecord:
    """Return the record of a transaction's end, sent to the broker at `store_host` at `now_ms`."""
    return {
        "kind": "EndTransaction",
        "timeStamp": now_ms,
        "regionId": DEFAULT_REGION,
        "group": unwrap_namespace(namespace, group),
        "topic": unwrap_namespace(namespace, message.topic),
        "msgId": unique_key,
        "tags": message.tags,
        "keys": message.keys,
        "storeHost": store_host,
        "msgType": "Trans_msg_Commit",
        "transactionId": transaction_id,
        "transactionState": _STATE_NAMES[state],
        "fromTransactionCheck": from_check,
    }


class TraceBuffer:
    """A buffer of unsent records."""

    def __init__(
        self, *, topic: str = TRACE_TOPIC, batch: int = BATCH, wait_ms: int = WAIT_MS
    ) -> None:
        self._topic = topic
        self._batch = max(batch, 1)
        self._wait_ms = wait_ms
        self._waiting: list[tuple[int, TraceRecord]] = []
        self.dropped = 0
        """records dropped because the buffer was full"""

    def add(self, record: TraceRecord, now_ms: int) -> None:
        """Add a record."""
        # the newest is dropped, as by Java's bounded queue
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
        else:
            self._waiting.append((now_ms, record))

    def due_ms(self) -> int | None:
        """Return when the next messages are due, or None if the buffer is empty."""
        if not self._waiting:
            return None
        oldest = self._waiting[0][0]
        return oldest if len(self._waiting) >= self._batch else oldest + self._wait_ms

    def take(self, now_ms: int, *, everything: bool = False) -> list[Message]:
        """Return the messages of full batches and old records, or of `everything`."""
        messages: list[Message] = []
        while self._waiting:
            full = len(self._waiting) >= self._batch
            if not (everything or full or self._waiting[0][0] + self._wait_ms <= now_ms):
                break
            records = [record for _, record in self._waiting[: self._batch]]
            del self._waiting[: self._batch]
            messages += messages_of(records, self._topic)
        return messages


def messages_of(records: list[TraceRecord], topic: str = TRACE_TOPIC) -> list[Message]:
    """Return records as messages of the trace topic, with bounded bodies."""
    messages: list[Message] = []
    body, keys = b"", dict[str, None]()
    for record in records:
        text = encode_trace([record])
        # a record that is larger than the limit goes alone
        if body and len(body) + len(text) > MAX_BODY:
            messages.append(Message(topic, body, keys=" ".join(keys)))
            body, keys = b"", {}
        body += text
        keys[str(record["msgId"])] = None
        keys.update(dict.fromkeys(str(record.get("keys") or "").split()))
    if body:
        messages.append(Message(topic, body, keys=" ".join(keys)))
    return messages
