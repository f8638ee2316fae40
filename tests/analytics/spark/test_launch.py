"""The Java of a session: ended while it starts, or while a query runs; nothing is left of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]
_START = """
import sys, time
from rmqtool.ui.interrupt import Apart
from analytics.errors import ReportError
from analytics.spark.launch import Launch
from analytics.spark.session import SessionOptions, start_session
launch = Launch()
start = Apart(lambda: start_session(launch=launch))
"""
_KILLED = """
time.sleep(float(sys.argv[1]))
launch.kill()
assert start.wait(20)
try:
    start.result()
except ReportError:
    print("did not start")
"""
_ENDLESS = """
import os, signal
from threading import Timer
session = start.result()
query = Apart(session.spark.sql("SELECT sum(sqrt(id)) FROM range(1000000000000)").toArrow)
Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    query.result()
except KeyboardInterrupt:
    began = time.monotonic()
    session.abort()
    assert query.wait(5)
    assert time.monotonic() - began < 10
    print("interrupted")
"""


def _run(script: str, folder: Path, *arguments: str) -> str:
    """Run a script with `folder` for temporary files; nothing may be left there."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(folder) == []
    return done.stdout


@pytest.mark.parametrize("seconds", ["0", "0.7", "1.5"])
def test_a_start_is_ended(seconds: str, tmp_path: Path) -> None:
    assert _run(_START + _KILLED, tmp_path, seconds) == "did not start\n"


def test_a_query_is_ended(tmp_path: Path) -> None:
    """PySpark waits for the query's end, whatever signal comes."""
    assert _run(_START + _ENDLESS, tmp_path) == "interrupted\n"
