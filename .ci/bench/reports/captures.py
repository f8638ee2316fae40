"""Captures on a standalone cluster of two workers: CPU, wall and what was read, by size.

The capture is one of `bench.captures.generate`, cut into eight files as `tcpdump -C` does.
CPU is that of the driver, the executors and their Python together, of the decode alone: the session
and its first query come before. Whether the rows are those of one task that reads all is said, too,
and what becomes of them when a worker is killed in the middle.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.analytics.pcaps import rotated
from tests.analytics.spark.lose_executor import digest_of
from tests.analytics.spark.standalone import standalone_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 8
_TICKS = os.sysconf("SC_CLK_TCK")


def captures_in(folder: Path, packets: int) -> tuple[Path, list[Path]]:
    """Return a capture of so many packets, and the same as rotated files; make them once."""
    whole = folder / f"captures-{packets}.pcap"
    if not whole.exists():
        made = ["--packets", str(packets), "--seed", "1", "--mix", "json", "-o", str(whole)]
        subprocess.run([sys.executable, "-m", "bench.captures.generate", *made], check=True)
    files = [folder / f"{whole.stem}.pcap{number}" for number in range(FILES)]
    return whole, files if files[-1].exists() else rotated(whole, folder, FILES)


def _stat(process: str) -> list[str]:
    text = Path("/proc", process, "stat").read_text()
    return text.rpartition(")")[2].split()


def cpu_of_children() -> float:
    """Return the CPU seconds of this process and of all that it has started, ended ones too."""
    stats = {}
    for one in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            stats[int(one)] = _stat(one)
    mine = {os.getpid()}
    while True:
        more = {pid for pid, stat in stats.items() if int(stat[1]) in mine} - mine
        if not more:
            return sum(sum(map(int, stats[pid][11:15])) for pid in mine if pid in stats) / _TICKS
        mine |= more


def _workers() -> list[int]:
    """Return the executors' processes."""
    found = []
    for one in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            command = Path("/proc", one, "cmdline").read_bytes()
            owner = int(_stat(one)[1])
            if b"CoarseGrainedExecutorBackend" in command and _is_mine(owner):
                found.append(int(one))
    return found


def _is_mine(process: int) -> bool:
    while process > 1:
        if process == os.getpid():
            return True
        process = int(_stat(str(process))[1])
    return False


def measured(
    spark: SparkSession, name: str, files: Sequence[Path], tasks: int, kill_after: float = 0
) -> tuple[list[list[object]], float]:
    """Decode by several tasks, print a line, and return a digest of the rows and the wall time."""
    from analytics.inputs.capture_frame import CaptureRows
    from analytics.inputs.row_batches import ALL

    rows = CaptureRows(tuple(map(str, files)), "input").by_tasks(spark, ALL, tasks).persist()
    timer = threading.Timer(kill_after, lambda: os.kill(_workers()[0], signal.SIGKILL))
    if kill_after:
        timer.start()
    cpu, begun = cpu_of_children(), time.monotonic()
    rows.count()
    wall, took = time.monotonic() - begun, cpu_of_children() - cpu
    size = sum(file.stat().st_size for file in files)
    print(
        f"  {name:28}{size / 1e6:8.0f} MB{wall:8.1f} s{took:8.1f} s CPU{tasks:5} tasks", flush=True
    )
    digest = digest_of(rows)
    rows.unpersist()
    return digest, wall


def measure_captures(folder: Path, packets: int) -> int:
    """Measure; return how many results were wrong."""
    from analytics.spark.session import SessionOptions, start_session

    whole, files = captures_in(folder, packets)
    wrong = 0
    with standalone_cluster(folder, "2g") as master:
        session = start_session(
            SessionOptions(master, memory="2g", settings={"spark.executor.memory": "1500m"})
        )
        try:
            spark = session.spark
            measured(spark, "warm-up", files[:1], 2)
            for count in (1, 2, 4):
                measured(spark, f"{count} rotated files", files[:count], 2)
            alone, _ = measured(spark, f"{FILES} rotated files", files, 1)
            for tasks in (2, 4, 8, 16, 32):
                digest, wall = measured(spark, f"{FILES} rotated files", files, tasks)
                wrong += _differ(f"{tasks} tasks", digest, alone)
            killed, _ = measured(spark, "the same, a worker killed", files, 8, wall / 2)
            wrong += _differ("a worker killed", killed, alone)
            one, _ = measured(spark, "one file", [whole], 1)
            wrong += _differ("one file", measured(spark, "one file", [whole], 2)[0], one)
        finally:
            session.stop()
    return wrong


def _differ(name: str, found: list[list[object]], expected: list[list[object]]) -> int:
    """Print whether rows are the same; return 1 if not."""
    same = found == expected
    print(f"  {'the same rows' if same else 'WRONG'}: {name}, {expected}", flush=True)
    return int(not same)
