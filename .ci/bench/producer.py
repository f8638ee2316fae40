"""Our producer beside the Java client, on the same real broker, in the same run.

Rules: each client is a process of its own and warms up before it is measured; rounds alternate, and
the median of the rounds is told, with the CPU time of the client's process. A synchronous send ends
what is sent oneway, so that its rate is that at which the broker reads; how many it stored is told.
`python -m bench.producer [ROUNDS]`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.cluster.clients.clients import run_java
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster

ROOT = Path(__file__).resolve().parents[2]
NETWORK = "127.77.7"
ROUNDS = 3
GET_MAX_OFFSET = 30
QUEUES = 4
BROKER = {
    # As a broker is by default; the small files of test clusters would be what is measured.
    "mappedFileSizeCommitLog": 256 * 1024 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 300_000,
    "sendMessageThreadPoolNums": 2,
    "pullMessageThreadPoolNums": 1,
}


class Case(NamedTuple):
    """What is measured."""

    kind: str
    """sync, async or oneway"""
    in_flight: int
    body: int
    """bytes"""
    warm: int
    """messages before"""
    messages: int
    """messages that are measured"""

    @property
    def name(self) -> str:
        """How it is called in the table."""
        flight = f" {self.in_flight} in flight" if self.in_flight > 1 else ""
        return f"{self.kind}{flight}, {self.body} B"


CASES = tuple(
    Case(kind, in_flight, body, warm, count)
    for body in (100, 1024)
    for kind, in_flight, warm, count in (
        ("sync", 1, 10_000, 10_000),
        ("async", 64, 40_000, 60_000),
        ("async", 1024, 40_000, 60_000),
        ("oneway", 1, 20_000, 40_000),
        ("oneway", 64, 20_000, 40_000),
    )
)


class Figures(NamedTuple):
    """What came of one case with one client: medians of the rounds."""

    rate: float
    """messages a second"""
    p50: float
    """µs"""
    p99: float
    """µs"""
    cpu_us: float
    """CPU time of the client a message, µs"""
    failed: int
    """messages that failed, or did not arrive, in all rounds"""


class Row(NamedTuple):
    """One case, both clients."""

    case: Case
    ours: Figures
    java: Figures


def _ours(cluster: Cluster, topic: str, case: Case) -> dict[str, float]:
    arguments = [cluster.namesrv_text, topic, case.kind, *map(str, case[1:])]
    command = [sys.executable, "-m", "bench.producer_client", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return dict(json.loads(done.stdout))


def _java(cluster: Cluster, topic: str, case: Case) -> dict[str, float]:
    printed = run_java(
        "SendBench",
        cluster.namesrv_text,
        topic=topic,
        kind=case.kind,
        in_flight=case.in_flight,
        body=case.body,
        warm=case.warm,
        count=case.messages,
        hosted=False,
        timeout=300.0,
    )
    line = next(line for line in printed.splitlines() if line.startswith("{"))
    return dict(json.loads(line))


def _stored(cluster: Cluster, topic: str) -> int:
    """Messages that the broker has of a topic."""
    total = 0
    for queue in range(QUEUES):
        fields = {"topic": topic, "queueId": str(queue)}
        header, _ = probe.ask(cluster.brokers[0].address, GET_MAX_OFFSET, fields)
        extra = header["extFields"]
        assert isinstance(extra, dict)
        total += int(extra["offset"])
    return total


def _run(
    cluster: Cluster,
    client: Callable[[Cluster, str, Case], dict[str, float]],
    topic: str,
    case: Case,
) -> dict[str, float]:
    before = _stored(cluster, topic)
    figures = client(cluster, topic, case)
    expected = before + case.warm + case.messages + (2 if case.kind == "oneway" else 0)
    for _ in range(100):
        missing = expected - _stored(cluster, topic)
        if missing <= 0:
            break
        time.sleep(0.1)
    figures["failed"] = max(figures["failed"], missing)
    return figures


def _medians(case: Case, rounds: list[dict[str, float]]) -> Figures:
    def median(value: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(map(value, rounds))

    return Figures(
        median(lambda one: case.messages / one["seconds"]),
        median(lambda one: one["p50"]),
        median(lambda one: one["p99"]),
        median(lambda one: one["cpu"] * 1e6 / case.messages),
        int(sum([one["failed"] for one in rounds])),
    )


def measure(rounds: int = ROUNDS, cases: tuple[Case, ...] = CASES) -> list[Row]:
    """The cases on a broker of its own; takes minutes. Raises Unavailable without Java."""
    rows = []
    with Cluster([BrokerSpec(settings=BROKER)], version=NEWEST_5, network=NETWORK) as cluster:
        cluster.make_topic("Bench", queues=QUEUES)
        for case in cases:
            found: dict[str, list[dict[str, float]]] = {"ours": [], "java": []}
            for _ in range(rounds):
                found["ours"].append(_run(cluster, _ours, "Bench", case))
                found["java"].append(_run(cluster, _java, "Bench", case))
            ours, java = (_medians(case, found[name]) for name in ("ours", "java"))
            rows.append(Row(case, ours, java))
            print(line_of(rows[-1]), flush=True)
    return rows


HEAD = (
    "| case | ours/s | Java/s | ratio | p50 ours | p50 Java | p99 ours | p99 Java "
    "| CPU ours | CPU Java | missing |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def line_of(row: Row) -> str:
    """A row as Markdown; times are µs, CPU is µs a message."""
    case, ours, java = row
    cells = (
        case.name,
        f"{ours.rate:,.0f}",
        f"{java.rate:,.0f}",
        f"{ours.rate / java.rate:.2f}",
        *(f"{value:,.0f}" for value in (ours.p50, java.p50, ours.p99, java.p99)),
        f"{ours.cpu_us:.1f}",
        f"{java.cpu_us:.1f}",
        f"{ours.failed} / {java.failed}",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} before; medians of {rounds} rounds; µs")
    print(HEAD, flush=True)
    measure(rounds)


if __name__ == "__main__":
    main()
