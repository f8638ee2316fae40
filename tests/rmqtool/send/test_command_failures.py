"""`rmqtool send` where something fails: brokers, options, the environment, the reader."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from replay.sandbox import Injection, SandboxOptions, SandboxThread, TopicSpec, sandbox_thread
from replay.sandbox.injection.injection import InjectionKind
from rmqtool import read
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool

from .sending import send_to

FAULTS = {
    "down": (InjectionKind.DOWN, "connect"),
    "silent": (InjectionKind.SILENT, "timeout"),
    "garbage": (InjectionKind.GARBAGE, "garbage"),
    "huge": (InjectionKind.HUGE, "garbage"),
    "half": (InjectionKind.HALF, "lost"),
    "disk": (InjectionKind.DISK_FULL, "SERVICE_NOT_AVAILABLE"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_broker_that_fails_is_seen_and_avoided(name: str) -> None:
    kind, outcome = FAULTS[name]
    fault = Injection(kind, broker="broker-a")
    topics = [TopicSpec("T", 1)]
    timeout = "700ms" if name == "silent" else "30s"  # what fails at once leaves time for others
    with sandbox_thread(SandboxOptions(brokers=2, topics=topics, injections=[fault])) as box:
        arguments = ("-t", "T", "--body", "x", "--count", "4", "--timeout", timeout)
        result = send_to(box, *arguments, "--format", "jsonl", "-q")
    objects = [json.loads(line) for line in result.out.splitlines()]
    tries = [attempt for one in objects for attempt in one["attempts"]]
    bad = [attempt for attempt in tries if attempt["broker"] == "broker-a"]
    assert bad
    seen = {attempt["code_name"] or attempt["outcome"] for attempt in bad}
    assert outcome in seen or (name in ("down", "half") and seen <= {"connect", "lost"})
    for one in objects:  # a time-out takes the time of the whole send
        assert (one["status"] == "SEND_OK") == (one["attempts"][-1]["broker"] == "broker-b")
    assert result.status == (1 if name == "silent" else 0)
    if name != "silent":
        assert any(len(one["attempts"]) == 2 for one in objects)


def test_what_may_be_there_twice_is_named() -> None:
    fault = Injection(InjectionKind.DROP, broker="broker-a", stored=True)
    with sandbox_thread(
        SandboxOptions(brokers=2, topics=[TopicSpec("T", 1)], injections=[fault])
    ) as box:
        result = send_to(box, "-t", "T", "--body", "x", "--count", "6")
    assert result.status == 0
    twice = next(line for line in result.out.splitlines() if "possibly stored twice" in line)
    keys = twice.split(": ")[1].split(", ")
    assert 5 <= len(keys) <= 6  # after two tries it is the turn of the same broker again
    assert all(len(key) == 32 for key in keys)
    assert f"{len(keys)} took more than one attempt" in result.out


def test_a_failed_message_says_the_way_out(box: SandboxThread) -> None:
    result = send_to(box, "-t", "T", "--body", "x", "-b", "broker-z")
    assert result.status == 1
    assert "T has no queue on broker broker-z\n  it has queues on broker-a, broker-b" in result.err
    refused = rmqtool("send", "-n", "127.0.0.1:1", "-t", "T", "--body", "x")
    assert refused.status == 1
    assert "no connection to 127.0.0.1:1" in refused.err
    assert "check the port and that the server is running" in refused.err


def test_a_piped_body_is_one_message(box: SandboxThread, tmp_path: Path) -> None:
    def sent(body: bytes, capture: str, *more: str) -> subprocess.CompletedProcess[bytes]:
        options = ("-n", box.namesrv, "-t", "T", "--capture", tmp_path / capture, *more)
        command = [*PROGRAM, "send", *map(str, options)]
        return subprocess.run(command, input=body, capture_output=True, cwd=ROOT, check=False)

    for number, more in enumerate(((), ("--body", "-"), ("--file", "-"))):
        capture = f"{number}.pcapng"
        done = sent(b"one\ntwo \xff", capture, *more)
        assert done.returncode == 0, done.stderr
        (message,) = read(str(tmp_path / capture)).messages("event == stored", body_limit=100)
        assert message.body_bytes == len(b"one\ntwo \xff")
    too_large = sent(b"x" * 5_000_000, "none.pcapng")
    assert too_large.returncode == 2
    assert b"too large" in too_large.stderr or b"bytes" in too_large.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no message body"),
        (("--body", "x"), "name the topic"),
        (("-t", "T", "--body", "x", "--file", "y"), "--body and --file"),
        (("-t", "T", "--body", "x", "lines.txt"), "--body and lines"),
        (("-t", "T", "--body", "x", "--queue", "1"), "needs -b NAME"),
        (("-t", "T", "--body", "x", "-b", "b", "--order-key", "k"), "both choose the queue"),
        (("-t", "T", "--body", "x", "--property", "KEYS=1"), "RocketMQ's own"),
        (("-t", "T", "--body", "x", "--property", "a"), "NAME=VALUE"),
        (("-t", "T", "--body", "x", "--deliver-at", "soon"), "not a valid time"),
        (("-t", "T", "--body", "x", "--deliver-at", "+x"), "not a valid duration"),
        (("-t", "T", "--body", "x", "--rate", "fast"), "is not a valid rate"),
        (("-t", "T", "--body", "x", "--mode", "later"), "must be one of sync, async, oneway"),
        (("-t", "T", "--body", "x", "--fault-strategy", "9"), "must be one of off, 4.7"),
        (("-t", "T", "--body", "x", "--client", "9.9.9"), "not a release"),
        (("-t", "T", "--body", "x", "--header", "xml"), "neither json nor rocketmq"),
        (("-t", "T", "--body", "x", "--transaction", "maybe"), "must be one of commit"),
        (
            ("-t", "T", "--body", "x", "--transaction", "commit", "--batch", "2"),
            "cannot be combined",
        ),
        *(
            (("-t", "T", "--body", "x", *options.split()), message)
            for options, message in (
                ("--transaction commit --delay-level 1", "cannot be combined with --delay-level"),
                ("--input jsonl", "--input: is the format of lines"),
                ("--batch 2 --compress zlib", "--compress: cannot be combined with --batch"),
                ("--retries 1 --mode oneway", "--retries: cannot be combined with --mode oneway"),
                ("--retries 1 -b b", "--retries: cannot be combined with --broker"),
                ("--retries 2 --order-key k", "--retries: cannot be combined with --order-key"),
                ("--fault-strategy 5.1 -b b", "--fault-strategy: cannot be combined with --broker"),
                ("--fault-strategy 5.1 --order-key k --mode async", "with --order-key"),
                ("--trace --mode oneway", "--trace: cannot be combined with --mode oneway"),
            )
        ),
        (("-t", "T", "--body", "x", "--acl", "env"), "ROCKETMQ_ACCESS_KEY"),
        (("-t", "T", "--body", "x", "--tls", "nowhere.pem"), "no file"),
        (("-t", "T", "--body", "x", "--tls-name", "a"), "needs --tls"),
        (("-t", "T", "--body", "x", "--tls", "insecure", "--tls-any-name"), "needs --tls"),
        (("-t", "T", "--body", "x", "--tls", "system", "--tls-name", ".x"), "valid host name"),
        (("-t", "T", "--body", "x", "--tls-name", "a", "--tls-any-name"), "cannot be combined"),
        (("-t", "T", "--body", "x", "--log", "log.csv"), ".jsonl or .parquet"),
        (("-t", "T", "--body", "x", "--group", "DEFAULT_PRODUCER"), "not a valid name for a group"),
    ],
)
def test_command_lines_that_make_no_sense(arguments: tuple[str, ...], message: str) -> None:
    result = rmqtool("send", "-n", "127.0.0.1:1", *arguments)
    assert result.status == 2
    assert message in result.err
    assert result.out == ""


def test_a_folder_is_no_file_of_lines(tmp_path: Path) -> None:
    result = rmqtool("send", "-n", "127.0.0.1:1", "-t", "T", tmp_path)
    assert (result.status, result.err) == (1, f"rmqtool: {tmp_path}: Is a directory\n")


def test_the_log_and_the_capture_are_two_files(tmp_path: Path) -> None:
    files = ("--log", tmp_path / "x.jsonl", "--capture", tmp_path / "." / "x.jsonl", "--force")
    result = rmqtool("send", "-n", "127.0.0.1:1", "-t", "T", "--body", "x", *files)
    assert result.status == 2
    assert "--log and --capture: are one file" in result.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["table", "jsonl"])
@pytest.mark.parametrize("count", ["1", "2"])
def test_hints_name_options_and_no_settings_of_programs(form: str, count: str) -> None:
    with sandbox_thread(SandboxOptions(port=0)) as box:
        to_vip = ("send", "-n", box.namesrv, "-t", "T", "--body", "x", "--vip")
        result = rmqtool(*to_vip, "--format", form, "--count", count)
    assert result.status == 1
    assert "turn it off: --no-vip" in result.out + result.err
    assert "vip_channel" not in result.out + result.err
    assert "--vip=" not in result.out + result.err


def test_without_a_namesrv_nothing_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    result = rmqtool("send", "-t", "T", "--body", "x")
    assert result.status == 2
    assert "no NameServer given" in result.err
    assert "NAMESRV_ADDR" in result.err


def test_a_namesrv_that_is_silent_stored_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        result = rmqtool("send", "-n", address, "-t", "T", "--body", "x", "--timeout", "300ms")
    assert result.status == 1
    assert f"no response from {address}" in result.err
    assert "the server is slow, frozen, or unreachable" in result.err
    assert "stored" not in result.err


def test_without_a_namesrv_that_answers_the_rest_is_not_tried() -> None:
    arguments = (
        "-n",
        "127.0.0.1:1",
        "-t",
        "T",
        "--body",
        "x",
        "--count",
        "5000",
        "--in-flight",
        "8",
    )
    result = rmqtool("send", *arguments)
    assert result.status == 1
    assert 1 <= result.out.count("not sent") < 100
    assert "connection refused" in result.out
    assert "the remaining messages were not sent" in result.err


def test_many_failures_do_not_fill_the_screen() -> None:
    faults = [Injection(InjectionKind.ERROR, code=13, remark="no")]
    with sandbox_thread(SandboxOptions(injections=faults)) as broken:
        result = send_to(broken, "-t", "T", "--body", "x", "--count", "500", "--mode", "async")
    assert result.status == 1
    assert 100 <= len(result.out.splitlines()) < 140
    assert "380 messages not shown" in result.err
    assert "500 failed" in result.out


def test_control_characters_of_a_broker_do_not_reach_the_screen() -> None:
    fault = Injection(InjectionKind.ERROR, code=13, remark="\x1b[2J evil \u202e")
    with sandbox_thread(SandboxOptions(injections=[fault])) as box:
        result = send_to(box, "-t", "T", "--body", "x")
    assert result.status == 1
    assert "evil" in result.out
    assert "\x1b" not in result.out + result.err
    assert "\u202e" not in result.out + result.err


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_a_remark_cannot_forge_a_line(end: str) -> None:
    remark = f"no{end}rmqtool: 1 message sent{end}{end}rmqtool: all is well"
    fault = Injection(InjectionKind.ERROR, code=13, remark=remark)
    with sandbox_thread(SandboxOptions(injections=[fault])) as box:
        result = send_to(box, "-t", "T", "--body", "x")
    assert result.status == 1
    lines = (result.out + result.err).splitlines()
    assert sum("all is well" in line for line in lines) >= 1
    assert [
        line for line in lines if line.startswith("rmqtool:") and "failed after" not in line
    ] == []


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_ctrl_c_ends_what_is_in_flight_and_shows_the_summary(
    box: SandboxThread, tmp_path: Path, mode: str
) -> None:
    log = tmp_path / "log.jsonl"
    arguments = ("-t", "T", "--body", "x", "--count", "100000", "--rate", "100/s", "--mode", mode)
    command = [*PROGRAM, "send", "-n", box.namesrv, *arguments, "--log", str(log)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=os.environ.copy()
    )
    assert running.stdout is not None
    running.stdout.readline()
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert b"latency: p50" in out
    assert b"stopped; sends in flight have ended" in err
    assert b"Traceback" not in err
    sent = int(out.decode().split(" messages in ")[0].split()[-1])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(rows) == sent
    assert {row["status"] for row in rows} == {"answered"}


@pytest.mark.parametrize("form", ["table", "jsonl"])
def test_a_reader_that_has_seen_enough_ends_the_run(box: SandboxThread, form: str) -> None:
    arguments = ("-t", "T", "--body", "x", "--count", "50000", "--mode", "async", "-V")
    command = [*PROGRAM, "send", "-n", box.namesrv, *arguments, "--format", form]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_log_that_cannot_be_written_ends_the_run(box: SandboxThread, tmp_path: Path) -> None:
    log = tmp_path / "full.jsonl"
    log.symlink_to("/dev/full")
    arguments = ("-t", "T", "--body", "x", "--count", "5000", "--mode", "async", "-q")
    result = send_to(box, *arguments, "--log", log)
    assert result.status == 1
    assert "full.jsonl cannot be written: No space left on device" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("option", ["--log", "--capture"])
@pytest.mark.parametrize("read", ["lines", "--file", "--acl", "--tls"])
def test_what_is_read_is_not_written(tmp_path: Path, option: str, read: str) -> None:
    given = tmp_path / "given.jsonl"
    given.write_text("accessKey=a\nsecretKey=b\n")
    link = tmp_path / "link.jsonl"
    link.hardlink_to(given)
    body = [str(given)] if read == "lines" else ["--body", "x"]
    more = [] if read == "lines" else [read, str(given)]
    if read == "--file":
        body = []
    before = given.read_bytes()
    command = ("send", "-n", "127.0.0.1:1", "-t", "T", *body, *more, option, str(link))
    result = rmqtool(*command)
    assert result.status == 2, result.err
    assert (
        f"is also an input and would be overwritten\n  give another name to {option}" in result.err
    )
    assert given.read_bytes() == before


def test_a_capture_that_cannot_be_created_leaves_no_log(tmp_path: Path) -> None:
    log, capture = tmp_path / "log.parquet", tmp_path / "nowhere" / "x.pcapng"
    arguments = ("-t", "T", "--body", "x", "--log", log, "--capture", capture)
    command = [*PROGRAM, "send", "-n", "127.0.0.1:1", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert done.stderr == f"rmqtool: --capture: {capture}: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


def test_only_the_user_may_read_what_was_sent(box: SandboxThread, tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("a.jsonl", "a.parquet", "a.pcapng")]
    arguments = ("-t", "T", "--body", "x", "--capture", names[2])
    assert send_to(box, *arguments, "--log", names[0]).status == 0
    assert send_to(box, "-t", "T", "--body", "x", "--log", names[1]).status == 0
    assert [name.stat().st_mode & 0o777 for name in names] == [0o600] * 3
