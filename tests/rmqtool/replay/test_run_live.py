"""`replay -i`: what passes the loopback interface is replayed, but for the replay's own packets."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dissectors.endpoint import split_endpoint
from replay import Message, Producer, ProducerConfig
from replay.captured.source import MOST_OWN, OwnConnections
from replay.run.journal import read_steps
from replay.run.journal_rows import OutcomeEntry, Result
from replay.sandbox import SandboxOptions, SandboxThread, sandbox_thread
from tests.dissectors.live.test_interface import needs_filter
from tests.patience import PATIENCE, wait_for
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool
from tests.rmqtool.live.test_command import wait_for_capture
from tests.rmqtool.live_traffic import Wire
from tests.traffic.commands import route_query, send, sent

SENDS = 40


@contextmanager
def _shadowing(
    wire: Wire, box: SandboxThread, folder: Path, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Replay to a target whose connections are captured, too."""
    named = (box.namesrv, *box.addresses.values())
    ports = [str(wire.port), *(str((split_endpoint(one) or ("", 0))[1]) for one in named)]
    only = " or ".join(f"tcp port {port}" for port in ports)
    command = [*PROGRAM, "replay", "-i", "lo", "-f", only, "-n", box.namesrv]
    command += ["-o", str(folder / "run"), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as running:
        try:
            wait_for_capture(running)
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def _stored(box: SandboxThread) -> int:
    return box.call(lambda sandbox: sum(one.state.messages_in for one in sandbox.brokers.values()))


def _outcomes(folder: Path) -> list[OutcomeEntry]:
    return [row for row in read_steps(folder / "run") if isinstance(row, OutcomeEntry)]


@needs_filter
def test_live_traffic_is_shadowed_until_ctrl_c(tmp_path: Path) -> None:
    wire = Wire()
    with sandbox_thread(SandboxOptions(brokers=2)) as box:
        with _shadowing(
            wire, box, tmp_path, "-T", "jsonl", "-w", str(tmp_path / "a.pcapng")
        ) as run:
            for number in range(1, SENDS + 1):
                wire.say(send(number).frame, sent(number, number).frame)
            wait_for("all are replayed", lambda: _stored(box) >= SENDS or run.poll() is not None)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
        stored = _stored(box)
    wire.close()
    assert run.returncode == 0, err
    assert b"Traceback" not in err
    result = json.loads(out)
    assert (result["steps"], result["failures"], result["captured_failures"]) == (SENDS, 0, 0)
    assert result["outcomes"] == [{"captured": "SUCCESS", "replayed": "SUCCESS", "sends": SENDS}]
    assert stored == SENDS  # the replay's own sends were captured, too, and not sent again
    assert {row.capture for row in _outcomes(tmp_path)} == {"lo"}
    assert b"--resume" not in err
    kept = rmqtool("replay", tmp_path / "a.pcapng", "--dry-run", "-T", "jsonl", "-q")
    assert len(kept.out.splitlines()) == 2 * SENDS
    again = rmqtool("replay", "--resume", tmp_path / "run", "-n", "127.0.0.1:1")
    assert (again.status, again.out) == (1, "")
    assert "live traffic cannot be read again" in again.err


@needs_filter
def test_a_target_that_others_use_ends_the_shadowing(tmp_path: Path) -> None:
    wire = Wire()
    with sandbox_thread(SandboxOptions()) as box:
        with _shadowing(wire, box, tmp_path) as run:
            wire.say(send(1).frame, sent(1).frame)
            wait_for("it is replayed", lambda: _stored(box) >= 1 or run.poll() is not None)
            with Producer(ProducerConfig(group="others", namesrv=box.namesrv)) as producer:
                producer.send(Message("Orders", b"x"))
            wire.say(send(2).frame, sent(2).frame)
            _, err = run.communicate(timeout=60)
        assert _stored(box) == 2  # that of the other client, and the first
    wire.close()
    assert run.returncode == 1
    assert b"captured traffic is never sent back to where it came from" in err


@needs_filter
def test_a_route_to_the_target_in_captured_traffic_ends_it(tmp_path: Path) -> None:
    wire = Wire()
    with sandbox_thread(SandboxOptions()) as box:
        broker = next(iter(box.addresses.values()))
        route = {"brokerDatas": [{"brokerName": "b", "brokerAddrs": {"0": broker}}]}
        with _shadowing(wire, box, tmp_path) as run:
            query = route_query(1)
            wire.say(query.frame, query.answer(0, body=json.dumps(route).encode()).frame)
            wire.say(send(2).frame, sent(2).frame)
            wait_for("it is refused", lambda: bool(_outcomes_if_any(tmp_path)) or run.poll() == 1)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=60)
        assert _stored(box) == 0
    wire.close()


def _outcomes_if_any(folder: Path) -> list[OutcomeEntry]:
    rows = _outcomes(folder) if (folder / "run").exists() else []
    assert all(row.result is Result.failed for row in rows)
    return rows


@needs_filter
def test_a_dry_run_shows_live_traffic_until_ctrl_c() -> None:
    wire = Wire()
    command = [*PROGRAM, "replay", "-i", "lo", "-f", f"tcp port {wire.port}", "--dry-run"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as running:
        try:
            wait_for_capture(running)
            wire.say(send(1).frame, sent(1).frame)
            assert running.stdout is not None
            assert b"PACKET" in running.stdout.readline()
            assert b"Orders" in running.stdout.readline()
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=60)
        finally:
            if running.poll() is None:
                running.kill()
    wire.close()
    assert running.returncode == 0, err
    assert b"1 message in 1 send would be replayed" in err


@needs_filter
def test_the_duration_ends_the_capture(tmp_path: Path) -> None:
    # In a process of its own: the command gives up the right to capture.
    done = subprocess.run(
        [
            *(*PROGRAM, "replay", "-i", "lo", "-f", "tcp port 1", "--duration", "300ms"),
            *("-o", tmp_path / "run", "--target", "sandbox", "-q"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "0 messages in 0 sends" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x.pcap", "-i", "lo"), "--interface: replaces the captures"),
        (("-i", "lo", "--loop", "2"), "--interface and --loop"),
        (("-i", "lo", "-w", "-"), "-w -: stdout is used for rows"),
        (("x.pcap", "-f", "tcp"), "--filter: needs -i NAME"),
        (("x.pcap", "-w", "a.pcapng"), "--write: needs -i NAME"),
    ],
)
def test_options_that_make_no_sense(arguments: tuple[str, ...], said: str) -> None:
    done = rmqtool("replay", *arguments, "--target", "sandbox")
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_an_interface_that_is_not_there(tmp_path: Path) -> None:
    done = rmqtool("replay", "-i", "nosuch0", "--target", "sandbox", "-o", tmp_path / "run")
    assert done.status == 1
    assert "nosuch0: " in done.err
    assert not os.path.exists(tmp_path / "run")


def test_own_connections_are_known_by_both_ends_and_bounded() -> None:
    own = OwnConnections()
    own.add("10.0.0.1:5000", "10.0.0.2:9876")
    assert ("10.0.0.1:5000", "10.0.0.2:9876") in own
    assert ("10.0.0.2:9876", "10.0.0.1:5000") in own
    assert ("10.0.0.1:5001", "10.0.0.2:9876") not in own
    for number in range(MOST_OWN):
        own.add(f"a:{number}", "b:1")
    assert ("10.0.0.1:5000", "10.0.0.2:9876") not in own
    assert ("b:1", f"a:{MOST_OWN - 1}") in own


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--target", "sandbox"), ("--dry-run",)])
def test_the_duration_ends_a_pipe_that_is_silent(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    capture = (ROOT / "samples" / "send-sync-5x.pcap").read_bytes()
    journal = () if "--dry-run" in arguments else ("-o", tmp_path / "run")
    command = [*PROGRAM, "replay", "-", "--live", "--top-speed", "--duration", "2s"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, *arguments, *journal], cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe
    ) as running:
        try:
            assert running.stdin is not None
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdin.write(capture)
            running.stdin.flush()  # and it stays open
            assert running.wait(PATIENCE) == 0
            said = running.stdout.read() + running.stderr.read()
        finally:
            running.kill()
    assert re.search(rb"\d+ messages? in \d+ sends?", said)  # how many depends on the machine


def test_a_named_pipe_is_read_from_its_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    capture = ROOT / "samples" / "send-sync-5x.pcap"
    command = [*PROGRAM, "replay", "--live", "--dry-run", "-T", "jsonl", "-q"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, str(path)], cwd=ROOT, stdout=pipe, stderr=pipe) as running:
        try:
            with path.open("wb") as writer:
                writer.write(capture.read_bytes())
            out, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert (running.returncode, err) == (0, b"")
    whole = rmqtool("replay", capture, "--dry-run", "-T", "jsonl", "-q")
    assert len(out.splitlines()) == len(whole.out.splitlines()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_the_duration_ends_a_pipe_that_never_had_a_byte(named: bool, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    source = str(path) if named else "-"
    command = [*PROGRAM, "replay", source, "--live", "--dry-run", "--duration", "1s"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as running:
        try:
            assert running.wait(PATIENCE) == 0
        finally:
            running.kill()
