"""How long tests take: which of them `make test-fast` and `make test` leave out.

`tests/lengthy.txt` has the seconds of each test function, with all of its parameters, on two cores
with five workers, and of each file whose tests share a fixture that takes long. Less than a quarter
of a second is omitted. It is written from a run of all tests:
`RMQTOOL_DURATIONS=FILE make test-all`, then `python -m tests.lengthy FILE`.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.pure import wants_sources

LIST: Final = Path(__file__).with_suffix(".txt")
SWITCH: Final = "RMQTOOL_DURATIONS"
"""variable that names the file to which a run adds the durations of its tests"""
LEAST: Final = 0.25
"""seconds from which a function is in the list: it is no test of `make test-fast`"""
EXTENDED: Final = 10.0
"""seconds from which a function is left to `make test-all`"""


def function_of(node_id: str) -> str:
    """Return the node id of a test without its parameters."""
    return node_id.partition("[")[0]


def listed() -> dict[str, float]:
    """Return the functions and files of the list and how many seconds they take."""
    lines = (line.partition(" ") for line in LIST.read_text().splitlines())
    return {name: float(seconds) for seconds, _, name in lines}


def seconds_of(node_id: str, took: Mapping[str, float]) -> float:
    """Return how long the function of a test takes, or its file if that is in the list."""
    file = node_id.partition("::")[0]
    return max(took.get(function_of(node_id), 0.0), took.get(file, 0.0))


def add(report: pytest.TestReport) -> None:
    """Add a test's duration to the file named by SWITCH, in the process that collects reports."""
    name = os.environ.get(SWITCH)
    if name and "PYTEST_XDIST_WORKER" not in os.environ and not wants_sources():
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{report.duration:.3f} {report.when} {report.nodeid}\n")


def main() -> int:
    """Write the list from the durations of a run."""
    seconds: dict[str, float] = defaultdict(float)
    setups: dict[str, list[float]] = defaultdict(list)
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        took, when, node_id = line.split(" ", 2)
        seconds[function_of(node_id)] += float(took)
        if when == "setup":
            setups[node_id.partition("::")[0]].append(float(took))
    for file, each in setups.items():
        # The first test that uses a fixture of the module waits for it.
        if len(each) > 1 and max(each) >= max(LEAST, sum(each) / 2):
            seconds[file] = max(each)
    lengthy = sorted((name, took) for name, took in seconds.items() if took >= LEAST)
    LIST.write_text("".join(f"{took:.2f} {name}\n" for name, took in lengthy))
    print(f"{len(lengthy)} functions and files take {LEAST:g} s or more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
