"""A signal may come at any moment: what its handler raises leaves compiled code as an exception.

Python handles signals while it multiplies integers of more than 30 bits. Code compiled by mypyc
that multiplies with `*` takes an exception raised there for a failed allocation, and aborts.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.sources import ROOT

TIMES = 300
_PROGRAM = """
import signal
{setup}

class Stop(BaseException):
    pass

def stop(*_):
    raise Stop

signal.signal(signal.SIGALRM, stop)
stopped = 0
for _ in range({times}):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        while True:
            {work}
    except Stop:
        stopped += 1
print(stopped)
"""
_CAPTURE = """
from tests.dissectors.tcp.readers import read
from tests.traffic.captures import Interface, pcapng

packets = [(1_763_632_800_000_000_000, bytes(60), 0)] * 500
capture = pcapng(packets, [Interface(1, {resolution}, offset={offset})])
"""
_READ = "read(capture)"
_OF_MS = "from dissectors.message_rows.seen_exchange import time_of_ms"
WORK = {
    "milliseconds of a message": (_OF_MS, "time_of_ms(1_763_632_800_123)"),
    "pcapng in binary fractions": (_CAPTURE.format(resolution=0x80 | 31, offset=0), _READ),
    "pcapng with an offset": (_CAPTURE.format(resolution=6, offset=1_700_000_000), _READ),
}
"""Case -> what is imported and made, what is done again and again."""


@pytest.mark.parametrize("name", WORK)
def test_a_signal_is_an_exception(name: str) -> None:
    setup, work = WORK[name]
    program = _PROGRAM.format(setup=setup, work=work, times=TIMES)
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, f"{TIMES}\n", "")
