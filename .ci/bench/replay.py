"""How exactly a replay keeps its times, how fast it is, and how its memory grows.

python -m bench.replay [--check]

The target is a sandbox in a process of its own. Lateness is that of the journal: from the due time
of a send to its begin. `--check` makes a pace that is missed status 1: 5 ms at the median and 50 ms
at p99, up to 1,000 messages a second.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import IO, NamedTuple

from replay.run.journal import read_steps
from replay.run.journal_rows import OutcomeEntry

from .captures.captures import capture_of
from .measure import Measured, RunFailed, measure

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "rmqtool"]
PACED = 100_000
"""packets of the capture that is replayed at a rate"""
SIZES = (100_000, 1_000_000)
"""packets of the captures that are replayed as fast as it goes"""
RATES = (100, 500, 1000)
SECONDS = 10
MEDIAN_US, P99_US = 5_000, 50_000


class Lateness(NamedTuple):
    """Of all sends of a run, µs."""

    sends: int
    p50: int
    p90: int
    p99: int
    most: int

    @property
    def kept(self) -> bool:
        """Whether the pace is what it should be."""
        return self.p50 <= MEDIAN_US and self.p99 <= P99_US


def lateness_of(journal: Path) -> Lateness:
    """Return how late the sends of a journal were. Raises ValueError where there are none."""
    late = sorted(row.late_us for row in read_steps(journal) if isinstance(row, OutcomeEntry))
    if not late:
        raise ValueError(f"{journal}: no sends")
    p50, p90, p99 = (late[len(late) * percent // 100] for percent in (50, 90, 99))
    return Lateness(len(late), p50, p90, p99, late[-1])


@contextmanager
def sandbox() -> Iterator[str]:
    """Run two brokers that drop their oldest messages; gives the NameServer's address."""
    command = [
        *PROGRAM,
        "broker",
        "--brokers",
        "2",
        "--port",
        "0",
        "--namesrv-port",
        "0",
        "--format",
        "jsonl",
    ]
    command += ["--drop-oldest", "--store-limit", "64MiB"]
    with tempfile.TemporaryFile("w+") as events:  # a pipe that nobody reads would halt it
        running = subprocess.Popen(command, cwd=ROOT, stdout=events)
        try:
            yield _namesrv_of(running, events)
        finally:
            running.terminate()
            running.wait()


def _namesrv_of(running: subprocess.Popen[bytes], events: IO[str]) -> str:
    while running.poll() is None:
        events.seek(0)
        line = events.readline()
        if line.endswith("\n"):
            return str(json.loads(line)["namesrv"])
        sleep(0.1)
    raise RunFailed("the sandbox did not start")


def replayed(capture: Path, namesrv: str, journal: Path, *options: str) -> Measured:
    """Replay a capture and return what it took. Raises RunFailed where a send fails."""
    shutil.rmtree(journal, ignore_errors=True)
    command = [*PROGRAM, "replay", str(capture), "-n", namesrv, "-o", str(journal), "-q", *options]
    return measure(command, journal.with_suffix(".out"), {"PYTHONPATH": str(ROOT)})


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    missed = 0
    with tempfile.TemporaryDirectory(prefix="rmqtool-bench-") as folder, sandbox() as namesrv:
        journal = Path(folder) / "journal"
        capture = capture_of(PACED).path
        for rate in RATES:
            options = ("--rate", f"{rate}/s", "--duration", f"{SECONDS}s")
            replayed(capture, namesrv, journal, *options)
            late = lateness_of(journal)
            missed += not late.kept
            print(
                f"{rate:6,} messages/s: {late.sends:,} sends late by"
                f" {late.p50 / 1000:.2f} ms (median), {late.p90 / 1000:.2f} (p90),"
                f" {late.p99 / 1000:.2f} (p99), {late.most / 1000:.2f} (most)"
                f"{'' if late.kept else '  MISSED'}",
                flush=True,
            )
        for packets in SIZES:
            took = replayed(capture_of(packets).path, namesrv, journal, "--top-speed")
            sends = lateness_of(journal).sends
            print(
                f"{packets:10,} packets at top speed: {sends:,} sends, {sends / took.wall:,.0f}/s,"
                f" {took.cpu / sends * 1e6:.0f} µs CPU a send, {took.rss:.0f} MiB",
                flush=True,
            )
    return int(check and missed > 0)


if __name__ == "__main__":
    sys.exit(main())
