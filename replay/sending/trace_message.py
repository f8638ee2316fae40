"""Message traces: what a producer tells the trace topic about its sends.

Rules: only sends that were answered are told, each as one record; records wait until there are
enough of them or the oldest is old enough, then travel as one message whose KEYS are the ids and
keys of those that it tells of. Traces of traces are not made. The clock is an argument; who drives
this sends the messages like any others, one way out of a second producer group.
RocketMQ: AsyncTraceDispatcher, TraceDataEncoder, SendMessageTraceHookImpl,
EndTransactionTraceHookImpl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dissectors.remoting.bodies.trace import encode_trace
from dissectors.remoting.group_names import TRACER_PREFIX
from dissectors.remoting.send_fields import DEFAULT_REGION
from dissectors.remoting.topic_names import TRACE_TOPIC, is_trace_topic

from ..message import Message, SendResult, SendStatus, TransactionState
from ..namespace import unwrap_namespace

MAX_BODY: Final = 128_000
"""bytes of records in one message"""
BATCH: Final = 10
"""records that are sent at once (traceMsgBatchNum)"""
WAIT_MS: Final = 5000
"""how long a record waits for others"""
MAX_WAITING: Final = 2048
"""records that wait at most; further ones are dropped and counted"""

_STATE_NAMES: Final = {
    TransactionState.COMMIT: "COMMIT_MESSAGE",
    TransactionState.ROLLBACK: "ROLLBACK_MESSAGE",
    TransactionState.UNKNOWN: "UNKNOW",  # as Java spells it
}
_DELAYS: Final = ("DELAY", "__STARTDELIVERTIME")

TraceRecord = Mapping[str, object]


def trace_group(group: str, number: int) -> str:
    """Return the producer group that sends the traces of a group's `number`th producer, 1 first."""
    return f"{TRACER_PREFIX}-{group}-PRODUCE-{number}"


def record_of_send(
    message: Message,
    result: SendResult,
    group: str,
    begin_ms: int,
    cost_ms: int,
    body_bytes: int,
    namespace: str = "",
) -> TraceRecord | None:
    """Return the record of a send that was answered; None where there is to be none.

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
    """Return the record of a transaction's end, told to the broker at `store_host` at `now_ms`."""
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
    """Records that wait to be sent."""

    def __init__(
        self, *, topic: str = TRACE_TOPIC, batch: int = BATCH, wait_ms: int = WAIT_MS
    ) -> None:
        self._topic = topic
        self._batch = max(batch, 1)
        self._wait_ms = wait_ms
        self._waiting: list[tuple[int, TraceRecord]] = []
        self.dropped = 0
        """records that found no room"""

    def add(self, record: TraceRecord, now_ms: int) -> None:
        """Let a record wait."""
        if len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
        else:
            self._waiting.append((now_ms, record))

    def due_ms(self) -> int | None:
        """Return when there is something to take; None while nothing waits."""
        if not self._waiting:
            return None
        oldest = self._waiting[0][0]
        return oldest if len(self._waiting) >= self._batch else oldest + self._wait_ms

    def take(self, now_ms: int, *, everything: bool = False) -> list[Message]:
        """Return the messages to send now: of full batches, of old records, at the end of
        everything.
        """
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
    """Return records as messages of the trace topic, each of a body that is not too long."""
    messages: list[Message] = []
    body, keys = b"", dict[str, None]()
    for record in records:
        text = encode_trace([record])
        if body and len(body) + len(text) > MAX_BODY:
            messages.append(Message(topic, body, keys=" ".join(keys)))
            body, keys = b"", {}
        body += text
        keys[str(record["msgId"])] = None
        keys.update(dict.fromkeys(str(record.get("keys") or "").split()))
    if body:
        messages.append(Message(topic, body, keys=" ".join(keys)))
    return messages
