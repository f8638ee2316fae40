"""How long the reports take and how much memory, from one to ten million exchanges.

python -m bench.reports [--millions 1,10] [--runs 1]
    [--small | --captures | --shapes | --attempts | --cluster] [--folder DIR]

Compared are `rmqtool report` with all three reports, and with latency alone, and the latency
aggregation by DuckDB and pandas on the same files. Percentiles must agree within the 0.8 % that
the reports promise. `--small` measures all reports of a small capture by the local engine, and by
Spark beside a session that answers one question; the least CPU time of the runs counts.
`--cluster` measures logs on a cluster of two workers: tasks, shuffle, memory (`cluster`).
`--captures` measures captures of up to 800 MB on a cluster of two workers (`reports_captures`),
`--shapes` logs with one hot key, with 100,000 topics, and with 100,000 clients, `--attempts` the
replay of the fault strategy over attempts of one producer (`attempts`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from analytics.sql.percentiles import PERCENTILES
from bench.measure import Measured, measure, medians

from .log import Shape, write_log

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "samples" / "fault-kill-5x.pcap"
TOLERANCE = 0.008
SMALL_LOCAL = 1.5
"""most CPU seconds of all reports of a small capture by the local engine"""
SMALL_RATIO = 2.5
"""most CPU time of the same by Spark, in that of a session with one query"""
SHAPES = {
    "hot key": Shape(hot=True),
    "many topics": Shape(topics=100_000),
    "many clients": Shape(clients=100_000),
}
OF_SHAPES = ("latency", "retries", "isolation", "overview", "quality")
"""reports that are measured with these"""
LINEAR, FLAT = 1.3, 1.6
"""most CPU per row, and most memory, of the largest log in those of the smallest"""
Command = tuple[str, list[str]]


def commands(log: Path) -> list[Command]:
    """What is measured on a log: (name, command)."""
    ours = [sys.executable, "-m", "rmqtool", "report"]
    others = [sys.executable, "-m", "bench.reports.contestants"]
    return [
        ("latency, retries, isolation", [*ours, "latency", "retries", "isolation", str(log)]),
        ("latency", [*ours, "latency", str(log), "--table", "latency", "--format", "json"]),
        ("duckdb, latency", [*others, "duckdb", str(log)]),
        ("pandas, latency", [*others, "pandas", str(log)]),
    ]


def small_commands(folder: Path) -> list[Command]:
    """What is measured of a small capture: all reports as a page, and a session with one query."""
    page = [str(SAMPLE), "-q", "--force", "-o", str(folder / "small.html")]
    reports = [sys.executable, "-m", "rmqtool", "report", *page]
    return [
        ("all reports", reports),
        ("all reports by Spark", [*reports, "--engine", "spark"]),
        ("a session and one query", [sys.executable, "-m", "bench.reports.bare"]),
    ]


def run(command: Command, folder: Path, runs: int) -> tuple[Measured, Path]:
    """Return the medians of some runs, and the output of the last."""
    name, arguments = command
    output = folder / f"{name.replace(' ', '-').replace(',', '')}.out"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = dict(os.environ, PYTHONPATH=path)
    return medians([measure(arguments, output, environment) for _ in range(runs)]), output


def differences(ours: Path, theirs: Path) -> list[str]:
    """Return where percentiles are further apart than promised."""
    (report,) = json.loads(ours.read_text())["reports"]
    rows = report["tables"]["latency"]["rows"]
    found = {
        (row["operation"], row["broker"], row["topic"], row["group"], row["client"]): [
            row["exchanges"],
            *(row[name] for name, _ in PERCENTILES),
        ]
        for row in rows
    }
    wrong = []
    for row in json.loads(theirs.read_text()):
        key, numbers = tuple(row[:5]), row[5:]
        mine = found.pop(key, None)
        if mine is None or mine[0] != numbers[0]:
            wrong.append(f"{key}: {mine} and {numbers}")
            continue
        pairs = zip(mine[1:], numbers[1:], strict=True)
        if any(abs(one - other) > TOLERANCE * other + 1 for one, other in pairs):
            wrong.append(f"{key}: {mine} and {numbers}")
    return wrong + [f"{key}: only ours" for key in found]


def show(name: str, took: Measured) -> None:
    """Print one line."""
    print(
        f"  {name:32}{took.wall:9.1f} s{took.cpu:9.1f} s CPU{took.rss:8.0f} MiB"
        f"{took.others:8.2f} others"
    )


def measure_logs(millions: Sequence[int], folder: Path, runs: int) -> int:
    """Measure logs of some sizes; return how many results were wrong."""
    wrong = 0
    grown: dict[str, list[Measured]] = {}
    for size in millions:
        log = folder / f"log-{size}m"
        write_log(log, size * 1_000_000)
        print(f"{size} million exchanges")
        outputs = {}
        for command in commands(log):
            took, outputs[command[0]] = run(command, folder, runs)
            grown.setdefault(command[0], []).append(took)
            show(command[0], took)
        for line in differences(outputs["latency"], outputs["duckdb, latency"]):
            wrong += 1
            print(f"  WRONG {line}")
    for name, figures in grown.items():
        first, last = figures[0], figures[-1]
        if len(figures) > 1:
            print(
                f"growth {name:32}{last.wall / first.wall:6.1f} times the time,"
                f"{last.rss / first.rss:6.1f} times the memory"
            )
    return wrong


def measure_small(folder: Path, runs: int) -> int:
    """Measure all reports of a small capture; return how many take longer than they should."""
    every: dict[str, list[float]] = {}
    for _ in range(runs):
        for command in small_commands(folder):
            took, _ = run(command, folder, 1)
            show(command[0], took)
            every.setdefault(command[0], []).append(took.cpu)
    local, spark, bare = (min(figures) for figures in every.values())
    print(f"  {spark / bare:.2f} times the CPU of a session and one query")
    return int(local > SMALL_LOCAL) + int(spark > SMALL_RATIO * bare)


def measure_shapes(folder: Path, millions: Sequence[int], engine: str) -> int:
    """Measure logs with a hot key, many topics, many clients; return how many grow too fast."""
    wrong = 0
    for name, shape in SHAPES.items():
        took = []
        for size in millions:
            log = folder / f"log-{size}m-{name.replace(' ', '-')}"
            write_log(log, size * 1_000_000, shape)
            ours = [sys.executable, "-m", "rmqtool", "report", *OF_SHAPES, str(log), "-q"]
            found, _ = run((name, [*ours, "--engine", engine]), folder, 1)
            show(f"{size} million, {name}", found)
            took.append(found)
        wrong += grows_too_fast(millions, took)
    return wrong


def measure_attempts(folder: Path, millions: Sequence[int]) -> int:
    """Measure the replay of one producer; return 1 if it grows too fast."""
    took = []
    for size in millions:
        command = [sys.executable, "-m", "bench.reports.attempts", str(size * 1_000_000)]
        found, _ = run(("attempts", command), folder, 1)
        show(f"{size} million attempts of one producer", found)
        took.append(found)
    return grows_too_fast(millions, took)


def grows_too_fast(millions: Sequence[int], took: Sequence[Measured]) -> bool:
    """Print by how much CPU and memory grow, and return whether that is too much."""
    rows = millions[-1] / millions[0]
    cpu, memory = took[-1].cpu / took[0].cpu, took[-1].rss / took[0].rss
    print(f"  {rows:.1f} times the rows: {cpu:.1f} times the CPU, {memory:.1f} the memory")
    return cpu > LINEAR * rows or memory > FLAT


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", default="1,10")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--captures", action="store_true")
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--attempts", action="store_true")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--engine", default="local", help="of --shapes")
    parser.add_argument("--packets", type=int, default=1_070_000, help="of --captures")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "rmqtool-bench"
    )
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if chosen.small:
        return measure_small(chosen.folder, chosen.runs)
    if chosen.captures:
        from .captures import measure_captures

        return measure_captures(chosen.folder, chosen.packets)
    millions = [int(text) for text in chosen.millions.split(",")]
    if chosen.cluster:
        from .cluster import measure_cluster

        return measure_cluster(chosen.folder, millions)
    if chosen.shapes:
        return measure_shapes(chosen.folder, millions, chosen.engine)
    if chosen.attempts:
        return measure_attempts(chosen.folder, millions)
    return min(1, measure_logs(millions, chosen.folder, chosen.runs))


if __name__ == "__main__":
    sys.exit(main())
