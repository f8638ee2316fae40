"""`rmqtool replay` to a broker that was captured, under every name that reaches it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissectors.remoting.command import RemotingCommand
from replay.run.journal import read_steps
from replay.run.journal_rows import OutcomeEntry, Result
from tests.replay.responder import Responder, answer, responding
from tests.replay.script import route_body
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool

SAMPLES = ROOT / "samples"
NOTATIONS = [
    *("127.0.0.1", "127.9.8.7", "localhost", "0.0.0.0", "[::]", "[::1]", "[::1%1]", "127.1", "0"),
    *("[::ffff:0.0.0.0]", "[::ffff:127.0.0.1]", "[::ffff:127.3.3.3]", "0x7f000001", "0177.0.0.1"),
    *("2130706433", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::1]"),
    *("[::ffff:0:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "{hostname}", "{own}"),
]


def _own_address() -> str:
    """An address of this machine that is not loopback, where it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


@pytest.fixture
def captured() -> Iterator[Responder]:
    """A broker that listens on all addresses, and is captured at 127.0.0.1."""
    with responding(everywhere=True) as one:
        yield one


def _capture(broker: Responder, folder: Path, name: str = "own.pcapng") -> Path:
    """Record a send to the broker; forget there that it came."""
    path = folder / name
    sent = rmqtool("send", "-n", broker.address, "-t", "T", "--body", "x", "-q", "--capture", path)
    assert sent.status == 0, sent.err
    broker.received.clear()
    broker.bytes_received = broker.accepted = 0
    return path


def _named(notation: str, broker: Responder) -> str:
    port = broker.address.rpartition(":")[2]
    return f"{notation.format(hostname=socket.gethostname(), own=_own_address())}:{port}"


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("mode", ["sync", "raw"])
def test_as_a_target_it_is_refused(
    captured: Responder, tmp_path: Path, notation: str, mode: str
) -> None:
    path = _capture(captured, tmp_path)
    target = _named(notation, captured)
    done = rmqtool("replay", path, "-n", target, "-y", "-m", mode, "-o", tmp_path / "run")
    assert captured.bytes_received == 0
    assert done.status == 1
    assert "never sent back to where it came from" in done.err


@pytest.mark.parametrize("notation", NOTATIONS)
def test_as_a_broker_of_a_route_it_is_refused(
    captured: Responder, tmp_path: Path, notation: str
) -> None:
    path = _capture(captured, tmp_path)
    named = _named(notation, captured)

    def route(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
        answer(connection, command, 0, {}, route_body({"broker-a": named}))

    with responding() as namesrv:
        namesrv.serve_route = route
        options = ("-n", namesrv.address, "-y", "--top-speed", "--retries", "0")
        rmqtool("replay", path, *options, "-o", tmp_path / "run")
        assert namesrv.received
    assert captured.bytes_received == 0
    rows = [row for row in read_steps(tmp_path / "run") if isinstance(row, OutcomeEntry)]
    assert [row.result for row in rows] == [Result.failed]
    assert "address of the capture" in str(rows[0].reason)


def test_a_pipe_is_read_to_its_end_before_the_first_send(
    captured: Responder, tmp_path: Path
) -> None:
    path = _capture(captured, tmp_path)
    with responding() as one:
        other = _capture(one, tmp_path, "other.pcapng")
    command = [*PROGRAM, "replay", "-", "-n", captured.address, "-y", "--top-speed"]
    command += ["-o", str(tmp_path / "run")]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(["cat", other, path], stdout=subprocess.PIPE) as piped:
        done = subprocess.run(
            command, stdin=piped.stdout, capture_output=True, env=environment, check=False
        )
    assert done.returncode == 1
    assert b"never sent back to where it came from" in done.stderr
    assert captured.accepted == 0
    assert not list(tmp_path.glob("rmqtool-replay-*"))


def test_a_pipe_may_be_a_log_and_be_replayed_twice(tmp_path: Path) -> None:
    sample = SAMPLES / "send-sync-5x.pcap"
    log = rmqtool("decode", "pcap", sample, "--commands", "-T", "jsonl")
    command = [*PROGRAM, "replay", "-", "--target", "sandbox", "--top-speed", "--loop", "2"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "run")],
        input=log.out.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"16 messages in 16 sends; 0 failed" in done.stdout


def test_live_takes_one_pipe_once(tmp_path: Path) -> None:
    sample = str(SAMPLES / "send-sync-5x.pcap")
    for arguments in ((sample,), ("-", "-"), ("-", "--loop", "2")):
        done = rmqtool("replay", *arguments, "--live", "--target", "sandbox", "-o", tmp_path / "r")
        assert done.status == 2, done
        assert "--live" in done.err


def test_one_that_is_learned_while_it_is_connected_ends_the_run(
    captured: Responder, tmp_path: Path
) -> None:
    """A live input: the address is captured after sends have begun."""
    path = _capture(captured, tmp_path)
    with responding() as other:
        first = _capture(other, tmp_path, "other.pcapng")

    def route(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
        answer(connection, command, 0, {}, route_body({"broker-a": captured.address}))

    with responding() as namesrv:
        namesrv.serve_route = route
        command = [*PROGRAM, "replay", "-", "--live", "-n", namesrv.address, "-y", "--top-speed"]
        command += ["-o", str(tmp_path / "run")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            process.stdin.write(first.read_bytes())
            process.stdin.flush()
            _wait_for(captured)
            process.stdin.write(path.read_bytes())
            process.stdin.close()
            err = process.stderr.read().decode()
            assert process.wait() == 1, err
    assert "never sent back to where it came from" in err
    assert len(captured.sends()) == 1


def _wait_for(broker: Responder) -> None:
    """Wait until a send has come."""
    broker.wait_for_sends(1)


def test_the_sandbox_may_have_a_captured_port(tmp_path: Path) -> None:
    """Its listener is our own: nothing that was captured can be there."""
    with responding() as one:
        path = _capture(one, tmp_path)
    done = rmqtool("replay", path, "--target", "sandbox", "-q", "-o", tmp_path / "run")
    assert done.status == 0, done.err
