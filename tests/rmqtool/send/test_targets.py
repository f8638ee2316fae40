"""Where `send` and `replay` go: to what was named, and to what the user agreed to."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from dissectors.remoting.command import RemotingCommand
from tests.patience import PATIENCE, wait_for
from tests.replay.responder import Responder, answer, responding
from tests.replay.script import route_body
from tests.rmqtool.command import PROGRAM, ROOT, Result, rmqtool

SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"
COMMANDS = ["send", "replay"]


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("no address besides loopback")
        return str(probe.getsockname()[0])


@contextmanager
def cluster_at(host: str) -> Iterator[tuple[Responder, Responder, str]]:
    """A NameServer on loopback, a broker that its routes name at `host`, and that address."""
    with responding() as namesrv, responding(everywhere=True) as broker:
        named = f"{host}:{broker.address.rpartition(':')[2]}"

        def route(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
            answer(connection, command, 0, {}, route_body({"broker-a": named}))

        namesrv.serve_route = route
        yield namesrv, broker, named


def _arguments(command: str, namesrv: str, folder: Path) -> list[str]:
    if command == "send":
        return ["send", "-n", namesrv, "-t", "T", "--body", "x"]
    journal = str(folder / f"run-{len(list(folder.iterdir()))}")
    return ["replay", str(SAMPLE), "-n", namesrv, "--top-speed", "--limit", "1", "-o", journal]


def _run(command: str, namesrv: str, folder: Path, *options: str) -> Result:
    return rmqtool(*_arguments(command, namesrv, folder), *options)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_broker_that_only_a_route_names_needs_consent(tmp_path: Path, command: str) -> None:
    with cluster_at(own_address()) as (namesrv, broker, named):
        refused = _run(command, namesrv.address, tmp_path)
        assert refused.status == 1
        assert f"names {named}, which is neither loopback nor allowed" in refused.err
        assert "use --yes, or --allow NETWORK|HOST" in refused.err
        other = _run(command, namesrv.address, tmp_path, "--allow", "203.0.113.0/24")
        assert other.status == 1
        assert broker.accepted == 0
        host = named.rpartition(":")[0]
        for option in (("--yes",), ("--allow", f"{host}/24"), ("--allow", host)):
            agreed = _run(command, namesrv.address, tmp_path, *option)
            assert agreed.status == 0, agreed.err
        assert len(broker.sends()) == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_loopback_needs_none(tmp_path: Path, command: str) -> None:
    for host in ("127.0.0.1", "127.9.8.7", "localhost"):
        with cluster_at(host) as (namesrv, broker, _):
            done = _run(command, namesrv.address, tmp_path)
            assert done.status == 0, done.err
            assert len(broker.sends()) == 1


def test_a_host_that_was_named_needs_none() -> None:
    with responding(everywhere=True) as server:
        address = f"{own_address()}:{server.address.rpartition(':')[2]}"

        def route(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
            answer(connection, command, 0, {}, route_body({"broker-a": address}))

        server.serve_route = route
        done = rmqtool("send", "-n", address, "-t", "T", "--body", "x")
        assert done.status == 0, done.err
        assert len(server.sends()) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_is_not_looked_up_before(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[object] = []
    system = socket.getaddrinfo

    def noted(host: object, *rest: object, **more: object) -> object:
        looked_up.append(host)
        return system("127.0.0.1" if host == "broker.example" else host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", noted)
    with cluster_at("broker.example") as (namesrv, broker, _):
        refused = _run(command, namesrv.address, tmp_path)
        assert refused.status == 1
        assert "broker.example" not in looked_up
        agreed = _run(command, namesrv.address, tmp_path, "--allow", "Broker.Example.")
        assert agreed.status == 0, agreed.err
        assert "broker.example" in looked_up
        assert len(broker.sends()) == 1


def test_a_route_that_changes_is_asked_for_anew(tmp_path: Path) -> None:
    """Messages of another topic make the NameServer name another broker."""
    own = own_address()
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(f'{{"body":"x","topic":"{t}"}}\n' for t in ("A", "B", "C")))
    with responding() as namesrv, responding(everywhere=True) as broker:
        port = broker.address.rpartition(":")[2]

        def route(connection: socket.socket, command: RemotingCommand, _: bytes) -> None:
            host = "127.0.0.1" if command.ext_fields["topic"] == "A" else own
            answer(connection, command, 0, {}, route_body({"broker-a": f"{host}:{port}"}))

        namesrv.serve_route = route
        done = rmqtool("send", "-n", namesrv.address, str(lines))
    assert done.status == 1
    assert "the route of B names" in done.out + done.err
    assert "a broker is not an allowed target; the remaining messages were not sent" in done.err
    assert [command.ext_fields["b"] for command in broker.sends()] == ["A"]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_host_is_not_asked_for(tmp_path: Path, command: str) -> None:
    """It fails as what it is; a question could not show it."""
    with cluster_at("\x1b[2J\nyes") as (namesrv, _, _):
        done = _run(command, namesrv.address, tmp_path, "--retries", "0")
    assert "neither loopback nor allowed" not in done.err
    assert "\x1b" not in done.out + done.err
    assert "is not a loopback address" in done.out + done.err


@pytest.mark.parametrize("text", ["10.0.0.0/99", "10.0.0.0/8/8", "", "host:1", "/8"])
def test_what_is_no_network(text: str) -> None:
    done = rmqtool("send", "-n", "127.0.0.1:1", "-t", "T", "--body", "x", "--allow", text)
    assert done.status == 2
    assert "--allow" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("typed", "sends"), [(b"yes\n", 1), (b"no\n", 0), (b"\n", 0), (None, 0)])
def test_a_terminal_is_asked(tmp_path: Path, command: str, typed: bytes | None, sends: int) -> None:
    """None: Ctrl-C in place of an answer."""
    main, terminal = pty.openpty()
    with cluster_at(own_address()) as (namesrv, broker, named):
        arguments = [*PROGRAM, *_arguments(command, namesrv.address, tmp_path)]
        with subprocess.Popen(
            arguments, stdin=terminal, stderr=terminal, stdout=subprocess.DEVNULL, cwd=ROOT
        ) as running:
            os.close(terminal)
            shown = b""
            while b"Type yes: " not in shown:
                shown += os.read(main, 4096)
            assert f"names {named}".encode() in shown
            assert broker.accepted == 0
            if typed is None:
                running.send_signal(signal.SIGINT)
            else:
                os.write(main, typed)
            wait_for("the end", lambda: _ended(running, main), PATIENCE)
        os.close(main)
        assert (running.returncode == 0) is bool(sends)
        assert len(broker.sends()) == sends
        assert bool(broker.accepted) is bool(sends)


def _ended(running: subprocess.Popen[bytes], terminal: int) -> bool:
    """Whether a process has ended; what it writes meanwhile is taken."""
    os.set_blocking(terminal, False)
    with suppress(OSError):
        os.read(terminal, 65536)
    return running.poll() is not None
