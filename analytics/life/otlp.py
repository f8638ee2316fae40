"""Message traces as OpenTelemetry spans: OTLP in JSON, one trace per message.

Names and kinds follow the semantic conventions for messaging.

OpenTelemetry: opentelemetry-proto, semantic conventions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from dissectors.endpoint import split_endpoint
from dissectors.rows import message_record as events
from dissectors.rows.message_record import MessageRecord

from .lanes import BROKER, CONNECT_FAILED, CONSUMER, PROXY, REPLICATED
from .life import MessageTrace, TraceStep

_CLIENT, _PRODUCER = 3, 4  # SpanKind
_ERROR: Final = 2  # StatusCode


class _Operation(NamedTuple):
    name: str
    """messaging.operation.name"""
    type: str | None
    """messaging.operation.type; None: no value of the closed list fits"""
    kind: int


_SEND: Final = _Operation("send", "send", _PRODUCER)
_SETTLE: Final = "settle"
_FAILED: Final = (events.REFUSED, events.SENT, CONNECT_FAILED)
_OPERATIONS: Final = {
    events.SENT: _SEND,
    events.STORED: _SEND,
    CONNECT_FAILED: _SEND,
    events.PREPARED: _Operation("prepare", "send", _PRODUCER),
    events.DELIVERED: _Operation("receive", "receive", _CLIENT),
    REPLICATED: _Operation("replicate", None, _CLIENT),
    events.VIEWED: _Operation("view", None, _CLIENT),
    events.ACKNOWLEDGED: _Operation("ack", _SETTLE, _CLIENT),
    events.RETURNED: _Operation("nack", _SETTLE, _CLIENT),
    events.DEAD: _Operation("dead_letter", _SETTLE, _CLIENT),
    events.COMMITTED: _Operation("commit", None, _CLIENT),
    events.ROLLED_BACK: _Operation("rollback", None, _CLIENT),
    events.UNDECIDED: _Operation("undecided", None, _CLIENT),
    events.CHECKED: _Operation("check", None, _CLIENT),
    events.RECALLED: _Operation("recall", None, _CLIENT),
}


def otlp_of(lives: Sequence[MessageTrace], version: str) -> dict[str, object]:
    """Return message traces as an ExportTraceServiceRequest; `version` is rmqtool's."""
    by_service: dict[str, list[dict[str, object]]] = {}
    for life in lives:
        trace = _trace_id(life)
        root = _span_id(trace, 0)
        for number, step in enumerate(life.steps):
            span = _span(life, step, trace, number)
            if number:  # the first step is the root of all others
                span["parentSpanId"] = root
            by_service.setdefault(_service(step), []).append(span)
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", service)]},
                "scopeSpans": [{"scope": {"name": "rmqtool", "version": version}, "spans": spans}],
            }
            for service, spans in by_service.items()
        ]
    }


def _service(step: TraceStep) -> str:
    """Return the service of a span: the client, by its group if known."""
    row = step.row
    ends = (step.source, step.target)
    client = next((end for end in ends if end.kind not in (BROKER, PROXY)), None)
    if client is None:  # behind a proxy
        return next(end for end in ends if end.kind == PROXY).name
    group = row.consumer_group if client.kind == CONSUMER else row.producer_group
    return group or client.name


def _trace_id(life: MessageTrace) -> str:
    # from the message, so that the same capture gives the same trace
    digest = hashlib.sha256(f"rmqtool\0{life.topic}\0{life.name}".encode("utf-8", "replace"))
    return digest.hexdigest()[:32]


def _span_id(trace: str, number: int) -> str:
    return hashlib.sha256(f"{trace}/{number}".encode()).hexdigest()[:16]


def _span(life: MessageTrace, step: TraceStep, trace: str, number: int) -> dict[str, object]:
    row = step.row
    operation = _operation(row)
    end = step.time
    # A send lasts from request to response. A receive is the moment of the response, because a long
    # poll began before there was a message.
    if row.latency_us is not None and row.event not in (events.DELIVERED, events.VIEWED):
        end += 1000 * max(0, row.latency_us)
    span: dict[str, object] = {
        "traceId": trace,
        "spanId": _span_id(trace, number),
        "name": f"{operation.name} {row.original_topic or row.topic or life.topic or '?'}",
        "kind": operation.kind,
        "startTimeUnixNano": str(step.time),
        "endTimeUnixNano": str(end),
        "attributes": _attributes(life, step, operation),
    }
    if row.event in _FAILED:
        span["status"] = {"code": _ERROR, "message": step.words}
    return span


def _operation(row: MessageRecord) -> _Operation:
    if row.event == events.REFUSED:
        name = row.request_name or ""
        if name.startswith("SEND_"):
            return _SEND
        return _Operation(name.lower() or "refused", None, _CLIENT)
    return _OPERATIONS.get(row.event) or _Operation(row.event or "unknown", None, _CLIENT)


def _attributes(
    life: MessageTrace, step: TraceStep, operation: _Operation
) -> list[dict[str, object]]:
    row = step.row
    server = split_endpoint(row.server_address)
    failed = row.event in _FAILED
    named: list[tuple[str, object]] = [
        ("messaging.system", "rocketmq"),
        ("messaging.operation.name", operation.name),
        ("messaging.operation.type", operation.type),
        ("messaging.destination.name", row.topic or life.topic),
        ("messaging.destination.partition.id", None if row.queue_id is None else str(row.queue_id)),
        ("messaging.message.id", row.unique_key or row.offset_msg_id or life.name),
        ("messaging.message.body.size", row.body_bytes),
        ("messaging.client.id", row.client_id),
        ("messaging.consumer.group.name", row.consumer_group),
        ("messaging.rocketmq.message.keys", (row.keys or "").split() or None),
        ("messaging.rocketmq.message.tag", row.tags),
        ("messaging.rocketmq.message.type", _type(row)),
        ("messaging.rocketmq.message.delay_time_level", row.delay_level),
        ("messaging.rocketmq.message.delivery_timestamp", _millis(row.deliver_time)),
        ("server.address", server[0] if server is not None else row.server_address),
        ("server.port", server[1] if server is not None else None),
        ("client.address", row.client_address),
        ("error.type", (row.response_name or "no_response") if failed else None),
        ("rmqtool.event", row.event),
        ("rmqtool.producer_group", row.producer_group),
        ("rmqtool.broker_name", row.broker_name),
        ("rmqtool.queue_offset", row.queue_offset),
        ("rmqtool.offset_msg_id", row.offset_msg_id),
        ("rmqtool.reconsume_times", row.reconsume_times),
        ("rmqtool.capture", row.capture),
        ("rmqtool.packet", row.packet),
        ("rmqtool.words", step.words),
        ("rmqtool.why", step.why or None),
    ]
    return [_attribute(name, value) for name, value in named if value is not None]


def _type(row: MessageRecord) -> str | None:
    """Return the type of a sent message, as far as its send shows it."""
    if row.event == events.PREPARED or row.transaction_id is not None:
        return "transaction"
    if row.event in (events.STORED, events.SENT) and (
        row.delay_level or row.deliver_time is not None
    ):
        return "delay"
    return None


def _millis(time: int | None) -> int | None:
    return None if time is None else time // 1_000_000


def _attribute(name: str, value: object) -> dict[str, object]:
    return {"key": name, "value": _value(value)}


def _value(value: object) -> dict[str, object]:
    if isinstance(value, bool):  # before int, of which it is a subclass
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # JSON of protobuf: 64-bit integers are texts
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
