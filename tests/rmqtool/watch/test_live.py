"""`watch` on real interfaces: events, losses, interfaces that go away, SIGTERM, who is there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.dissectors.live.test_interface import needs_filter
from tests.tools import find
from tests.traffic.commands import send

from ..command import PROGRAM, ROOT
from ..live_traffic import Wire

pytestmark = [pytest.mark.slow, needs_filter]
REFUSED = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 201ms"


class LiveWatch:
    """A watch that runs, and its events as they come."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        self.running = running
        self.events: list[dict[str, Any]] = []

    def until(self, kind: str, **facts: object) -> dict[str, Any]:
        """The next event of a kind with these facts."""
        assert self.running.stdout is not None
        while line := self.running.stdout.readline():
            one = json.loads(line)
            self.events.append(one)
            if one["event"] == kind and facts.items() <= one.items():
                return one
        raise AssertionError(f"no {kind}: {self.events}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> dict[str, Any]:
        self.running.send_signal(number)
        last = self.until("stopped")
        assert self.running.wait(60) == 0
        return last


@contextmanager
def live(*arguments: str | Path) -> Iterator[LiveWatch]:
    command = [*PROGRAM, "watch", "-T", "jsonl", *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as running:
        try:
            watch = LiveWatch(running)
            watch.until("watching")
            yield watch
        finally:
            if running.poll() is None:
                running.kill()
            assert running.stderr is not None
            assert b"Traceback" not in running.stderr.read()


def refuse(wire: Wire, number: int) -> None:
    asked = send(number)
    wire.say(asked.frame, asked.answer(2, remark=REFUSED).frame)


def test_a_problem_is_told_with_who_is_there_and_its_packets_are_kept(tmp_path: Path) -> None:
    wire = Wire()
    ring, kept = tmp_path / "ring", tmp_path / "kept"
    with live(
        *("-i", "lo", "-f", f"tcp port {wire.port}", "--user", "root"),
        *("--ring-dir", ring, "--incidents", kept, "--after", "1s"),
    ) as watch:
        for number in range(20):
            refuse(wire, number)
            time.sleep(0.02)
        started = watch.until("started", rule="send-queue-timeout")
        incident = watch.until("incident_kept")
        last = watch.stop()
    wire.close()
    assert {one["role"] for one in started["ends"]} == {"client", "server"}
    named = {one.get("pid") for one in started["ends"]}
    assert named <= {os.getpid(), None}
    assert incident["packets"] > 10
    assert "send-queue-timeout" in (Path(incident["path"]) / "diagnosis.txt").read_text()
    assert last["ring_bytes"] == sum(one.stat().st_size for one in ring.glob("*.pcapng"))


def test_an_interface_that_vanishes_is_waited_for() -> None:
    program = find("ip")
    name = f"rmq{os.getpid() % 100000}"

    def link(*words: str) -> bool:
        done = subprocess.run([str(program), "link", *words], capture_output=True, check=False)
        return done.returncode == 0

    if program is None or not link("add", name, "type", "veth", "peer", "name", f"{name}p"):
        pytest.skip("no interface can be made here")
    try:
        link("set", name, "up")
        wire = Wire()
        with live("-i", name, "-i", "lo", "-f", f"tcp port {wire.port}") as watch:
            link("del", name)
            down = watch.until("interface_down")
            assert down["interface"] == name
            for number in range(20):  # the other interface goes on
                refuse(wire, number)
            watch.until("started", rule="send-queue-timeout")
            link("add", name, "type", "veth", "peer", "name", f"{name}p")
            link("set", name, "up")
            watch.until("interface_up", interface=name)
            watch.stop()
        wire.close()
    finally:
        link("del", name)


def test_more_than_can_be_decoded_is_counted_and_survived(tmp_path: Path) -> None:
    """50,000 commands a second are asked for; a small buffer makes sure that some are lost."""
    module = "tests.rmqtool.live_traffic"
    with subprocess.Popen(
        [sys.executable, "-m", module, "50000", "4", "0"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as traffic:
        assert traffic.stdin is not None
        assert traffic.stdout is not None
        port = json.loads(traffic.stdout.readline())["port"]
        with live(
            *("-i", "lo", "-f", f"tcp port {port}", "--buffer", "1MiB"),
            *("--ring-dir", tmp_path / "ring", "--ring", "8MiB"),
        ) as watch:
            traffic.stdin.write(b"\n")
            traffic.stdin.flush()
            watch.until("packets_dropped")
            last = watch.stop()
        traffic.stdout.readline()
    assert last["dropped"] > 0
    assert last["packets"] > last["dropped"] + last["unread"]
    assert last["exchanges"] > 0
    assert last["ring_bytes"] <= 8 << 20
    read = subprocess.run(
        [*PROGRAM, "decode", "pcap", str(tmp_path / "ring"), "-c", "1"],
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert read.returncode == 0
