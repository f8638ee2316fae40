"""Metrics exporters: a Prometheus endpoint with `/healthz`, and OTLP pushes.

Rules: both export the same families, in separate threads. The endpoint listens on the given
address and limits concurrent requests. OTLP is pushed only to the given URL: redirects are
failures, and proxy settings of the environment are ignored.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from dissectors.endpoint import endpoint_text

from ..ui.errors import reason_of
from ..ui.extras import require
from ..ui.status import CommandError
from ..version import VERSION
from .metrics import BOUNDS, Distribution, Family, MetricDefinition, MetricKind

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData
    from prometheus_client import Metric

EXTRA: Final = "watch"
PATH: Final = "/v1/metrics"
"""default path of a collector, for a URL without path"""
MOST_REQUESTS: Final = 8
"""requests that are served at a time"""
PATIENCE: Final = 5.0
"""timeout of a client of the endpoint in seconds"""
TIMEOUT: Final = 10.0
"""timeout of a push in seconds"""
_UNITS: Final = {"s": "seconds", "By": "bytes", "1": ""}
Families = Callable[[], list[Family]]


def prometheus_name(metric: MetricDefinition) -> str:
    """Return the name of a metric in Prometheus, without `_total`."""
    unit = _UNITS.get(metric.unit, "")
    return metric.name.replace(".", "_") + (f"_{unit}" if unit else "")


class _Collector:
    """Converts families to those of `prometheus_client`."""

    def __init__(self, families: Families) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        for metric, series in self._families():
            name = prometheus_name(metric)
            labels = [name.replace(".", "_") for name in metric.attributes]
            if metric.kind is MetricKind.HISTOGRAM:
                family = HistogramMetricFamily(name, metric.text, labels=labels)
                for values, value in series:
                    assert isinstance(value, Distribution)
                    family.add_metric(values, _cumulated(value), value.sum)
                yield family
                continue
            kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
            plain = kind(name, metric.text, labels=labels)
            for values, value in series:
                assert not isinstance(value, Distribution)
                plain.add_metric(values, value.value)
            yield plain


def _cumulated(distribution: Distribution) -> list[tuple[str, float]]:
    # Prometheus counts all values up to a bound. A copy, because the watch counts on meanwhile.
    total, buckets = 0, []
    for bound, number in zip((*map(str, BOUNDS), "+Inf"), list(distribution.buckets), strict=True):
        total += number
        buckets.append((bound, float(total)))
    return buckets


class _Handler(WSGIRequestHandler):
    """A request handler without a log on standard error."""

    timeout = PATIENCE

    def log_message(self, format: str, *args: Any) -> None:
        pass


class MetricsServer:
    """Serves `/metrics` and `/healthz`."""

    def __init__(
        self,
        address: tuple[str, int],
        families: Families,
        health: Callable[[], tuple[bool, dict[str, object]]],
    ) -> None:
        """`health` returns whether the watch is healthy, and its facts.

        Raise CommandError if the library is missing or the address cannot be used.
        """
        require("--metrics", EXTRA, "prometheus_client")
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector(families))
        metrics = make_wsgi_app(registry)
        places = threading.BoundedSemaphore(MOST_REQUESTS)
        families_of_addresses = type(ThreadingWSGIServer.address_family)

        class Server(ThreadingWSGIServer):  # type: ignore[misc]
            """A server with a limit on concurrent requests."""

            # The base class has that of IPv4.
            address_family = families_of_addresses["AF_INET6" if ":" in address[0] else "AF_INET"]
            daemon_threads = True
            # At the end, a slow client must not hold up the watch.
            block_on_close = False

            def process_request(self, request: Any, client_address: Any) -> None:
                if not places.acquire(blocking=False):
                    self.shutdown_request(request)
                    return
                try:
                    super().process_request(request, client_address)
                except BaseException:  # no thread could be started, which would release the place
                    places.release()
                    raise

            def process_request_thread(self, request: Any, client_address: Any) -> None:
                try:
                    super().process_request_thread(request, client_address)
                finally:
                    places.release()

            def handle_error(self, _request: Any, _client_address: Any) -> None:
                """Ignore the error: the client disconnected."""

        def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            path = environ.get("PATH_INFO", "")
            if path in ("/", "/metrics"):
                return metrics(environ, start)  # type: ignore[no-any-return]
            if path != "/healthz":
                start("404 Not Found", [("Content-Type", "text/plain")])
                return [b"/metrics or /healthz\n"]
            works, facts = health()
            status = "200 OK" if works else "503 Service Unavailable"
            start(status, [("Content-Type", "application/json")])
            return [json.dumps({"status": "ok" if works else "failing", **facts}).encode() + b"\n"]

        host, port = address
        try:
            self._server = make_server(host, port, serve, Server, handler_class=_Handler)
        except OSError as error:
            place = endpoint_text(host, port)
            raise CommandError(f"--metrics: {place}: {reason_of(error)}") from None
        self.port: int = self._server.server_port
        """port that it listens on"""
        thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        thread.start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


class OtlpPusher:
    """Pushes metrics at an interval."""

    def __init__(self, url: str, families: Families, interval: float) -> None:
        """`interval` in seconds. Raise CommandError if a library is missing."""
        require("--otlp", EXTRA, "opentelemetry", "requests")
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        except ImportError:  # `opentelemetry` is a namespace of several packages
            require("--otlp", EXTRA, "opentelemetry.exporter.otlp.proto.http")
            raise
        import requests

        session = requests.Session()
        session.max_redirects = 0
        session.trust_env = False  # no proxies, and no passwords of .netrc
        # Failed pushes are counted; the library would also print each.
        logs = logging.getLogger("opentelemetry")
        logs.addHandler(logging.NullHandler())
        logs.propagate = False
        scheme, _, rest = url.partition("://")
        has_path = "/" in rest.rstrip("/")
        self.pushed = 0
        self.failed = 0
        self._exporter = OTLPMetricExporter(
            url if has_path else f"{scheme}://{rest.rstrip('/')}{PATH}",
            timeout=TIMEOUT,
            session=session,
        )
        self._families = families
        self._interval = interval
        self._begin = time.time_ns()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Push a last time and stop."""
        self._end.set()
        self._thread.join(TIMEOUT)

    def _run(self) -> None:
        from opentelemetry.sdk.metrics.export import MetricExportResult

        while True:
            ended = self._end.wait(self._interval)
            try:
                result = self._exporter.export(
                    metrics_data(self._families(), self._begin, time.time_ns()),
                    timeout_millis=TIMEOUT * 1000,
                )
            except Exception:  # any library error: the next push may succeed
                result = MetricExportResult.FAILURE
            if result is MetricExportResult.SUCCESS:
                self.pushed += 1
            else:
                self.failed += 1
            if ended:
                self._exporter.shutdown()
                return


def metrics_data(families: Iterable[Family], begin: int, now: int) -> MetricsData:
    """Return families in OTLP form; times in ns since the epoch."""
    from opentelemetry.sdk.metrics import export
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    metrics = []
    total = export.AggregationTemporality.CUMULATIVE
    for metric, series in families:
        points = []
        for values, point in series:
            pairs = zip(metric.attributes, values, strict=True)
            attributes = {name: value for name, value in pairs if value}
            if isinstance(point, Distribution):
                buckets = list(point.buckets)  # the watch counts on meanwhile
                nothing: Any = None  # minimum and maximum, which are optional in OTLP, are not kept
                points.append(
                    export.HistogramDataPoint(
                        attributes,
                        begin,
                        now,
                        sum(buckets),
                        point.sum,
                        buckets,
                        BOUNDS,
                        nothing,
                        nothing,
                    )
                )
            else:
                points.append(export.NumberDataPoint(attributes, begin, now, point.value))
        data: Any
        if metric.kind is MetricKind.HISTOGRAM:
            data = export.Histogram(points, total)
        elif metric.kind is MetricKind.COUNTER:
            data = export.Sum(points, total, True)
        else:
            data = export.Gauge(points)
        if points:
            metrics.append(export.Metric(metric.name, metric.text, metric.unit, data))
    scope = InstrumentationScope("rmqtool", VERSION)
    resource = Resource({"service.name": "rmqtool-watch", "service.version": VERSION})
    inside = export.ScopeMetrics(scope, metrics, "")
    return export.MetricsData([export.ResourceMetrics(resource, [inside], "")])
