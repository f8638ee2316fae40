"""`diagnose -i`: a problem is shown when it appears, all of them in the end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from typing import IO

import pytest

from tests.dissectors.live.test_interface import needs_filter
from tests.traffic.commands import send

from ..command import PROGRAM, ROOT, rmqtool
from ..live.test_command import wait_for_capture
from ..live_traffic import Wire

REFUSED = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 201ms"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("-i", "nosuch0"), 1, "nosuch0: no such interface"),
        (("-i", "lo", "--duration", "soon"), 2, "--duration: not a valid duration: 'soon'"),
        (("-i", "lo", "-w", "-"), 2, "-w -: stdout is used for rows"),
        (
            ("-i", "lo", "-o", "x", "-w", "./x"),
            2,
            "-o and -w: ./x cannot hold both problems and pack",
        ),
        (("x.pcap", "-w", "x.pcapng"), 2, "-w: saves packets of a live capture; add -i NAME"),
    ],
)
def test_what_cannot_be_is_said(arguments: tuple[str, ...], status: int, said: str) -> None:
    result = rmqtool("diagnose", *arguments)
    assert (result.status, result.out) == (status, "")
    assert result.err.startswith(f"rmqtool: {said}")


@pytest.mark.slow
@needs_filter
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_a_problem_on_the_wire_is_shown_at_once_and_again_in_the_end(form: str) -> None:
    wire = Wire()
    command = [*PROGRAM, "diagnose", "-i", "lo", "-f", f"tcp port {wire.port}", "-T", form]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as running:
        try:
            wait_for_capture(running)
            assert running.stderr is not None
            end = time.monotonic() + 60
            number, said = 0, ""
            while "send-queue-timeout" not in said and time.monotonic() < end:
                number += 1
                asked = send(number)
                wire.say(asked.frame, asked.answer(2, remark=REFUSED).frame)
                said += read(running.stderr, 0.5)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=60)
        finally:
            if running.poll() is None:
                running.kill()
    wire.close()
    assert " refused " in said
    assert running.returncode == 0
    assert b"Traceback" not in err
    events = json.loads(out) if form == "json" else list(map(json.loads, out.splitlines()))
    by_rule = {one["rule"]: one for one in events}
    # On a busy machine the stop may come before all answers were read from the ring.
    assert 1 <= by_rule["send-queue-timeout"]["count"] <= number


def read(stream: IO[bytes], patience: float) -> str:
    ready, _, _ = select.select([stream], [], [], patience)
    return os.read(stream.fileno(), 65536).decode() if ready else ""
