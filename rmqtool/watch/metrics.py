"""Metrics of a watch: counted here, exported by `exporters`.

Rules: names and attributes follow the OpenTelemetry semantic conventions for messaging if possible;
others begin with `rocketmq.` (traffic) or `rmqtool.` (watch). Attributes with many values, such as
topics, groups, and servers, are limited: further values become `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from analytics.diagnosis.problem import Problem
from analytics.diagnosis.rules.attempts.isolated_broker_still_used import ISOLATED
from dissectors.endpoint import host_and_port_text
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import offsets_in
from dissectors.rows.outcome import ALARMING, RECEIVE_CALLS, UNANSWERED, is_send
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.relays import MAX_RELAYS, Hop, Relay, hop_of, inner_hops, proven_relays
from dissectors.rows.tables import encodable

OTHER: Final = "other"
MOST_VALUES: Final = 200
"""values of one attribute"""
MOST_SERIES: Final = 2000
"""series of one metric"""
MOST_FLOWS: Final = 10_000
"""cached combinations of attribute values"""
MOST_QUEUES: Final = 10_000
MOST_SENDS: Final = 20_000
"""latest messages that are remembered to recognize retries"""
LONGEST_KEY: Final = 256
"""characters of a UNIQ_KEY that is remembered; a client's has 32"""
MOST_HOPS: Final = 16
"""latest sends of a message that are remembered"""
LAG_LASTS: Final = 600_000_000_000
"""ns after which a lag value expires"""
BOUNDS: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5),
    *(5.0, 7.5, 10.0, 30.0),
)
"""seconds: those of the conventions, and some below and above"""
TIMEOUT: Final = "timeout"
"""error.type of a request without response"""


class MetricKind(StrEnum):
    """Metric types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricDefinition(NamedTuple):
    """A metric."""

    name: str
    """name in OpenTelemetry"""
    kind: MetricKind
    unit: str
    """in UCUM"""
    text: str
    attributes: tuple[str, ...] = ()


SYSTEM, OPERATION, TYPE = (
    "messaging.system",
    "messaging.operation.name",
    "messaging.operation.type",
)
TOPIC, GROUP = "messaging.destination.name", "messaging.consumer.group.name"
HOST, PORT, ERROR = "server.address", "server.port", "error.type"
OUTCOME, RULE, SEVERITY = "rocketmq.outcome", "rmqtool.rule", "rmqtool.severity"
BROKER, INTERFACE, OUTLET = "rocketmq.broker.name", "network.interface.name", "rmqtool.outlet"
SYSTEM_NAME: Final = "rocketmq"

_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM
DURATION: Final = MetricDefinition(
    "messaging.client.operation.duration",
    _H,
    "s",
    "Time from request to response, by operation.",
    (SYSTEM, OPERATION, TYPE, TOPIC, HOST, PORT, ERROR),
)
SENT: Final = MetricDefinition(
    "messaging.client.sent.messages",
    _C,
    "{message}",
    "Messages that producers attempted to send.",
    (SYSTEM, OPERATION, TOPIC, HOST, PORT, ERROR),
)
CONSUMED: Final = MetricDefinition(
    "messaging.client.consumed.messages",
    _C,
    "{message}",
    "Messages that brokers delivered to consumers.",
    (SYSTEM, OPERATION, TOPIC, GROUP, HOST, PORT),
)
REQUESTS: Final = MetricDefinition(
    "rocketmq.requests",
    _C,
    "{request}",
    "Requests, by operation and outcome.",
    (OPERATION, OUTCOME, HOST, PORT),
)
RETRIES: Final = MetricDefinition(
    "rocketmq.send.retries", _C, "{send}", "Sends of a message that was sent before.", (TOPIC,)
)
LAG: Final = MetricDefinition(
    "rocketmq.consumer.lag",
    _G,
    "{message}",
    "Messages that a group has not fetched, by its latest pulls.",
    (TOPIC, GROUP),
)
ISOLATED_BROKERS: Final = MetricDefinition(
    "rocketmq.broker.isolated",
    _G,
    "{problem}",
    "Open problems of producers that avoid a broker.",
    (BROKER,),
)
PROBLEMS: Final = MetricDefinition(
    "rmqtool.problems", _C, "{problem}", "Problems that started.", (RULE, SEVERITY)
)
OPEN_PROBLEMS: Final = MetricDefinition(
    "rmqtool.problems.open", _G, "{problem}", "Problems that have not ended.", (RULE, SEVERITY)
)
PACKETS: Final = MetricDefinition(
    "rmqtool.packets", _C, "{packet}", "Packets that passed the capture filter."
)
DROPPED: Final = MetricDefinition(
    "rmqtool.packets.dropped", _C, "{packet}", "Packets lost before they were read."
)
RING_SIZE: Final = MetricDefinition("rmqtool.ring.size", _G, "By", "Size of the ring of packets.")
RING_LOST: Final = MetricDefinition(
    "rmqtool.ring.packets.lost", _C, "{packet}", "Packets that could not be kept in the ring."
)
INCIDENTS: Final = MetricDefinition("rmqtool.incidents", _C, "{incident}", "Incidents kept.")
INCIDENTS_FAILED: Final = MetricDefinition(
    "rmqtool.incidents.failed", _C, "{incident}", "Incidents that could not be kept."
)
INTERFACE_UP: Final = MetricDefinition(
    "rmqtool.interface.up",
    _G,
    "1",
    "Whether an interface delivers packets (1: yes, 0: no).",
    (INTERFACE,),
)
DELIVERED: Final = MetricDefinition(
    "rmqtool.deliveries", _C, "{event}", "Events delivered.", (OUTLET,)
)
DELIVERY_RETRIES: Final = MetricDefinition(
    "rmqtool.deliveries.retries", _C, "{try}", "Delivery attempts after the first.", (OUTLET,)
)
DELIVERIES_LOST: Final = MetricDefinition(
    "rmqtool.deliveries.lost", _C, "{event}", "Events that could not be delivered.", (OUTLET,)
)
MEMORY: Final = MetricDefinition("process.memory.usage", _G, "By", "Memory of the watch.")
CPU: Final = MetricDefinition("process.cpu.time", _C, "s", "CPU time of the watch.")
METRICS: Final = (
    *(DURATION, SENT, CONSUMED, REQUESTS, RETRIES, LAG, ISOLATED_BROKERS, PROBLEMS, OPEN_PROBLEMS),
    *(PACKETS, DROPPED, RING_SIZE, RING_LOST, INCIDENTS, INCIDENTS_FAILED, INTERFACE_UP),
    *(DELIVERED, DELIVERY_RETRIES, DELIVERIES_LOST, MEMORY, CPU),
)
_GROWING: Final = frozenset((TOPIC, GROUP, HOST, PORT, BROKER, OPERATION, ERROR))
_COMMIT_CODES: Final = frozenset(
    (
        int(RequestCode.UPDATE_CONSUMER_OFFSET),
        int(RequestCode.ACK_MESSAGE),
        int(RequestCode.BATCH_ACK_MESSAGE),
        int(RequestCode.CONSUMER_SEND_MSG_BACK),
    )
)
_COMMIT_CALLS: Final = frozenset(("AckMessage",))


class Distribution:
    """Values of a histogram."""

    __slots__ = ("buckets", "count", "sum")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        """values up to each bound, and above the last one"""
        self.count = 0
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Record a value."""
        self.buckets[bisect_left(BOUNDS, value)] += 1
        self.count += 1
        self.sum += value


class Count:
    """Value of a counter or gauge."""

    __slots__ = ("value",)

    def __init__(self, value: float = 0) -> None:
        self.value = value


Series = tuple[tuple[str, ...], Count | Distribution]
"""attribute values in order, and the value or distribution"""
Family = tuple[MetricDefinition, list[Series]]
Given = tuple[MetricDefinition, tuple[str, ...], float]
"""a value from outside this module: metric, attributes, value"""


class _Flow(NamedTuple):
    """The series of one kind of exchange."""

    requests: Count
    duration: Distribution
    messages: Count | None
    """of sends or deliveries"""


class TrafficMetrics:
    """Counts decoded rows; another thread may call `families` at the same time."""

    def __init__(self, others: Callable[[], Iterable[Given]]) -> None:
        """`others` returns values from outside this module."""
        self._others = others
        self._counts: dict[MetricDefinition, dict[tuple[str, ...], Count]] = {}
        self._durations: dict[tuple[str, ...], Distribution] = {}
        self._values: dict[str, set[str]] = {}
        self._flows: dict[tuple[object, ...], _Flow] = {}
        self._lags: dict[tuple[str, str, str, int], tuple[int, int]] = {}
        self._sent: dict[tuple[str, str | None], list[Hop]] = {}
        self._relays: set[Relay] = set()
        self._now = 0
        self._open: list[Problem] = []

    def add(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add exchanges."""
        flows = self._flows  # for most rows one look-up instead of one for each metric
        for row in rows:
            key = (
                row.request_name,
                row.response_name,
                row.outcome_class,
                row.topic,
                row.group,
                row.server_address,
            )
            flow = flows.get(key)
            if flow is None:
                if len(flows) >= MOST_FLOWS:
                    # Only look-ups are lost: the series stay, and are found again.
                    flows.clear()
                flow = flows[key] = self._flow_of(row)
            flow.requests.value += 1
            if row.latency_us is not None:
                flow.duration.add(row.latency_us / 1e6)
            if flow.messages is not None:
                flow.messages.value += row.message_count or 0
                self._look_closer(row)

    def note(self, now: int, started: Iterable[Problem], still_open: list[Problem]) -> None:
        """Record which problems started and which are open at `now` (ns)."""
        self._now, self._open = now, still_open
        if len(self._lags) >= MOST_QUEUES:  # expired ones must not keep out those of other groups
            self._lags = {
                key: value for key, value in self._lags.items() if now - value[1] <= LAG_LASTS
            }
        for problem in started:
            self._count(PROBLEMS, problem.rule, str(problem.severity)).value += 1

    def families(self) -> list[Family]:
        """Return all metrics with their series."""
        # Copies of the dictionaries, because the watch adds to them meanwhile.
        series: dict[MetricDefinition, list[Series]] = {item: [] for item in METRICS}
        series[DURATION] = [
            (key, item) for key, item in list(self._durations.items()) if item.count
        ]
        for metric, counts in list(self._counts.items()):
            series[metric] = list(counts.items())
        for metric, values, value in (*self._gauges(), *self._others()):
            series[metric].append((values, Count(value)))
        return list(series.items())

    def _flow_of(self, row: ExchangeRecord) -> _Flow:
        name = row.request_name or "unknown"
        topic, group = row.topic or "", row.group or ""
        host, port = host_and_port_text(row.server_address)
        code = row.request_code
        error = ""
        if row.outcome_class in ALARMING:
            error = TIMEOUT if row.outcome_class == UNANSWERED else row.response_name or ""
            error = error or f"code {row.response_code}"
        kind, messages = "", None
        if is_send(row.request_name) or code in SENDS:
            kind = "send"
            messages = self._count(SENT, SYSTEM_NAME, name, topic, host, port, error)
        elif code in FETCHES or row.request_name in RECEIVE_CALLS:
            kind = "receive"
            messages = self._count(CONSUMED, SYSTEM_NAME, name, topic, group, host, port)
        elif code in _COMMIT_CODES or row.request_name in _COMMIT_CALLS:
            kind = "settle"
        values = self._bounded(
            DURATION, self._durations, (SYSTEM_NAME, name, kind, topic, host, port, error)
        )
        duration = self._durations.get(values)
        if duration is None:
            duration = self._durations[values] = Distribution()
        requests = self._count(REQUESTS, name, row.outcome_class, host, port)
        return _Flow(requests, duration, messages)

    def _look_closer(self, row: ExchangeRecord) -> None:
        """Record metrics that only sends and fetches have."""
        if row.request_code in FETCHES:
            if row.facts and row.group:
                _, following, _, most = offsets_in(row.facts)
                if following is not None and most is not None:
                    # By broker name: a slave has the queues of its master.
                    broker = row.broker_name or row.server_address
                    key = row.topic or "", row.group, broker, row.queue_id or 0
                    if key in self._lags or len(self._lags) < MOST_QUEUES:
                        self._lags[key] = max(most - following, 0), row.response_time or 0
        elif row.request_name in RECEIVE_CALLS:
            return  # its key is that of a delivered message
        elif row.message_count and row.unique_key and len(row.unique_key) <= LONGEST_KEY:
            message = row.unique_key, row.topic
            hops = self._sent.get(message)
            if hops is not None:
                if more := self._more_attempts(hops, row):
                    self._count(RETRIES, row.topic or "").value += more
                return
            self._sent[message] = [hop_of(row)]
            if len(self._sent) > MOST_SENDS:
                # Half of them at once, because each time copies all keys.
                for old_key in list(self._sent)[: MOST_SENDS // 2]:
                    del self._sent[old_key]

    def _more_attempts(self, hops: list[Hop], row: ExchangeRecord) -> int:
        """Add a send to those of its message; return by how many its attempts grow."""
        del hops[: 1 - MOST_HOPS]
        before = len(hops) - len(inner_hops(hops, self._relays))
        hops.append(hop_of(row))
        if len(self._relays) < MAX_RELAYS:
            self._relays |= proven_relays([hops])
        # What a relay forwarded is no attempt of the client.
        return max(len(hops) - len(inner_hops(hops, self._relays)) - before, 0)

    def _gauges(self) -> list[Given]:
        gauges: list[Given] = []
        lags: dict[tuple[str, str], int] = {}
        for (topic, group, _, _), (lag, time) in list(self._lags.items()):
            if self._now - time <= LAG_LASTS:
                lags[topic, group] = lags.get((topic, group), 0) + lag
        bounded: dict[tuple[str, ...], int] = {}
        for (topic, group), lag in lags.items():
            values = self._bounded(LAG, bounded, (topic, group))
            bounded[values] = bounded.get(values, 0) + lag
        gauges += [(LAG, values, lag) for values, lag in bounded.items()]
        isolated: dict[str, int] = {}
        by_rule: dict[tuple[str, str], int] = {}
        for problem in self._open:
            key = problem.rule, str(problem.severity)
            by_rule[key] = by_rule.get(key, 0) + 1
            if problem.rule == ISOLATED:
                broker = self._value(BROKER, problem.subject.broker or problem.subject.server or "")
                isolated[broker] = isolated.get(broker, 0) + 1
        gauges += [(ISOLATED_BROKERS, (broker,), number) for broker, number in isolated.items()]
        gauges += [(OPEN_PROBLEMS, key, number) for key, number in by_rule.items()]
        return gauges

    def _count(self, metric: MetricDefinition, *values: str) -> Count:
        counts = self._counts.setdefault(metric, {})
        bounded = self._bounded(metric, counts, values)
        counter = counts.get(bounded)
        if counter is None:
            counter = counts[bounded] = Count()
        return counter

    def _bounded(
        self,
        metric: MetricDefinition,
        series: dict[tuple[str, ...], Count]
        | dict[tuple[str, ...], Distribution]
        | dict[tuple[str, ...], int],
        values: tuple[str, ...],
    ) -> tuple[str, ...]:
        """Return attribute values, with `other` for those beyond the limit."""
        pairs = zip(metric.attributes, values, strict=True)
        bounded = tuple(self._value(name, value) for name, value in pairs)
        if bounded in series or len(series) < MOST_SERIES:
            return bounded
        # Too many combinations: only those of attributes with few values stay apart.
        pairs = zip(metric.attributes, bounded, strict=True)
        return tuple(
            OTHER if name in _GROWING and value and name != OPERATION else value
            for name, value in pairs
        )

    def _value(self, name: str, value: str) -> str:
        if name not in _GROWING or not value:
            return value
        value = encodable(value)  # one lone surrogate would fail each scrape and push
        known = self._values.setdefault(name, set())
        if value in known:
            return value
        if len(known) >= MOST_VALUES:
            return OTHER
        known.add(value)
        return value
