"""Traces are what OpenTelemetry's own protobuf reads, with the names of its conventions."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from analytics.life.otlp import otlp_of

from .lives import lives_in

pytest.importorskip("opentelemetry.proto", reason="opentelemetry-proto is not installed")

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

_IDS = {"traceId", "spanId", "parentSpanId"}


def _with_protobuf_ids(value: Any) -> Any:
    """OTLP in JSON has ids in hex, where protobuf's own JSON has base64: the only difference."""
    if isinstance(value, dict):
        return {
            name: base64.b64encode(bytes.fromhex(one)).decode()
            if name in _IDS
            else _with_protobuf_ids(one)
            for name, one in value.items()
        }
    return [_with_protobuf_ids(one) for one in value] if isinstance(value, list) else value


def parsed(*names: str, key: str | None = None, where: str = "") -> Any:
    text = json.dumps(otlp_of(lives_in(*names, key=key, where=where), "1.2.3"))
    request = ExportTraceServiceRequest()
    Parse(json.dumps(_with_protobuf_ids(json.loads(text))), request)  # unknown fields raise
    return request


def _spans(request: Any) -> list[Any]:
    return [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]


def _attributes(span: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}


def test_a_message_is_one_trace() -> None:
    request = parsed("stored-twice-5x.pcap", key="key-5")
    spans = _spans(request)
    assert len({span.trace_id for span in spans}) == 1
    assert {len(span.trace_id) for span in spans} == {16}
    assert {len(span.span_id) for span in spans} == {8}
    assert len({span.span_id for span in spans}) == len(spans)
    (root,) = [span for span in spans if not span.parent_span_id]
    assert {span.parent_span_id for span in spans if span is not root} == {root.span_id}
    assert root.start_time_unix_nano == min(span.start_time_unix_nano for span in spans)
    for span in spans:
        assert span.end_time_unix_nano >= span.start_time_unix_nano
        values = _attributes(span)
        assert values["messaging.system"] == "rocketmq"
        assert values["messaging.operation.name"] in span.name
        assert values["messaging.message.id"] == "C000020A06964E0E2F2A6E0517750005"
        assert values["server.port"] in (10911, 10921)
        assert values["rmqtool.packet"] > 0
    by_name = {span.name: span for span in spans}
    assert by_name["send TwiceTopic"].kind == Span.SPAN_KIND_PRODUCER
    assert by_name["receive TwiceTopic"].kind == Span.SPAN_KIND_CLIENT
    sent = [span for span in spans if span.name == "send TwiceTopic"]
    assert [span.status.code for span in sorted(sent, key=lambda s: s.start_time_unix_nano)] == [
        Status.STATUS_CODE_ERROR,
        Status.STATUS_CODE_UNSET,
    ]
    services = {
        a.value.string_value
        for r in request.resource_spans
        for a in r.resource.attributes
        if a.key == "service.name"
    }
    assert "twice_group" in services


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("push-retry-dlq-4x.pcap", "has unique_key"),
        ("transaction-5x.pcap", "has unique_key"),
        ("pop-calls-5x.pcap", "event == delivered"),
        ("request-reply-5x.pcap", "has unique_key"),
        ("send-timer-5x.pcap", "has unique_key"),
        ("send-batch-5x.pcap", "has unique_key"),
        ("fault-disk-full-5x.pcap", "event == refused"),
        ("return-failed-5x.pcap", "event == refused"),
        ("admin-5x.pcap", "event == viewed"),
        ("ipv6-5x.pcap", "has unique_key"),
    ],
)
def test_every_step_becomes_a_valid_span(name: str, where: str) -> None:
    lives = lives_in(name, where=where)
    spans = _spans(parsed(name, where=where))
    assert len(spans) == sum(len(life.steps) for life in lives)
    assert len({span.trace_id for span in spans}) == len(lives) > 0
    types = {_attributes(span).get("messaging.operation.type") for span in spans}
    assert types <= {"create", "send", "receive", "process", "settle", None}
    assert parsed(name, where=where) == parsed(name, where=where)


def test_what_a_proxy_asks_is_a_service_of_its_own() -> None:
    request = parsed("grpc-python-5x.pcap", key="014E6B407878BD01B60B156F2600000000")
    services = {
        one.resource.attributes[0].value.string_value: len(one.scope_spans[0].spans)
        for one in request.resource_spans
    }
    assert services.pop("127.77.0.71:18081") == 3
    assert services.pop("python-simple") == 2
    ((producer, sends),) = services.items()
    assert "@" in producer
    assert sends == 1
