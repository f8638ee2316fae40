"""What several processes gain: `python -m bench.decode.jobs [--packets N] [--rounds R]`.

The rows of one capture by 1, 2 and 4 processes, in interleaved rounds. The output must be the same
to the byte, else the status is 1. What is gained is judged by the clock, so nothing else may run
meanwhile, and only where there are as many cores; `--check` makes a missed floor status 1, too.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.captures.captures import CACHE, Capture, capture_of, warm
from bench.measure import Measured, RunFailed, measure, medians

from .contestants import decode_command
from .floors import FULL_SIZE
from .verify import digest_of

JOBS: Final = (1, 2, 4)
VIEWS: Final[Mapping[str, tuple[Sequence[str], float | None]]] = {
    "exchanges as JSONL": (("--format", "jsonl"), 1.25),
    "messages as JSONL": (("--list-messages", "--format", "jsonl"), 1.3),
    "commands as JSONL": (("--commands", "--format", "jsonl"), 1.6),
    "exchanges as Parquet": (("--format", "parquet"), None),
}
"""view -> its options, and how many times as fast two processes are at least on two cores"""
Figures = dict[tuple[str, int], list[Measured]]


def measure_jobs(capture: Capture, rounds: int, scratch: Path) -> tuple[Figures, list[str]]:
    """Return what each view took by the number of processes, and which outputs differ."""
    figures: Figures = {}
    wrong: list[str] = []
    output = scratch / "rows.parquet"
    warm(capture.path)
    for _ in range(rounds):
        for view, (options, _) in VIEWS.items():
            wanted = ""
            for jobs in JOBS:
                command = decode_command(capture.path, output, *options, jobs=jobs)
                took = measure(command, scratch / "out", dict(os.environ))
                figures.setdefault((view, jobs), []).append(took)
                found = digest_of(output)
                output.unlink()
                wanted = wanted or found
                if found != wanted:
                    wrong.append(f"{view}: {jobs} processes wrote something else than one")
                print(f"  {view}, {jobs} processes: {took.wall:.2f} s", file=sys.stderr)
    return figures, wrong


def print_jobs(figures: Mapping[tuple[str, int], Measured]) -> None:
    """Print one line per view and number of processes."""
    print(
        f"\n{'':24}{'processes':>10}{'wall s':>8}{'gain':>7}{'cpu s':>8}{'RSS MiB':>9}{'others':>8}"
    )
    for (view, jobs), took in figures.items():
        gain = figures[view, 1].wall / took.wall
        print(
            f"{view:24}{jobs:10}{took.wall:8.2f}{gain:7.2f}{took.cpu:8.2f}{took.rss:9.0f}"
            f"{took.others:8.2f}"
        )


def missed(figures: Mapping[tuple[str, int], Measured]) -> list[str]:
    """Return the floors that two processes miss."""
    lines = []
    for view, (_, floor) in VIEWS.items():
        gain = figures[view, 1].wall / figures[view, 2].wall
        if floor is not None and gain < floor:
            lines.append(f"{view}: two processes are {gain:.2f} times as fast, at least {floor}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and judge; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.decode.jobs")
    parser.add_argument("--packets", type=int, default=FULL_SIZE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="status 1 where a floor is missed")
    given = parser.parse_args(arguments)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        try:
            runs, wrong = measure_jobs(capture_of(given.packets), given.rounds, Path(scratch))
        except RunFailed as error:
            print(error, file=sys.stderr)
            return 1
    figures = {key: medians(of) for key, of in runs.items()}
    print_jobs(figures)
    lines = [f"WRONG  {line}" for line in wrong]
    if given.packets < FULL_SIZE or len(os.sched_getaffinity(0)) < 2:
        print("floors are not judged: for a million packets and two cores")
    else:
        late = missed(figures)
        lines += [f"MISSED {line}" for line in late]
        wrong += late if given.check else []
    print("\n".join(lines))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
