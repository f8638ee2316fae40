"""Measures a process from outside: wall clock, CPU time, largest resident set.

One command varies by a quarter between two runs on a shared machine, so only medians are compared,
and only those of runs that alternated.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

_SPAWN = Path(__file__).with_name("spawn.py")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run took, or the medians of several."""

    wall: float
    """Seconds from start to end."""
    cpu: float
    """Seconds of user and system time."""
    rss: float
    """Largest resident set, MiB."""
    others: float
    """CPU seconds that other processes used meanwhile, per second of wall clock."""


class RunFailed(Exception):
    """A measured command did not end well; the text says which one and how."""


def measure(command: Sequence[str], output: Path, environment: dict[str, str]) -> Measured:
    """Run `command` with its standard output in the file `output` and return what it took.

    Raises RunFailed with the start of its error output if its exit status is not 0.
    """
    errors = output.with_name(output.name + ".stderr")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(_SPAWN), str(output), str(errors), *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RunFailed(f"{command[0]} cannot be run: {done.stderr.strip()[-500:]}")
    took = json.loads(done.stdout)
    if took.pop("exit"):
        text = " ".join(errors.read_text(errors="replace").split())[:300]
        raise RunFailed(f"{' '.join(command)} failed: {text}")
    return Measured(**took)


def medians(runs: Sequence[Measured]) -> Measured:
    """Return the median of each figure; of the resident set the largest."""
    return Measured(
        median(run.wall for run in runs),
        median(run.cpu for run in runs),
        max(run.rss for run in runs),
        median(run.others for run in runs),
    )
