"""Metrics: right figures, bounded labels, an endpoint that serves them, a dashboard that fits."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.rows.record import ExchangeRecord
from rmqtool.ui.status import CommandError
from rmqtool.watch import metrics as of
from rmqtool.watch.exporters import MOST_REQUESTS, MetricsServer, prometheus_name
from rmqtool.watch.metrics import METRICS, Count, Distribution, MetricKind, TrafficMetrics
from tests.analytics.diagnosis.made_rows import START, exchange

from ..command import PROGRAM, ROOT
from .test_replayed import SAMPLE

pytestmark = pytest.mark.slow
SAMPLE_NAME = str(SAMPLE)


def figures(metrics: TrafficMetrics, metric: of.MetricDefinition) -> dict[tuple[str, ...], float]:
    """The series of a metric; of a histogram their counts."""
    series = dict(metrics.families())[metric]
    return {key: one.value if isinstance(one, Count) else one.count for key, one in series}


def prometheus_names(metric: of.MetricDefinition) -> list[str]:
    """Return the names of all samples of a metric."""
    name = prometheus_name(metric)
    if metric.kind is MetricKind.COUNTER:
        return [f"{name}_total"]
    if metric.kind is MetricKind.HISTOGRAM:
        return [f"{name}_{part}" for part in ("bucket", "count", "sum")]
    return [name]


def of_sample(name: str) -> TrafficMetrics:
    metrics = TrafficMetrics(list)
    for rows in Decode([str(ROOT / "samples" / name)]).records():
        metrics.add(rows)
        metrics.note(max([row.response_time or 0 for row in rows] or [0]), [], [])
    return metrics


def test_requests_outcomes_latencies_and_retries_are_counted() -> None:
    metrics = of_sample("busy-send-queue-5x.pcap")
    rows = [row for batch in Decode([SAMPLE_NAME]).records() for row in batch]
    assert sum(figures(metrics, of.REQUESTS).values()) == len(rows) == 41
    refused = {key: n for key, n in figures(metrics, of.REQUESTS).items() if key[1] == "failed"}
    assert sum(refused.values()) == 20
    answered = [row.latency_us for row in rows if row.latency_us is not None]
    durations = [one for _, one in dict(metrics.families())[of.DURATION]]
    assert sum(one.count for one in durations) == len(answered)
    total = sum(one.sum for one in durations if isinstance(one, Distribution))
    assert total == pytest.approx(sum(answered) / 1e6)
    sends = [row for row in rows if row.unique_key is not None]
    again = len(sends) - len({row.unique_key for row in sends})
    assert figures(metrics, of.RETRIES) == {("BusyTopic",): again}
    (errors,) = {key[-1] for key in figures(metrics, of.SENT) if key[-1]}
    assert errors == "SYSTEM_BUSY"


def test_keys_that_are_remembered_are_short() -> None:
    metrics = TrafficMetrics(list)
    rows = [row for batch in Decode([SAMPLE_NAME]).records() for row in batch]
    for row in rows:
        if row.unique_key is not None:
            row.unique_key += "x" * of.LONGEST_KEY
    metrics.add(rows)
    assert figures(metrics, of.RETRIES) == {}


def test_what_a_proxy_forwards_is_no_retry() -> None:
    metrics = of_sample("grpc-send-5x.pcap")
    assert sum(figures(metrics, of.SENT).values()) == 24  # 12 calls, each forwarded
    assert figures(metrics, of.RETRIES) == {}


def test_a_message_that_a_grpc_client_receives_again_is_no_retry() -> None:
    metrics = of_sample("grpc-redelivered-5x.pcap.gz")
    assert sum(figures(metrics, of.CONSUMED).values()) == 28
    assert figures(metrics, of.RETRIES) == {}


def test_lag_is_what_the_latest_pulls_say() -> None:
    lags = figures(of_sample("consumer-lag-5x.pcap"), of.LAG)
    assert lags
    assert max(lags.values()) > 50


def pull(number: int, group: str, behind: int, **values: Any) -> ExchangeRecord:
    facts = [f"offsets=100 100 0 {100 + behind}"]
    return exchange(number, 11, topic="t", group=group, queue_id=1, facts=facts, **values)


def test_the_lag_of_a_queue_counts_once_for_master_and_slave() -> None:
    metrics = TrafficMetrics(list)
    metrics.add([pull(0, "g", 70, broker_name="broker-a", server_address="10.0.0.1:10911")])
    metrics.add([pull(1, "g", 50, broker_name="broker-a", server_address="10.0.0.2:10911")])
    metrics.note(START, [], [])
    assert figures(metrics, of.LAG) == {("t", "g"): 50}


def test_expired_lags_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of, "MOST_QUEUES", 10)
    metrics = TrafficMetrics(list)
    metrics.add([pull(0, f"g{number}", 50) for number in range(10)])
    metrics.note(START + 2 * of.LAG_LASTS, [], [])
    metrics.add([pull(2 * of.LAG_LASTS // 1_000_000, "late", 50)])
    assert figures(metrics, of.LAG) == {("t", "late"): 50}


def test_labels_are_bounded() -> None:
    metrics = TrafficMetrics(list)
    for number in range(5000):
        metrics.add([exchange(number, 310, 0, topic=f"topic-{number}", message_count=1)])
    sent = figures(metrics, of.SENT)
    topics = {key[2] for key in sent}
    assert len(topics) == of.MOST_VALUES + 1
    assert sum(n for key, n in sent.items() if key[2] == of.OTHER) == 5000 - of.MOST_VALUES
    assert sum(sent.values()) == 5000


def test_operations_without_a_name_make_few_series() -> None:
    metrics = TrafficMetrics(list)
    for number in range(of.MOST_SERIES):
        address = f"10.0.0.{number // 100}:{number % 100}"
        metrics.add([exchange(number, 310, server_address=address)])
    for number in range(of.MOST_SERIES):
        metrics.add([exchange(number, 40_000 + number)])
    series = figures(metrics, of.DURATION)
    assert len(series) <= of.MOST_SERIES + of.MOST_VALUES + 1
    assert sum(series.values()) == 2 * of.MOST_SERIES


def test_labels_can_be_encoded() -> None:
    metrics = TrafficMetrics(list)
    metrics.add([exchange(0, 310, topic="a\ud800b", message_count=1)])
    assert {key[2] for key in figures(metrics, of.SENT)} == {"a?b"}


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A watch over a pipe that stays open, and the URL of its metrics."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*PROGRAM, "watch", "-", "-T", "jsonl", "--metrics", f"127.0.0.1:{port}", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as running:
        try:
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write(SAMPLE.read_bytes())
            running.stdin.flush()
            while b'"rule":"send-queue-timeout"' not in running.stdout.readline():
                assert running.poll() is None
            yield running, f"http://127.0.0.1:{port}"
        finally:
            running.terminate()
            running.communicate(timeout=60)


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_endpoint_serves_metrics_and_health() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    with serving() as (_, url):
        status, text = get(f"{url}/metrics")
        health = get(f"{url}/healthz")
        missing, _ = get(f"{url}/nothing")
    assert (status, missing) == (200, 404)
    assert health[0] == 200
    assert json.loads(health[1])["status"] == "ok"
    samples: dict[str, float] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            samples[sample.name] = samples.get(sample.name, 0) + sample.value
    assert samples["rocketmq_requests_total"] > 20
    assert samples["rmqtool_problems_open"] >= 1
    assert samples["process_memory_usage_bytes"] > 1_000_000
    assert set(samples) <= {name for one in METRICS for name in prometheus_names(one)}
    labels = re.search(r'messaging_system="rocketmq"', text)
    assert labels is not None


def test_a_thread_that_cannot_start_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client")

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    server = MetricsServer(("127.0.0.1", 0), list, lambda: (True, {}))
    url = f"http://127.0.0.1:{server.port}/healthz"
    try:
        with monkeypatch.context() as change:
            change.setattr(threading.Thread, "start", refuse)
            for _ in range(MOST_REQUESTS + 1):
                with pytest.raises((ConnectionError, urllib.error.URLError)):
                    get(url)
        assert get(url)[0] == 200
    finally:
        server.close()


def test_the_endpoint_can_listen_on_ipv6() -> None:
    pytest.importorskip("prometheus_client")
    try:
        server = MetricsServer(("::1", 0), list, lambda: (True, {}))
    except CommandError as error:
        if "for hostname" in str(error):  # of the address, not of the machine
            raise
        pytest.skip(f"no IPv6: {error}")
    try:
        assert get(f"http://[::1]:{server.port}/healthz")[0] == 200
        with pytest.raises(CommandError, match=re.escape(f"[::1]:{server.port}: ")):
            MetricsServer(("::1", server.port), list, lambda: (True, {}))
    finally:
        server.close()


def test_metrics_are_pushed_as_otlp() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    pytest.importorskip("prometheus_client")
    from http.server import BaseHTTPRequestHandler, HTTPServer

    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

    requests: list[tuple[str, Any]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = ExportMetricsServiceRequest()
            given.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, given))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with serving("--otlp", f"http://127.0.0.1:{server.server_port}", "--otlp-interval", "1s"):
        pass
    server.shutdown()
    server.server_close()
    path, given = requests[-1]
    assert path == "/v1/metrics"
    (resource,) = given.resource_metrics
    found = {one.name: one for one in resource.scope_metrics[0].metrics}
    assert found["messaging.client.operation.duration"].unit == "s"
    points = found["messaging.client.operation.duration"].histogram.data_points
    assert sum(one.count for one in points) > 20
    assert all(sum(one.bucket_counts) == one.count for one in points)
    assert not any(one.HasField("min") or one.HasField("max") for one in points)  # not known
    assert sum(one.as_int for one in found["rocketmq.requests"].sum.data_points) > 20


def test_names_are_those_of_the_conventions() -> None:
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.metrics.messaging_metrics")
    known = {value for name, value in vars(conventions).items() if name.isupper()}
    ours = {one.name for one in METRICS if one.name.startswith("messaging.")}
    assert ours <= known
    attributes = pytest.importorskip(
        "opentelemetry.semconv._incubating.attributes.messaging_attributes"
    )
    known = {value for name, value in vars(attributes).items() if name.isupper()}
    ours = {name for one in METRICS for name in one.attributes if name.startswith("messaging.")}
    assert ours <= known


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    dashboard = json.loads((ROOT / "examples" / "watch" / "grafana-dashboard.json").read_text())
    names = {name for one in METRICS for name in prometheus_names(one)}
    labels = {name.replace(".", "_") for one in METRICS for name in one.attributes}
    labels |= {"le", "instance", "job"}
    panels = [one for one in dashboard["panels"] if one["type"] != "row"]
    assert len({one["id"] for one in dashboard["panels"]}) == len(dashboard["panels"])
    expressions = [target["expr"] for one in panels for target in one["targets"]]
    assert len(expressions) >= 10
    for text in expressions:
        plain = re.sub(r'"[^"]*"', "", text)
        asked = set(re.findall(r"\b(?:messaging|rocketmq|rmqtool|process)_[a-z_]+", plain))
        assert asked, text
        assert asked <= names | labels, text
        for group in re.findall(r"\{([^}]*)\}|by \(([^)]*)\)", plain):
            for name in re.findall(r"[a-z_]+", " ".join(group)):
                assert name in labels, (name, text)


def test_the_document_lists_each_metric() -> None:
    document = (ROOT / "docs" / "watch.md").read_text()
    for one in METRICS:
        attributes = ", ".join(f"`{name}`" for name in one.attributes) or "–"
        text = one.text.rstrip(".")
        assert f"| `{one.name}` | {one.kind} | {one.unit} | {text} | {attributes} |" in document
