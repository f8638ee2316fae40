"""The producer's benchmark: the client runs in every kind, rows say what was measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bench.producer import CASES, HEAD, ROOT, Case, Figures, Row, line_of
from replay.sandbox import SandboxOptions, TopicSpec, sandbox_thread


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "in_flight"), [("sync", 1), ("async", 8), ("oneway", 1), ("oneway", 8)]
)
def test_the_client_measures_what_it_sends(kind: str, in_flight: int) -> None:
    case = Case(kind, in_flight, 50, 20, 100)
    with sandbox_thread(SandboxOptions(topics=[TopicSpec("Bench", 4)])) as box:
        arguments = [box.namesrv, "Bench", case.kind, *map(str, case[1:])]
        command = [sys.executable, "-m", "bench.producer_client", *arguments]
        environment = os.environ | {"PYTHONPATH": ".ci"}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, cwd=ROOT, check=True
        )
    figures = json.loads(done.stdout)
    assert figures["count"] == 100
    assert figures["failed"] == 0
    assert 0 < figures["cpu"] < 30
    assert 0 <= figures["p50"] <= figures["p99"] <= figures["seconds"] * 1e6


def test_a_row_has_the_columns_of_the_head() -> None:
    ours = Figures(2000.0, 10.0, 20.0, 5.5, 0)
    line = line_of(Row(CASES[1], ours, ours._replace(rate=1000.0)))
    assert line.count("|") == HEAD.splitlines()[0].count("|")
    assert "| async 64 in flight, 100 B | 2,000 | 1,000 | 2.00 |" in line


def test_the_cases_are_those_of_the_goal() -> None:
    names = {case.name for case in CASES}
    for size in ("100 B", "1024 B"):
        assert {f"sync, {size}", f"async 64 in flight, {size}"} <= names
        assert {f"async 1024 in flight, {size}", f"oneway, {size}"} <= names
