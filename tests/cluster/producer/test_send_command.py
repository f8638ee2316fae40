"""`rmqtool send` to a real RocketMQ: what it says is what a Java consumer and the log find."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.producer.producing import read_by_java
from tests.cluster.servers import faults
from tests.cluster.servers.cluster import Cluster
from tests.cluster.servers.processes import wait_until
from tests.rmqtool.command import PROGRAM, ROOT

pytestmark = pytest.mark.cluster

LINES = 300
SOME_ROWS = 4_000
"""bytes of some rows of the log"""
WITHOUT_ANSWER = ("timeout", "lost")


def _command(cluster: Cluster, *arguments: str) -> list[str]:
    return [*PROGRAM, "send", "-n", cluster.namesrv_text, *arguments]


def _send(cluster: Cluster, *arguments: str) -> list[dict[str, object]]:
    command = [*_command(cluster, *arguments), "--format", "jsonl", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "options",
    [
        ("--mode", "async"),
        ("--mode", "sync", "--batch", "7", "--header", "rocketmq"),
        ("--mode", "oneway", "--client", "4.9.8"),
    ],
    ids=["async", "batches", "oneway"],
)
def test_lines_are_what_a_java_consumer_reads(
    rocketmq: Cluster, tmp_path: Path, options: tuple[str, ...]
) -> None:
    topic = f"Lines-{options[1]}"
    rocketmq.make_topic(topic)
    path = tmp_path / "lines.jsonl"
    lines = [
        {
            "body": f"message {number} ä消息 " + "long " * (number % 3 * 900),
            "tags": "even" if number % 2 == 0 else "odd",
            "keys": [f"k{number}", "all"],
            "properties": {"number": number},
            "flag": number,
        }
        for number in range(LINES)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    objects = _send(rocketmq, "-t", topic, str(path), *options)
    keys = [key for one in objects for key in str(one["unique_key"]).split(",")]
    assert len(set(keys)) == LINES
    read = {one.msg_id: one for one in read_by_java(rocketmq, topic, LINES)}
    assert set(read) == set(keys)
    numbered = {int(one.properties["number"]): one for one in read.values()}
    for number, line in enumerate(lines):
        one = numbered[number]
        assert one.body.decode() == line["body"]
        assert one.properties["TAGS"] == line["tags"]
        assert one.properties["KEYS"] == f"k{number} all"
        assert one.flag == number


def test_half_messages_end_as_asked(rocketmq: Cluster) -> None:
    topic = "CommandTransactions"
    rocketmq.make_topic(topic)
    arguments = ("-t", topic, "--body", "half", "--count", "3", "--transaction")
    committed = _send(rocketmq, *arguments, "commit")
    rolled_back = _send(rocketmq, *arguments, "rollback")
    assert {one["transaction_state"] for one in committed} == {"commit"}
    assert {one["transaction_state"] for one in rolled_back} == {"rollback"}
    read = read_by_java(rocketmq, topic, 3)
    assert {one.msg_id for one in read} == {one["unique_key"] for one in committed}


def test_a_broker_that_dies_is_in_the_log_and_in_the_summary(
    rocketmq: Cluster, tmp_path: Path
) -> None:
    topic = "CommandFault"
    for broker in rocketmq.brokers:
        if not broker.alive():  # a second try finds what the first one killed
            faults.restart(rocketmq, broker)
    rocketmq.make_topic(topic)
    log = tmp_path / "attempts.jsonl"
    arguments = (
        "-t",
        topic,
        "--body",
        "x",
        "--count",
        "3000",
        "--rate",
        "600/s",
        "--mode",
        "async",
    )
    command = _command(rocketmq, *arguments, "--log", str(log))
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=os.environ.copy()
    )
    try:
        wait_until("sends are logged", lambda: log.exists() and log.stat().st_size > 0, 60)
        # It stands still first, so that sends surely wait for it when it dies.
        with faults.frozen(rocketmq.broker("broker-a")):
            before = log.stat().st_size
            wait_until("others are logged", lambda: log.stat().st_size > before + SOME_ROWS, 60)
            faults.kill(rocketmq.broker("broker-a"))
        out, err = running.communicate(timeout=120)
    finally:
        running.kill()
    text = " ".join(out.decode().split())  # lines are wrapped where the numbers are long
    assert b"Traceback" not in err
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    failed = [row for row in rows if row["status"] == "unanswered"]
    # On a busy machine the other broker may answer too late, on a connection that stays open.
    assert {row["broker_name"] for row in failed if row["end"] == "closed"} == {"broker-a"}
    stored = {row["unique_key"] for row in rows if row["response_code"] == 0}
    assert len({row["unique_key"] for row in rows}) == 3000
    assert running.returncode == (0 if len(stored) == 3000 else 1)
    assert f"{len(stored):,} SEND_OK" in text
    times = Counter(row["unique_key"] for row in rows)
    assert f"{sum([number > 1 for number in times.values()]):,} took more than one attempt" in text
    lost = [row for row in failed if row["end"] == "closed" and row["unique_key"] in stored]
    if lost:
        assert "possibly stored twice" in text
        assert str(lost[0]["unique_key"]) in text or len(lost) > 10
