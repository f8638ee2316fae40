"""`rmqtool send` against the sandbox: what is sent, what is shown, what is written, the status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode
from replay.sandbox import Injection, SandboxOptions, SandboxThread, TopicSpec, sandbox_thread
from replay.sandbox.injection.injection import InjectionKind
from tests.patience import Stopwatch
from tests.rmqtool.command import PROGRAM, ROOT, Result, process, rmqtool

SECRET = "secret-that-nobody-may-see"


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxThread]:
    """Two brokers with a topic on both."""
    with sandbox_thread(SandboxOptions(brokers=2, topics=[TopicSpec("T", 2)])) as started:
        yield started


def _send(box: SandboxThread, *arguments: str | Path, **environment: str) -> Result:
    return rmqtool("send", "-n", box.namesrv, *arguments, **environment)


def _objects(result: Result) -> list[dict[str, object]]:
    assert result.status == 0, result
    return [json.loads(line) for line in result.out.splitlines()]


def _stored(box: SandboxThread, topic: str, folder: Path, *arguments: str) -> list[object]:
    """Messages as a capture of their sends has them: (body, properties, ext fields)."""
    path = folder / f"{time.monotonic_ns()}.pcapng"
    result = _send(box, "-t", topic, "--capture", path, "-q", *arguments)
    assert result.status == 0, result
    found: list[object] = []
    for batch in Decode([str(path)]).exchanges():
        for exchange in batch:
            if exchange.request is not None and exchange.request.command.code in (310, 320):
                found.append((exchange.request.body, exchange.request.command.ext_fields))
    return found


def test_one_message_is_one_line(box: SandboxThread) -> None:
    result = _send(box, "-t", "T", "--body", "hello")
    assert result.status == 0
    head, line = result.out.splitlines()
    assert head.split()[:5] == ["MESSAGE", "TRY", "TIME", "LATENCY", "OUTCOME"]
    assert "SEND_OK" in line
    assert "round robin" in line
    assert "broker-" in line
    assert result.err == ""


def test_everything_that_can_be_said_of_a_message_is_sent(
    box: SandboxThread, tmp_path: Path
) -> None:
    arguments = ("--body", "bödy", "--tags", "tag", "-k", "k1 k2", "--property", "a=b=c")
    (body, fields), *more = _stored(box, "T", tmp_path, *arguments, "--delay-level", "3")
    assert not more
    assert body == "bödy".encode()
    for text in ("TAGS\x01tag\x02", "KEYS\x01k1 k2\x02", "a\x01b=c\x02", "DELAY\x013\x02"):
        assert text in fields["i"]
    assert fields["a"] == "rmqtool"


def test_a_file_is_a_body(box: SandboxThread, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(bytes(range(256)))
    ((body, _),) = _stored(box, "T", tmp_path, "--file", str(path))
    assert body == bytes(range(256))


@pytest.mark.parametrize("mode", ["sync", "async", "oneway"])
def test_many_messages_end_with_a_summary(box: SandboxThread, mode: str) -> None:
    result = _send(box, "-t", "T", "--body", "x", "--count", "200", "--mode", mode)
    assert result.status == 0
    name = "oneway" if mode == "oneway" else "SEND_OK"
    assert f"200 {name}" in result.out
    assert ("latency: p50" in result.out) == (mode != "oneway")
    assert "180 messages not shown" in result.err
    verbose = _send(box, "-t", "T", "--body", "x", "--count", "50", "--mode", mode, "-V")
    assert len([line for line in verbose.out.splitlines() if "round robin" in line]) == 50


def test_a_queue_and_a_broker_can_be_chosen(box: SandboxThread) -> None:
    arguments = ("-t", "T", "--body", "x", "--count", "4", "--format", "jsonl", "-q")
    chosen = _objects(_send(box, *arguments, "-b", "broker-b", "--queue", "1"))
    assert {(one["broker"], one["queue_id"]) for one in chosen} == {("broker-b", 1)}
    turns = _objects(_send(box, *arguments, "-b", "broker-a"))
    assert [(one["broker"], one["queue_id"]) for one in turns] == [
        ("broker-a", number % 2) for number in (1, 2, 3, 4)
    ]
    keyed = _objects(_send(box, *arguments, "--order-key", "order-1"))
    assert len({(one["broker"], one["queue_id"]) for one in keyed}) == 1


def test_batches(box: SandboxThread) -> None:
    arguments = (
        "-t",
        "T",
        "--body",
        "x",
        "--count",
        "25",
        "--batch",
        "10",
        "--format",
        "jsonl",
        "-q",
    )
    objects = _objects(_send(box, *arguments))
    assert [one["messages"] for one in objects] == [10, 10, 5]
    assert [str(one["unique_key"]).count(",") for one in objects] == [9, 9, 4]


def test_lines_are_messages(box: SandboxThread, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\r\n\n  \ntwo\n" + "drei €".encode())
    bodies = [body for body, _ in _stored(box, "T", tmp_path, str(path))]
    assert bodies == [b"one", b"two", "drei €".encode()]


def test_json_lines_say_more(box: SandboxThread, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    lines = [
        {"body": "one", "tags": "t", "keys": ["a", "b"], "properties": {"n": 1}},
        {"body_base64": "AAE=", "topic": "Other", "delay_level": 2},
        {"body": {"a": [1]}, "broker": "broker-b", "queue": 1, "flag": 7},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    stored = _stored(box, "T", tmp_path, str(path))
    assert [body for body, _ in stored] == [b"one", b"\0\1", b'{"a":[1]}']
    fields = [fields for _, fields in stored]
    assert [each["b"] for each in fields] == ["T", "Other", "T"]
    assert "KEYS\x01a b\x02" in fields[0]["i"]
    assert "n\x011\x02" in fields[0]["i"]
    assert "DELAY\x012\x02" in fields[1]["i"]
    assert (fields[2]["n"], fields[2]["e"], fields[2]["h"]) == ("broker-b", "1", "7")


def test_lines_that_are_no_messages_are_told_and_the_others_sent(
    box: SandboxThread, tmp_path: Path
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"body":"x"}\nnope\n{"bod":1}\n{"body":"y"}\n')
    result = _send(box, "-t", "T", path)
    assert result.status == 1
    assert "line 2 is no JSON" in result.err
    assert "line 3 has a member 'bod'" in result.err
    assert "2 SEND_OK, 2 failed" in result.out


def test_standard_input_that_comes_slowly_is_sent_as_it_comes(box: SandboxThread) -> None:
    command = [*PROGRAM, "send", "-n", box.namesrv, "-t", "T", "-", "--format", "jsonl", "-q"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for line in (b"first\n", b"second\n"):
            running.stdin.write(line)
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["status"] == "SEND_OK"
        running.stdin.close()
        assert running.wait(60) == 0


def test_a_rate_is_kept(box: SandboxThread) -> None:
    watch = Stopwatch()
    result = _send(box, "-t", "T", "--body", "x", "--count", "31", "--rate", "50/s", "-q")
    assert watch.seconds > 0.55
    assert watch.own < 3
    assert "31 SEND_OK" in result.out


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_attempts_are_rows_of_a_log(box: SandboxThread, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"attempts.{suffix}"
    result = _send(box, "-t", "T", "--body", "x", "-k", "k", "--count", "600", "--log", path)
    assert result.status == 0
    assert f"600 attempts → {path}" in result.err
    if suffix == "jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        rows = parquet.read_table(path).to_pylist()
    assert len(rows) == 600
    assert {row["status"] for row in rows} == {"answered"}
    assert {row["topic"] for row in rows} == {"T"}
    assert {row["keys"] for row in rows} == {"k"}
    assert {row["response_name"] for row in rows} == {"SUCCESS"}
    assert len({row["unique_key"] for row in rows}) == 600


def test_the_log_equals_the_capture(box: SandboxThread, tmp_path: Path) -> None:
    log, capture = tmp_path / "log.jsonl", tmp_path / "wire.pcapng"
    arguments = ("-t", "T", "--body", "x", "--count", "20", "--mode", "async", "-q")
    assert _send(box, *arguments, "--log", log, "--capture", capture).status == 0
    ours = sorted(
        (json.loads(line) for line in log.read_text().splitlines()), key=lambda row: row["opaque"]
    )
    result = rmqtool(
        "decode", "pcap", capture, "--format", "jsonl", "--where", "request_code == 310"
    )
    theirs = sorted(map(json.loads, result.out.splitlines()), key=lambda row: row["opaque"])
    assert len(ours) == len(theirs) == 20
    unknown = ("capture", "request_packet", "response_packet", "rtt_us", "latency_us", "end")
    times = ("request_time", "response_time", "conversation")
    for one, other in zip(ours, theirs, strict=True):
        for name in (*unknown, *times):
            one.pop(name), other.pop(name)
        assert one == other


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
        result = _send(box, *arguments, "--format", "jsonl", "-q")
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
        result = _send(box, "-t", "T", "--body", "x", "--count", "6")
    assert result.status == 0
    twice = next(line for line in result.out.splitlines() if "perhaps stored twice" in line)
    keys = twice.split(": ")[1].split(", ")
    assert 5 <= len(keys) <= 6  # after two tries it is the turn of the same broker again
    assert all(len(key) == 32 for key in keys)
    assert f"{len(keys)} took more than one attempt" in result.out


def test_a_failed_message_says_the_way_out(box: SandboxThread) -> None:
    result = _send(box, "-t", "T", "--body", "x", "-b", "broker-z")
    assert result.status == 1
    assert "T has no queue on broker broker-z\n  it has queues on broker-a, broker-b" in result.err
    refused = rmqtool("send", "-n", "127.0.0.1:1", "-t", "T", "--body", "x")
    assert refused.status == 1
    assert "no connection to 127.0.0.1:1" in refused.err
    assert "is it running" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what is to be sent?"),
        (("--body", "x"), "name the topic"),
        (("-t", "T", "--body", "x", "--file", "y"), "--body and --file"),
        (("-t", "T", "--body", "x", "lines.txt"), "--body and lines"),
        (("-t", "T", "--body", "x", "--queue", "1"), "name it with -b"),
        (("-t", "T", "--body", "x", "-b", "b", "--order-key", "k"), "each of them chooses"),
        (("-t", "T", "--body", "x", "--property", "KEYS=1"), "RocketMQ's own"),
        (("-t", "T", "--body", "x", "--property", "a"), "NAME=VALUE"),
        (("-t", "T", "--body", "x", "--deliver-at", "soon"), "not a valid time"),
        (("-t", "T", "--body", "x", "--deliver-at", "+x"), "not a valid duration"),
        (("-t", "T", "--body", "x", "--rate", "fast"), "is no rate"),
        (("-t", "T", "--body", "x", "--mode", "later"), "none of sync, async, oneway"),
        (("-t", "T", "--body", "x", "--fault-strategy", "9"), "none of off, 4.7"),
        (("-t", "T", "--body", "x", "--client", "9.9.9"), "no release"),
        (("-t", "T", "--body", "x", "--header", "xml"), "neither json nor rocketmq"),
        (("-t", "T", "--body", "x", "--transaction", "maybe"), "none of commit"),
        (("-t", "T", "--body", "x", "--transaction", "commit", "--batch", "2"), "together"),
        (("-t", "T", "--body", "x", "--acl", "env"), "ROCKETMQ_ACCESS_KEY"),
        (("-t", "T", "--body", "x", "--tls", "nowhere.pem"), "no file"),
        (("-t", "T", "--body", "x", "--tls-name", "a"), "needs --tls"),
        (("-t", "T", "--body", "x", "--tls", "insecure", "--tls-any-name"), "needs --tls"),
        (("-t", "T", "--body", "x", "--tls", "system", "--tls-name", ".x"), "no host name"),
        (("-t", "T", "--body", "x", "--tls-name", "a", "--tls-any-name"), "only one of them"),
        (("-t", "T", "--body", "x", "--log", "log.csv"), ".jsonl or .parquet"),
        (("-t", "T", "--body", "x", "--group", "DEFAULT_PRODUCER"), "no name for a group"),
    ],
)
def test_command_lines_that_make_no_sense(arguments: tuple[str, ...], message: str) -> None:
    result = rmqtool("send", "-n", "127.0.0.1:1", *arguments)
    assert result.status == 2
    assert message in result.err
    assert result.out == ""


def test_without_a_namesrv_nothing_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    result = rmqtool("send", "-t", "T", "--body", "x")
    assert result.status == 2
    assert "no NameServer is named" in result.err
    assert "NAMESRV_ADDR" in result.err


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
    assert "the rest was not tried" in result.err


def test_many_failures_do_not_fill_the_screen() -> None:
    faults = [Injection(InjectionKind.ERROR, code=13, remark="no")]
    with sandbox_thread(SandboxOptions(injections=faults)) as broken:
        result = _send(broken, "-t", "T", "--body", "x", "--count", "500", "--mode", "async")
    assert result.status == 1
    assert 100 <= len(result.out.splitlines()) < 140
    assert "380 messages not shown" in result.err
    assert "500 failed" in result.out


def test_the_namesrv_may_come_from_the_environment(box: SandboxThread) -> None:
    result = rmqtool("send", "-t", "T", "--body", "x", NAMESRV_ADDR=f"127.0.0.1:1;{box.namesrv}")
    assert "SEND_OK" in result.out


def test_a_secret_is_nowhere(box: SandboxThread, tmp_path: Path) -> None:
    log, capture = tmp_path / "log.jsonl", tmp_path / "wire.pcapng"
    arguments = ("-t", "T", "--body", "x", "--acl", "env", "--log", log, "--capture", capture)
    environment = {"ROCKETMQ_ACCESS_KEY": "account", "ROCKETMQ_SECRET_KEY": SECRET}
    result = _send(box, *arguments, **environment)
    assert result.status == 0
    assert b'"AccessKey":"account"' in capture.read_bytes()
    for text in (result.out, result.err, log.read_text(), repr(capture.read_bytes())):
        assert SECRET not in text
    key = tmp_path / "key"
    key.write_text(f"accessKey={SECRET}\n")
    result = _send(box, "-t", "T", "--body", "x", "--acl", key)
    assert result.status == 2
    assert "has no secretKey" in result.err
    assert SECRET not in result.err


def test_control_characters_of_a_broker_do_not_reach_the_screen() -> None:
    fault = Injection(InjectionKind.ERROR, code=13, remark="\x1b[2J evil \u202e")
    with sandbox_thread(SandboxOptions(injections=[fault])) as box:
        result = _send(box, "-t", "T", "--body", "x")
    assert result.status == 1
    assert "evil" in result.out
    assert "\x1b" not in result.out + result.err
    assert "\u202e" not in result.out + result.err


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
    assert b"stopped; what was in flight has ended" in err
    assert b"Traceback" not in err
    sent = int(out.decode().split(" messages in ")[0].split()[-1])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(rows) == sent
    assert {row["status"] for row in rows} == {"answered"}


def test_help_shows_examples() -> None:
    result = process("send", "--help")
    assert result.status == 0
    assert "rmqtool send -n 127.0.0.1:9876 -t Orders --body hello" in result.out


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
    result = _send(box, *arguments, "--log", log)
    assert result.status == 1
    assert "full.jsonl cannot be written: No space left on device" in result.err
    assert "Traceback" not in result.err
