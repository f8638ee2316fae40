"""`rmqtool proxy` as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replay.proxy import recording
from replay.sandbox import SandboxOptions, TopicSpec, sandbox_thread
from rmqtool.proxy.run import _end_recording
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool

pytestmark = pytest.mark.slow
BOX = SandboxOptions(port=0, namesrv_port=0, topics=[TopicSpec("T", 2)])


@contextmanager
def started(
    namesrv: str, *arguments: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """A running proxy and the first line of its JSON."""
    command = [*PROGRAM, "proxy", "-n", namesrv, "--listen", "127.0.0.1:0", "-T", "jsonl"]
    with subprocess.Popen(
        [*command, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    ) as running:
        try:
            assert running.stdout is not None
            yield running, json.loads(running.stdout.readline())
        finally:
            running.kill()


def test_it_records_until_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "p.pcapng"
    with sandbox_thread(BOX) as box, started(box.namesrv, "--write", str(path)) as (run, first):
        assert first["for"] == [box.namesrv]
        sent = rmqtool("send", "-n", str(first["namesrv"]), "-t", "T", "--body", "x", "-T", "jsonl")
        assert sent.status == 0
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, "")
    summary = json.loads(out.splitlines()[-1])
    assert summary["rewritten_responses"] >= 1
    assert list(summary["brokers"]) == [box.addresses["broker-a"]]
    assert summary["recordings"][0]["bytes"] == path.stat().st_size
    rows = [json.loads(line) for line in rmqtool("decode", path, "-T", "jsonl").out.splitlines()]
    assert [row["server_address"] for row in rows if row["request_code"] == 310] == [
        box.addresses["broker-a"]
    ]


def test_a_pipe_has_packets_and_nothing_else(tmp_path: Path) -> None:
    command = [*PROGRAM, "proxy", "--listen", "127.0.0.1:0", "-T", "jsonl", "-w", "-", "-n"]
    path = tmp_path / "out.pcapng"
    with sandbox_thread(BOX) as box, path.open("wb") as out:
        run = subprocess.Popen(
            [*command, box.namesrv], cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True
        )
        with run:
            assert run.stderr is not None
            first = json.loads(run.stderr.readline())
            assert rmqtool("send", "-n", first["namesrv"], "-t", "T", "--body", "x").status == 0
            run.send_signal(signal.SIGINT)
            run.wait(60)
    assert rmqtool("decode", path, "--where", "request_code == 310").out.count("SEND_MESSAGE") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no NameServer given"),
        (("-n", "127.0.0.1:9876"), "--listen: 127.0.0.1:9876 is the NameServer itself"),
        (("-n", "h:1", "--listen", "127.0.0.1:x"), "is not ADDRESS:PORT"),
        (("-n", "h:1", "--listen", "0.0.0.0:1"), "--listen: other machines reach 0.0.0.0"),
        (("-n", "h:1", "--listen-cert", "none.pem"), "there is no file none.pem"),
        (("-n", "h:1", "--fault", "nonsense"), "is not a kind of fault"),
        (("-n", "h:1", "--allow", "10.0.0.0/99"), "--allow"),
        (("-n", "h:1", "--fault", "leave-route"), "only the sandbox has it"),
        (("-n", "h:1", "--mirror", "h:1"), "h:1 is the real cluster"),
        (("-n", "h:1", "--mirror-where", "topic == 'x'"), "need --mirror"),
        (("-n", "h:1", "--grpc-port", "0"), "--grpc-port: needs --grpc HOST:PORT"),
        (("-n", "h:1", "--mirror", "m:1", "--mirror-where", "nothing =="), "--mirror-where"),
        (("-n", "h:1", "--mirror", "m:1", "--mirror-output", "docs"), "docs exists; name another"),
        (("-n", "h:1", "-o", "docs"), "--output: docs is not a file"),
        (("-n", "h:1", "-o", "log/"), "--output: log/ is not a file"),
        (("-n", "h:1", "-o", "-"), "--output: - is not a file"),
        (("-n", "h:1", "-o", "x.html"), "x.html is an HTML file name"),
        (("-n", "h:1", "-o", "nowhere/x.csv"), "--output: nowhere is not a folder"),
        (("-n", "h:1", "-o", "x.csv", "-w", "x.csv"), "-o and -w: x.csv cannot hold both"),
        (("-n", "h:1", "--log", "-q"), "--log and --quiet: cannot be combined"),
    ],
)
def test_what_cannot_be_is_said_before_anything_listens(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.chdir(ROOT)
    result = rmqtool("proxy", *arguments)
    assert result.status == 2
    assert words in result.err


def test_a_recording_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "there.pcapng"
    path.write_text("mine")
    result = rmqtool("proxy", "-n", "127.0.0.1:1", "-w", path)
    assert result.status == 2
    assert "already exists" in result.err
    assert path.read_text() == "mine"


def test_json_is_one_array() -> None:
    listen = ("--listen", "127.0.0.1:0", "--duration", "100ms")
    result = rmqtool("proxy", "-n", "127.0.0.1:1", *listen, "-T", "json")
    assert [row["event"] for row in json.loads(result.out)] == ["started", "summary"]


def test_a_decoded_log_says_which_requests_a_fault_hit(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    faults = ("--fault", "latency=200ms times=1", "--seed", "3")
    with sandbox_thread(BOX) as box, started(box.namesrv, "-o", str(log), *faults) as (run, first):
        for _ in range(2):
            sent = rmqtool("send", "-n", str(first["namesrv"]), "-t", "T", "--body", "x")
            assert sent.status == 0
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["faults_hit"] == 1
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    sends = [row for row in rows if row["request_code"] == 310]
    assert [any(f.startswith("fault=") for f in row["facts"]) for row in sends] == [True, False]


def test_a_mirror_gets_the_sends_that_were_chosen(tmp_path: Path) -> None:
    topics = [TopicSpec("T", 2), TopicSpec("U", 2)]
    options = SandboxOptions(port=0, namesrv_port=0, topics=topics)
    with sandbox_thread(options) as box, sandbox_thread(options) as second:
        mirror = ("--mirror", second.namesrv, "--mirror-where", "topic == 'U'")
        folder = ("--mirror-output", str(tmp_path / "journal"))
        with started(box.namesrv, *mirror, *folder) as (run, first):
            for topic in "TUTUU":
                sent = rmqtool("send", "-n", str(first["namesrv"]), "-t", topic, "--body", topic)
                assert sent.status == 0
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=90)
        assert run.returncode == 0, err
        stored = sum(one.state.messages_in for one in second.sandbox.brokers.values())
    assert stored == 3
    assert "3 messages in 3 sends; 0 failed" in err
    assert "2 does not match --where" in err


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    arguments = ("--write", str(pipe), "--force")
    with sandbox_thread(BOX) as box, started(box.namesrv, *arguments) as (run, _):
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
    assert pipe.is_fifo()
    assert os.read(reader, 4) == b"\x0a\x0d\x0d\x0a"
    os.close(reader)


def test_a_reader_that_does_not_take_the_rest_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "_END_SECONDS", 0.1)
    reading, writing = os.pipe()
    taps = [
        recording.Tap("file", os.open(os.devnull, os.O_WRONLY)),
        recording.Tap("pipe", writing),
    ]
    record = recording.Recording(taps)
    record.write(bytes(1 << 20))
    assert not _end_recording(record, [])
    assert capsys.readouterr().err == "rmqtool: pipe: the last 1.05 MB were not read in time\n"
    os.close(reading)  # its thread ends
    monkeypatch.setattr(recording, "_END_SECONDS", 60)
    record.finish()
    assert _end_recording(record, [])
