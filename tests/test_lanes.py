"""Tests that share what is dear to make run on one worker."""

from __future__ import annotations

import os
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
        [*command, "tests/bench/test_frames.py"], capture_output=True, text=True, cwd=ROOT
    )
    assert "scheduling tests via LaneScheduling" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.slow
def test_a_test_that_ends_its_worker_fails_once(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.lanes import LaneScheduling\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return LaneScheduling(config, log)\n"
    )
    (tmp_path / "test_crash.py").write_text(
        "import os\n"
        "def test_before(): pass\n"
        "def test_crash(): os._exit(1)\n"
        "def test_after(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert "1 failed, 2 passed" in ended.stdout, ended.stdout + ended.stderr


def test_each_pattern_has_files() -> None:
    """One that fits nothing was left behind when a file was moved."""
    patterns = [one for lane in LANES for one in lane.patterns if not one.startswith("!")]
    assert [one for one in patterns if not any(ROOT.glob(one.partition("::")[0]))] == []
