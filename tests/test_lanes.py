"""Tests that share what is dear to make run on one worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .lanes import LANES

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_workers_take_lanes() -> None:
    """Where the scheduler of pytest-xdist is used instead, the suite takes twice as long."""
    command = [sys.executable, "-m", "pytest", "-v", "-n", "1", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, "tests/bench/captures/test_frames.py"], capture_output=True, text=True, cwd=ROOT
    )
    assert "scheduling tests via LaneScheduling" in ended.stdout, ended.stdout + ended.stderr


def test_each_pattern_has_files() -> None:
    """One that fits nothing was left behind when a file was moved."""
    patterns = [one for lane in LANES for one in lane.patterns if not one.startswith("!")]
    assert [one for one in patterns if not any(ROOT.glob(one.partition("::")[0]))] == []
