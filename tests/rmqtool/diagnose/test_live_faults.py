"""`diagnose -i` and `decode live` while real servers hang and die, on a machine that is busy.

The servers and the producer are processes of their own, in a network of their own where that can
be had: what other tests send over the loopback interface may be more than can be decoded in time.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.dissectors.live.test_interface import needs_right
from tests.patience import wait_for

from ..command import PROGRAM, ROOT, process
from ..live.test_command import wait_for_capture

pytestmark = [pytest.mark.slow, needs_right]
PIPE = subprocess.PIPE
INSIDE: list[str] = []
"""what starts a program in the network of this module; empty: that of all"""
TIMEOUT = 3
"""seconds of sendMsgTimeout"""
on_a_busy_machine = pytest.mark.flaky(reruns=3, reruns_delay=20)
"""clusters of Spark in other tests may leave no time at all for a while"""


class Lines:
    """What a process writes, each line with when it came."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.seen: list[tuple[float, str]] = []
        self._queue: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
        self._stream = stream
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._stream:
            self._queue.put((time.monotonic(), line.decode()))

    def until(self, holds: Callable[[str], bool], patience: float) -> float:
        """Return when a line came for which something holds."""
        end = time.monotonic() + patience
        while True:
            try:
                came, line = self._queue.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(f"not in time; seen: {self.seen}") from None
            self.seen.append((came, line))
            if holds(line):
                return came

    def rest(self) -> list[str]:
        """Return all lines that came."""
        while not self._queue.empty():
            self.seen.append(self._queue.get())
        return [line for _, line in self.seen]


class Cluster:
    """A NameServer with a broker in one process, and a producer in another."""

    def __init__(self, server: subprocess.Popen[bytes], first: dict[str, Any]) -> None:
        self.server = server
        self.namesrv = str(first["namesrv"])
        self.broker = str(first["brokers"]["broker-a"])

    def is_of_this(self, event: dict[str, Any]) -> bool:
        """Return whether an event is of this cluster, not of what others do on the interface."""
        return self.broker in event["title"] or self.namesrv in event["title"]


@pytest.fixture(scope="module", autouse=True)
def own_network() -> Iterator[None]:
    """Let all processes of this module use a loopback interface that nobody else uses."""
    if os.geteuid() or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        yield
        return
    holds = "ip link set lo up && echo ready && exec sleep 3600"
    command = ["unshare", "-n", "sh", "-c", holds]
    with subprocess.Popen(command, stdout=PIPE, stderr=subprocess.DEVNULL) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() == b"ready\n":
            INSIDE[:] = ["nsenter", "-t", str(holder.pid), "-n"]
        yield
        INSIDE.clear()
        holder.kill()


@contextmanager
def cluster(rate: str = "20/s") -> Iterator[Cluster]:
    command = [*INSIDE, *PROGRAM, "broker", "--port", "0", "--namesrv-port", "0", "-t", "Orders:4"]
    running: list[subprocess.Popen[bytes]] = []
    try:
        server = subprocess.Popen([*command, "-T", "jsonl"], cwd=ROOT, stdout=PIPE, stderr=PIPE)
        running.append(server)
        assert server.stdout is not None
        one = Cluster(server, json.loads(server.stdout.readline()))
        options = ("--body", "hello", "--count", "100000", "--rate", rate, "--mode", "async")
        send = [*INSIDE, *PROGRAM, "send", "-n", one.namesrv, "-t", "Orders", *options]
        null = subprocess.DEVNULL
        running.append(subprocess.Popen(send, cwd=ROOT, stdout=null, stderr=null))
        yield one
    finally:
        for each in running:
            each.kill()
            each.communicate()


@contextmanager
def watching(*command: str | Path) -> Iterator[tuple[subprocess.Popen[bytes], Lines]]:
    """A command that captures on the loopback interface, and its output."""
    with subprocess.Popen(
        [*INSIDE, *PROGRAM, *map(str, command)],
        cwd=ROOT,
        env=os.environ,
        stdout=PIPE,
        stderr=subprocess.DEVNULL,  # others may use the interface, and it says much of them
    ) as running:
        try:
            wait_for_capture(running)
            assert running.stdout is not None
            yield running, Lines(running.stdout)
        finally:
            running.kill()


def events_of(one: Cluster, lines: list[str]) -> list[dict[str, Any]]:
    return [event for event in map(json.loads, lines) if one.is_of_this(event)]


def wait_for_sends(one: Cluster) -> None:
    """Return when a producer has sent to the broker for some seconds."""
    port = int(one.broker.rpartition(":")[2])
    server = f":{port:04X}"

    def connected() -> bool:
        rows = [
            line.split()
            for line in Path(f"/proc/{one.server.pid}/net/tcp").read_text().splitlines()[1:]
        ]
        return any(row[2].endswith(server) and row[3] == "01" for row in rows)

    wait_for("a producer is connected", connected, pause=0.2)
    time.sleep(5)


@on_a_busy_machine
def test_a_broker_that_hangs_and_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    with (
        watching("diagnose", "-i", "lo", "-T", "jsonl", "-w", kept) as (running, lines),
        cluster() as one,
    ):
        wait_for_sends(one)
        begin = time.monotonic()
        one.server.send_signal(signal.SIGSTOP)

        def happened(kind: str) -> Callable[[str], bool]:
            return lambda line: any(
                event["event"] == kind and event["rule"] == "broker-hung"
                for event in events_of(one, [line])
            )

        delay = lines.until(happened("started"), 60) - begin
        started = json.loads(lines.seen[-1][1])
        assert delay < TIMEOUT + 5
        assert (started["state"], started["severity"]) == ("ongoing", "error")
        assert " hung since " in started["title"]
        assert started["evidence"]
        time.sleep(12)
        one.server.send_signal(signal.SIGCONT)
        lines.until(happened("ended"), 60)
        ended = json.loads(lines.seen[-1][1])
        assert ended["state"] == "ended"
        running.send_signal(signal.SIGINT)
        running.wait(60)
        hung = [
            event["event"]
            for event in events_of(one, lines.rest())
            if event["rule"] == "broker-hung"
        ]
    assert [kind for kind in hung if kind != "changed"] == ["started", "ended", "final"]
    assert "changed" in hung
    offline = process("diagnose", kept, "-T", "jsonl")
    assert "broker-hung" in {event["rule"] for event in events_of(one, offline.out.splitlines())}


@on_a_busy_machine
def test_a_broker_that_is_killed_is_gone_and_stays_so(tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    with (
        watching("diagnose", "-i", "lo", "-T", "jsonl", "-w", kept) as (running, lines),
        cluster() as one,
    ):
        wait_for_sends(one)
        begin = time.monotonic()
        one.server.kill()

        def gone(line: str) -> bool:
            return any(event["rule"] == "broker-gone" for event in events_of(one, [line]))

        assert lines.until(gone, 60) - begin < 10
        assert json.loads(lines.seen[-1][1])["state"] == "ongoing"
        time.sleep(35)  # longer than the quiet that ends what happens again and again
        running.send_signal(signal.SIGINT)
        running.wait(60)
        events = events_of(one, lines.rest())
    assert {event["rule"] for event in events} <= {"broker-gone", "namesrv-gone"}
    assert {event["event"] for event in events} <= {"started", "changed", "final"}
    assert {event["state"] for event in events} == {"ongoing"}


@on_a_busy_machine
def test_requests_are_shown_as_unanswered_while_they_wait() -> None:
    with (
        watching("decode", "live", "-i", "lo", "-T", "jsonl", "-Y", "request_code == 310") as (
            running,
            lines,
        ),
        cluster() as one,
    ):

        def has(status: str) -> Callable[[str], bool]:
            def holds(line: str) -> bool:
                row = json.loads(line)
                return bool(row["server_address"] == one.broker and row["status"] == status)

            return holds

        lines.until(has("answered"), 60)
        begin = time.monotonic()
        one.server.send_signal(signal.SIGSTOP)
        assert 4 < lines.until(has("unanswered"), 60) - begin < 10
        time.sleep(3)
        one.server.kill()
        time.sleep(5)
        running.send_signal(signal.SIGINT)
        running.wait(60)
        rows = [json.loads(line) for line in lines.rest()]
    sends = [row for row in rows if row["server_address"] == one.broker]
    keys = [(row["conversation"], row["opaque"]) for row in sends]
    assert len(keys) == len(set(keys)), "each is shown once"
    assert {row["status"] for row in sends} == {"answered", "unanswered"}
