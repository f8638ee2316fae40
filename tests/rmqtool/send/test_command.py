"""`rmqtool send` against the sandbox: what is sent, what is shown, what is written, the status."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode
from replay.sandbox import SandboxThread
from tests.patience import Stopwatch
from tests.rmqtool.command import PROGRAM, ROOT, Result, process, rmqtool

from .sending import send_to

SECRET = "secret-that-nobody-may-see"


def _objects(result: Result) -> list[dict[str, object]]:
    assert result.status == 0, result
    return [json.loads(line) for line in result.out.splitlines()]


def _stored(box: SandboxThread, topic: str, folder: Path, *arguments: str) -> list[object]:
    """Messages as a capture of their sends has them: (body, properties, ext fields)."""
    path = folder / f"{time.monotonic_ns()}.pcapng"
    result = send_to(box, "-t", topic, "--capture", path, "-q", *arguments)
    assert result.status == 0, result
    found: list[object] = []
    for batch in Decode([str(path)]).exchanges():
        for exchange in batch:
            if exchange.request is not None and exchange.request.command.code in (310, 320):
                found.append((exchange.request.body, exchange.request.command.ext_fields))
    return found


def test_one_message_is_one_line(box: SandboxThread) -> None:
    result = send_to(box, "-t", "T", "--body", "hello")
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
    result = send_to(box, "-t", "T", "--body", "x", "--count", "200", "--mode", mode)
    assert result.status == 0
    name = "oneway" if mode == "oneway" else "SEND_OK"
    assert f"200 {name}" in result.out
    assert ("latency: p50" in result.out) == (mode != "oneway")
    assert "180 messages not shown" in result.err
    verbose = send_to(box, "-t", "T", "--body", "x", "--count", "50", "--mode", mode, "-V")
    assert len([line for line in verbose.out.splitlines() if "round robin" in line]) == 50


def test_a_queue_and_a_broker_can_be_chosen(box: SandboxThread) -> None:
    arguments = ("-t", "T", "--body", "x", "--count", "4", "--format", "jsonl", "-q")
    chosen = _objects(send_to(box, *arguments, "-b", "broker-b", "--queue", "1"))
    assert {(one["broker"], one["queue_id"]) for one in chosen} == {("broker-b", 1)}
    turns = _objects(send_to(box, *arguments, "-b", "broker-a"))
    assert [(one["broker"], one["queue_id"]) for one in turns] == [
        ("broker-a", number % 2) for number in (1, 2, 3, 4)
    ]
    keyed = _objects(send_to(box, *arguments, "--order-key", "order-1"))
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
    objects = _objects(send_to(box, *arguments))
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
    result = send_to(box, "-t", "T", path)
    assert result.status == 1
    assert "line 2 is not JSON" in result.err
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


@pytest.mark.parametrize("count", ["1", "3"])
def test_results_are_one_array(box: SandboxThread, count: str) -> None:
    arguments = ("-t", "T", "--body", "x", "--count", count, "-q", "-T")
    found = json.loads(send_to(box, *arguments, "json").out)
    assert [one["message"] for one in found] == list(range(1, int(count) + 1))
    lines = _objects(send_to(box, *arguments, "jsonl"))
    assert [one.keys() for one in lines] == [one.keys() for one in found]


@pytest.mark.slow
def test_an_array_is_closed_when_the_run_ends_early(box: SandboxThread) -> None:
    command = [*PROGRAM, "send", "-n", box.namesrv, "-t", "T", "-", "-T", "json", "-q"]
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        ) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write(b"first\n")
            running.stdin.flush()
            begun = running.stdout.readline()
            running.send_signal(number)
            rest = running.stdout.read()
            assert running.wait(60) == 128 + number
        (one,) = json.loads(begun + rest)
        assert one["status"] == "SEND_OK"


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet", "wire.pcapng"])
def test_a_file_that_exists_is_replaced_only_where_that_is_asked_for(
    box: SandboxThread, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("mine")
    option = "--capture" if name == "wire.pcapng" else "--log"
    arguments = ("-t", "T", "--body", "x", option, path)
    refused = send_to(box, *arguments)
    assert (refused.status, refused.out) == (2, "")
    assert f"{path} already exists\n  add --force to replace it" in refused.err
    assert path.read_text() == "mine"
    assert send_to(box, *arguments, "--force").status == 0
    assert path.stat().st_size > 100
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_a_rate_is_kept(box: SandboxThread) -> None:
    watch = Stopwatch()
    result = send_to(box, "-t", "T", "--body", "x", "--count", "31", "--rate", "50/s", "-q")
    assert watch.seconds > 0.55
    assert watch.own < 3
    assert "31 SEND_OK" in result.out


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_attempts_are_rows_of_a_log(box: SandboxThread, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"attempts.{suffix}"
    result = send_to(box, "-t", "T", "--body", "x", "-k", "k", "--count", "600", "--log", path)
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
    assert send_to(box, *arguments, "--log", log, "--capture", capture).status == 0
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


def test_the_namesrv_may_come_from_the_environment(box: SandboxThread) -> None:
    result = rmqtool("send", "-t", "T", "--body", "x", NAMESRV_ADDR=f"127.0.0.1:1;{box.namesrv}")
    assert "SEND_OK" in result.out


def test_a_secret_is_nowhere(box: SandboxThread, tmp_path: Path) -> None:
    log, capture = tmp_path / "log.jsonl", tmp_path / "wire.pcapng"
    arguments = ("-t", "T", "--body", "x", "--acl", "env", "--log", log, "--capture", capture)
    environment = {"ROCKETMQ_ACCESS_KEY": "account", "ROCKETMQ_SECRET_KEY": SECRET}
    result = send_to(box, *arguments, **environment)
    assert result.status == 0
    assert b'"AccessKey":"account"' in capture.read_bytes()
    for text in (result.out, result.err, log.read_text(), repr(capture.read_bytes())):
        assert SECRET not in text
    key = tmp_path / "key"
    key.write_text(f"accessKey={SECRET}\n")
    result = send_to(box, "-t", "T", "--body", "x", "--acl", key)
    assert result.status == 2
    assert "has no secretKey" in result.err
    assert SECRET not in result.err


def test_help_shows_examples() -> None:
    result = process("send", "--help")
    assert result.status == 0
    assert "rmqtool send -n 127.0.0.1:9876 -t Orders --body hello" in result.out
