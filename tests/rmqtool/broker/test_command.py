"""`rmqtool broker` as a user runs it, and the lines that it shows."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replay.sandbox import EventKind, SandboxEvent
from rmqtool.broker.event_output import EventDigest, json_of, line_of
from rmqtool.ui.console import UNLIMITED, Terminal
from tests.patience import PATIENCE, wait_for
from tests.replay.sandbox.talk import Talk, send_fields

from ..command import PROGRAM, ROOT, full_after, process, rmqtool

FREE = ("--port", "0", "--namesrv-port", "0")
PLAIN = Terminal(False, UNLIMITED, False)


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """A running broker and the first line of its JSON."""
    command = [*PROGRAM, "broker", *FREE, "--format", "jsonl", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as running:
        try:
            assert running.stdout is not None
            yield running, json.loads(running.stdout.readline())
        finally:
            running.kill()


def send(address: object, topic: str = "Orders") -> int:
    with Talk(str(address)) as broker:
        return broker.ask(310, send_fields(topic), b"x").code


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_a_signal_and_says_what_it_came_to(number: signal.Signals) -> None:
    with started("--brokers", "2", "-t", "Orders:2", "--fault", "busy times=1 broker=broker-b") as (
        run,
        first,
    ):
        brokers = first["brokers"]
        assert isinstance(brokers, dict)
        assert list(brokers) == ["broker-a", "broker-b"]
        assert send(brokers["broker-a"]) == 0
        assert send(brokers["broker-b"]) == 2
        assert send(brokers["broker-b"]) == 0
        run.send_signal(number)
        out, err = run.communicate(timeout=60)
    lines = [json.loads(line) for line in out.splitlines()]
    if number is signal.SIGINT:
        assert (run.returncode, err) == (0, "")
        assert lines[-1]["event"] == "summary"
        assert lines[-1]["faults_hit"] == 1
        assert lines[-1]["brokers"]["broker-a"]["messages_in"] == 1
        assert lines[-1]["brokers"]["broker-b"]["errors"] == {"310:2": 1}
        assert {"event": "answered", "response": 2}.items() <= next(
            line for line in lines if line["event"] == "answered"
        ).items()
    else:
        assert (run.returncode, err) == (143, "rmqtool: terminated\n")


@pytest.mark.slow
def test_connections_wait_where_no_file_is_left_and_come_in_later() -> None:
    """One message; it was a traceback for each try, 1,024 times a second."""
    command = [*PROGRAM, "broker", *FREE, "--format", "jsonl"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80)),
    ) as running:
        try:
            assert running.stdout is not None
            (address,) = json.loads(running.stdout.readline())["brokers"].values()
            idle = [Talk(address) for _ in range(150)]
            told = json.loads(running.stdout.readline())
            assert told["event"] == "refused"
            assert told["detail"] == "too many open files (ulimit -n 80): new connections wait"
            time.sleep(2.5)
            for talk in idle:
                talk.close()
            assert send(address) == 0
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert err == ""
    assert out.count("new connections wait") == 0
    assert running.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_brokers_go_on_where_nothing_can_be_shown() -> None:
    """A disk that is full under standard output broke every connection that was told of."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*PROGRAM, "broker", "--namesrv-port", "0", "--port", str(port), "--log"]
    with open("/dev/full", "wb") as full:
        running = subprocess.Popen(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE)
    with running:
        try:
            wait_for("it listens", lambda: _listens(port))
            assert [send(f"127.0.0.1:{port}") for _ in range(20)] == [0] * 20
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert running.returncode == 1
    assert err.decode().splitlines() == [
        "rmqtool: standard output cannot be written: No space left on device",
        "  the brokers keep running; events are no longer shown",
    ]


@pytest.mark.slow
def test_a_store_on_a_full_disk_is_one_message(tmp_path: Path) -> None:
    """Nobody is told that a message is stored, nothing hangs, and what was stored is there."""
    path = tmp_path / "box.db"

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*PROGRAM, "broker", "--namesrv-port", "0", "--port", str(port)]
    running = subprocess.Popen(
        [*command, "--store", str(path)],
        cwd=ROOT,
        stdout=-1,
        stderr=-1,
        preexec_fn=full_after(200_000),
    )
    with running:
        try:
            wait_for("it listens", lambda: _listens(port))
            stored = _stored_until_the_end(port)
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
    assert 0 < stored < 60
    assert running.returncode == 1
    assert b"Traceback" not in err
    assert err.count(b"rmqtool:") == 1
    assert str(path).encode() in err
    with started("--store", str(path)) as (_, first):
        brokers = first["brokers"]
        assert isinstance(brokers, dict)
        with Talk(brokers["broker-a"]) as broker:
            offsets = {"topic": "Orders"}
            counts = [
                int(broker.ask(30, offsets | {"queueId": str(queue)}).fields.get("offset", "0"))
                for queue in range(4)
            ]
        assert sum(counts) >= stored


def _stored_until_the_end(port: int) -> int:
    """Send until the connection ends; how many messages were said to be stored."""
    stored = 0
    with contextlib.suppress(OSError), Talk(f"127.0.0.1:{port}") as broker:
        while broker.ask(310, send_fields("Orders"), b"x" * 4000).code == 0:
            stored += 1
    return stored


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.mark.slow
def test_it_shows_where_it_listens_and_how_to_send() -> None:
    done = process(
        "broker", *FREE, "--duration", "300ms", "-t", "Orders:2", "--fault", "latency=5ms"
    )
    assert (done.status, done.err) == (0, "")
    lines = [line.split(maxsplit=1) for line in done.out.splitlines() if line]
    table = {line[0]: line[1] for line in lines if len(line) == 2}
    assert table["namesrv"].startswith("127.0.0.1:")
    assert table["topics"] == "Orders (2 queues)"
    assert table["fault"] == "latency=5ms"
    assert table["send"] == f"rmqtool send -n {table['namesrv']} -t Orders --body hello"
    assert "ended after" in done.out


@pytest.mark.slow
def test_messages_are_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "box.db"
    with started("--store", str(path)) as (run, first):
        brokers = first["brokers"]
        assert isinstance(brokers, dict)
        assert send(brokers["broker-a"]) == 0
        run.kill()
        run.wait(60)
    done = process("broker", *FREE, "--duration", "100ms", "--store", path)
    assert f"{path} (1 message)" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--listen", "0.0.0.0"), "can be reached from other machines"),
        (("--listen", "localhost"), "'localhost' is not a valid IP address"),
        (("--fault", "explode"), "'explode' is not a kind of fault"),
        (("--faults", "none.toml"), "none.toml: No such file"),
        (("-t", "no spaces"), "--topic: 'no spaces' is not a valid topic"),
        (("-t", "Orders:0"), "is not a valid topic"),
        (("--server-version", "7.0.0"), "'7.0.0' is not a release"),
        (("--store-limit", "much"), "--store-limit: not a valid size: 'much'"),
        (("--duration", "long"), "not a valid duration: 'long'"),
        (("--serialize", "xml"), "--serialize: must be JSON or ROCKETMQ, not 'XML'"),
    ],
)
def test_what_cannot_be_is_a_usage_error(arguments: tuple[str, ...], message: str) -> None:
    result = rmqtool("broker", *FREE, "--duration", "1ms", *arguments)
    assert result.status == 2
    assert message in result.err
    assert "Traceback" not in result.err


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = rmqtool("broker", "--port", port, "--namesrv-port", "0", "--duration", "1ms")
    assert result.status == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.err
    assert "give another port" in result.err


# -- lines -----------------------------------------------------------------------------------------


def shown(events: list[SandboxEvent], everything: bool = False, end_ms: int = 10_000) -> list[str]:
    digest = EventDigest(everything)
    lines = [line_of(item, PLAIN) for event in events for item in digest.receive(event)]
    return lines + [line_of(item, PLAIN) for item in digest.finish(end_ms)]


def sent(at_ms: int, messages: int = 1) -> SandboxEvent:
    return SandboxEvent(
        at_ms, EventKind.SENT, "broker-a", "127.0.0.1:5", "", 310, "Orders", messages
    )


def test_sends_are_counted_and_errors_are_shown_once() -> None:
    refused = SandboxEvent(
        5, EventKind.ANSWERED, "broker-a", "127.0.0.1:5", "busy", 310, "Orders", 1, 2
    )
    lines = shown([sent(1), refused, sent(2, 3), refused, refused])
    assert lines == [
        "00:00:00.005  broker-a   answered      "
        "SEND_MESSAGE_V2 to Orders responded 2 SYSTEM_BUSY busy",
        "00:00:10.000  broker-a   sent          4 messages of Orders",
        "00:00:10.000  broker-a   answered      "
        "SEND_MESSAGE_V2 to Orders responded 2 SYSTEM_BUSY busy (2 more in the last 10 s)",
    ]


def test_everything_is_shown_when_asked_for() -> None:
    connected = SandboxEvent(1, EventKind.CONNECTED, "broker-a", "127.0.0.1:5")
    idle = SandboxEvent(2, EventKind.ANSWERED, "broker-a", "", "", 11, "Orders", 1, 19)
    assert shown([connected, idle]) == []
    assert len(shown([connected, idle, sent(3), sent(4)], everything=True)) == 4


def test_text_of_the_network_is_made_printable() -> None:
    evil = SandboxEvent(1, EventKind.ANSWERED, "broker-a", "", "\x1b[2J\nx", 310, "T\u202e", 1, 17)
    (line,) = shown([evil])
    assert line.isprintable()
    digest = EventDigest(True)
    assert json.loads(json.dumps([json_of(item) for item in digest.receive(evil)]))


def test_many_different_events_do_not_fill_the_memory() -> None:
    digest = EventDigest(False)
    shown = 0
    for number in range(30_000):  # those that are shown are kept, to count further equal ones
        event = SandboxEvent(number, EventKind.TOPIC, "broker-a", topic=f"T{number}")
        shown += len(list(digest.receive(event)))
    assert shown <= 10_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--allow-remote",), "--allow-remote: needs --listen ADDRESS"),
        (("--log", "--quiet"), "--log and --quiet: cannot be combined"),
        (("-t", "A:4,B", "-t", "A:8"), "--topic: A is given twice"),
        (("--fault", "busy broker=broker-b"), "busy broker=broker-b: no broker has such a name"),
    ],
)
def test_options_that_would_change_nothing_are_refused(
    arguments: tuple[str, ...], says: str
) -> None:
    done = rmqtool("broker", *FREE, "--duration", "100ms", *arguments)
    assert (done.status, done.out) == (2, "")
    assert says in done.err
