"""Reports on a standalone cluster of two workers with one core each: tasks, shuffle, memory, CPU.

What Spark's tasks did is from its event log. CPU of the driver and of Python workers, and the
largest resident sets, are read from /proc while the report runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.analytics.spark.standalone import ROOT, standalone_cluster

from .log import write_log

FEW = 50
"""Records of a task that does next to nothing."""
REPORTS = (("latency",), ("latency", "retries", "isolation"), ("diagnosis",))
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Took:
    """What a report took."""

    wall: float = 0.0
    tasks: int = 0
    tiny: int = 0
    """tasks that read records, and few of them"""
    shuffled: int = 0
    """bytes written for shuffles"""
    read: int = 0
    """records read from files"""
    java: float = 0.0
    """CPU seconds of executors' Java in tasks"""
    stages: dict[str, list[float]] = field(default_factory=dict)
    """name -> number of tasks, seconds of tasks, of the longest one"""
    cpu: dict[str, float] = field(default_factory=dict)
    """kind of process -> CPU seconds"""
    peak: dict[str, int] = field(default_factory=dict)
    """kind of process -> largest resident set, MiB"""


def measure_cluster(folder: Path, millions: Sequence[int]) -> int:
    """Measure logs of some sizes; print a line for each, and its longest stages."""
    with standalone_cluster(folder, "3g") as master:
        for size in millions:
            log = folder / f"log-{size}m"
            write_log(log, size * 1_000_000)
            for reports in REPORTS:
                show(f"{size} million, {', '.join(reports)}", run(master, reports, log, folder))
    return 0


def run(master: str, reports: Sequence[str], log: Path, folder: Path) -> Took:
    """Run some reports of a log on a cluster; return what it took."""
    events = folder / "events"
    shutil.rmtree(events, ignore_errors=True)
    events.mkdir()
    settings = (
        "spark.executor.memory=2g",
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{events}",
        "spark.eventLog.rolling.enabled=false",
        "spark.eventLog.compress=false",
    )
    command = [sys.executable, "-m", "rmqtool", "report", *reports, str(log), "-q", "--force"]
    command += ["--master", master, "--memory", "2g", "-o", str(folder / "cluster-report")]
    command += [part for one in settings for part in ("--conf", one)]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    took, start = Took(), time.monotonic()
    with subprocess.Popen(command, env=environment) as process:
        watch(process, took)
    assert process.returncode == 0
    took.wall = time.monotonic() - start
    for file in events.iterdir():
        read_events(file, took)
    return took


def watch(process: subprocess.Popen[bytes], took: Took) -> None:
    """Note CPU time and memory of driver and Python workers until the driver ends."""
    seen: dict[int, tuple[str, float, int]] = {}
    while process.poll() is None:
        for pid, kind in processes(process.pid):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            high = status.partition("VmHWM:")[2].split()
            cpu = (int(stat[11]) + int(stat[12])) / _TICKS
            seen[pid] = (kind, cpu, int(high[0]) // 1024 if high else 0)
        time.sleep(0.5)
    for kind, cpu, high in seen.values():
        took.cpu[kind] = took.cpu.get(kind, 0.0) + cpu
        took.peak[kind] = max(took.peak.get(kind, 0), high)


def processes(driver: int) -> Iterator[tuple[int, str]]:
    """Yield the processes of the report: of the driver, executors, Python workers."""
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if int(name) == driver:
            yield driver, "driver, Python"
        elif b"CoarseGrainedExecutorBackend" in command:
            yield int(name), "executor, Java"
        elif b"pyspark.daemon" in command and sys.executable.encode() in command:
            yield int(name), "worker, Python"
        elif b"SparkSubmit" in command and parent_of(name) == driver:
            yield int(name), "driver, Java"


def parent_of(pid: str) -> int:
    """Return the parent of a process; 0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def read_events(file: Path, took: Took) -> None:
    """Add what tasks did by Spark's event log."""
    names: dict[int, str] = {}
    for line in file.open():
        event = json.loads(line)
        if event["Event"] == "SparkListenerStageSubmitted":
            info = event["Stage Info"]
            names[info["Stage ID"]] = info["Stage Name"]
        if event["Event"] != "SparkListenerTaskEnd":
            continue
        metrics = event.get("Task Metrics") or {}
        took.tasks += 1
        took.java += metrics.get("Executor CPU Time", 0) / 1e9
        took.shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        inputs = metrics["Input Metrics"]["Records Read"]
        took.read += inputs
        records = inputs + metrics["Shuffle Read Metrics"]["Total Records Read"]
        took.tiny += 0 < records < FEW
        seconds = metrics["Executor Run Time"] / 1000
        stage = took.stages.setdefault(f"{event['Stage ID']} {names[event['Stage ID']]}", [0, 0, 0])
        stage[0] += 1
        stage[1] += seconds
        stage[2] = max(stage[2], seconds)


def show(name: str, took: Took) -> None:
    """Print what a report took."""
    print(
        f"{name}: {took.wall:.0f} s, {took.tasks} tasks"
        f" ({took.tiny} with fewer than {FEW} records), {took.shuffled / 1e6:.1f} MB shuffled,"
        f" {took.read / 1e6:.1f} million records read, {took.java:.0f} s CPU in tasks' Java"
    )
    for kind, cpu in sorted(took.cpu.items()):
        print(f"    {kind}: {cpu:.0f} s CPU, {took.peak[kind]} MiB")
    longest = sorted(took.stages.items(), key=lambda one: -one[1][1])[:6]
    for stage, (tasks, seconds, most) in longest:
        print(f"    stage {stage}: {tasks:.0f} tasks, {seconds:.1f} s, longest {most:.1f} s")
    sys.stdout.flush()
