"""Four times as much traffic takes some four times as long, whatever the traffic is."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send, sent
from tests.traffic.talk import Talk

pytestmark = [pytest.mark.tshark, pytest.mark.slow]

MOST = 8
"""times as long that four times as much may take: a quadratic way takes sixteen"""
NOISE = 0.3
"""CPU seconds by which two runs of tshark may differ beside other work; what is quadratic in the
megabytes of these captures takes far longer"""


def frames(count: int) -> Talk:
    return Talk().open().say(0, b"".join(send(number).frame for number in range(count)))


def never_answered(count: int) -> Talk:
    talk = Talk(mss=60_000).open()
    talk.say(0, b"".join(send(number).frame for number in range(count)))
    return talk.say(1, b"".join(sent(count + number).frame for number in range(count)))


def one_large_frame(count: int) -> Talk:
    return Talk().open().say(0, send(1, bytes(count * 1400)).frame)


def a_large_json_body(count: int) -> Talk:
    body = json.dumps({"list": [{"number": number} for number in range(count * 16)]}).encode()
    return Talk(mss=60_000).open().say(0, Command(34, 1, body=body).frame)


def what_looks_like_frames(count: int) -> Talk:
    talk = Talk(mss=60_000).open().say(0, send(1).frame)
    noise = (b'\0\0\x20\x20\0\0\x10\0{"a":1,"b":[[[[' * 3000)[:59_000]
    for _ in range(count // 100):
        talk.say(0, b"\xff" + noise)
    return talk


def seconds_of(dissector: Path, capture: Path) -> float:
    """CPU seconds of tshark with the whole tree."""
    command = ["tshark", "-n", "-X", f"lua_script:{dissector}", "-r", str(capture), "-V"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        _, _, used = os.wait4(run.pid, 0)
        run.returncode = 0
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(
    "make",
    [frames, never_answered, one_large_frame, a_large_json_body, what_looks_like_frames],
    ids=lambda make: make.__name__,
)
def test_growth(dissector: Path, tmp_path: Path, make: Callable[[int], Talk]) -> None:
    def measured(count: int, times: int) -> float:
        path = tmp_path / f"{count}.pcap"
        path.write_bytes(pcap_of(make(count).segments))
        return min(seconds_of(dissector, path) for _ in range(times))

    def growth() -> float:
        """What is measured too high can hide growth, unless it is the large one."""
        start = measured(1, 2)  # of tshark itself
        return (measured(6000, 1) - start) / max(measured(1500, 2) - start, NOISE)

    # CPU time is less exact beside other work; what is quadratic is so in every round.
    assert any(growth() < MOST for _ in range(3))
