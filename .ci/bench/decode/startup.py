"""Start-up of the command line: how long `rmqtool --help` takes, and what it must not load."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Measured, measure, medians

from .contestants import TOOL

RUNS = 7
HEAVY = ("scapy", "pyspark", "pandas", "pyarrow")


@dataclass(frozen=True, slots=True)
class Startup:
    """Medians of several starts."""

    nothing: Measured
    """`python -c pass`: the interpreter alone."""
    help: Measured
    """`rmqtool --help`."""
    heavy: list[str]
    """Heavy libraries that `rmqtool --help` imported; must be empty."""


def measure_startup(scratch: Path) -> Startup:
    """Return the medians of both commands, started in turn. Raises RunFailed."""
    environment = dict(os.environ)
    nothing, shown = [], []
    for _ in range(RUNS):
        nothing.append(measure([sys.executable, "-c", "pass"], scratch / "out", environment))
        shown.append(measure([str(TOOL), "--help"], scratch / "out", environment))
    return Startup(medians(nothing), medians(shown), _heavy_imports())


def _heavy_imports() -> list[str]:
    """Return the heavy libraries among the imports of `rmqtool --help`."""
    command = [sys.executable, "-X", "importtime", str(TOOL), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    loaded = set()
    for line in done.stderr.splitlines():
        if line.startswith("import time:"):
            loaded.add(line.rpartition("|")[2].strip().partition(".")[0])
    return [name for name in HEAVY if name in loaded]
