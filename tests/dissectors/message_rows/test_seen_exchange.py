"""Times of messages: what no clock shows is none, and a signal may come at any moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dissectors.message_rows.seen_exchange import LAST_MS, MILLI, time_of_ms
from tests.sources import ROOT

_INTERRUPTED = """
import signal

from dissectors.message_rows.seen_exchange import time_of_ms


class Stop(BaseException):
    pass


def stop(*_):
    raise Stop


signal.signal(signal.SIGALRM, stop)
stopped = 0
for _ in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        while True:
            time_of_ms(1_763_632_800_123)
    except Stop:
        stopped += 1
print(stopped)
"""


@pytest.mark.parametrize("ms", [None, 0, -1, LAST_MS + 1, 1 << 70])
def test_what_no_clock_shows(ms: int | None) -> None:
    assert time_of_ms(ms) is None


@pytest.mark.parametrize("ms", [1, 1_763_632_800_123, LAST_MS])
def test_a_time(ms: int) -> None:
    assert time_of_ms(ms) == ms * MILLI


def test_a_signal_while_a_time_is_converted() -> None:
    """Compiled code that has to multiply large integers was ended by it: "out of memory"."""
    run = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED], cwd=ROOT, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "300\n", "")
