"""Exit statuses of `decode`: conditions on the traffic, and captures of other protocols."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rmqtool.decode.fail_on import Counts, condition_of
from rmqtool.ui.status import CommandError, ExitStatus
from tests.dissectors.conversations.test_recognition import (
    CLIENT_HELLO,
    GRPC_HEADERS,
    KAFKA_VERSIONS,
    PREFACE,
)
from tests.traffic.captures import pcap_of
from tests.traffic.talk import End, Talk, merged

from ..command import capture_in, rmqtool


def counts(answered: int, failed: int, unanswered: int) -> Counts:
    made = Counts()
    made.answered, made.failed, made.unanswered = answered, failed, unanswered
    return made


@pytest.mark.parametrize(
    ("text", "numbers", "holds"),
    [
        ("failed", (10, 1, 0), True),
        ("failed", (10, 0, 5), False),
        ("failed>1", (10, 1, 0), False),
        ("failed >= 1", (10, 1, 0), True),
        ("failed>10%", (10, 1, 0), False),
        ("failed>=10%", (10, 1, 0), True),
        ("failed>0%", (0, 0, 3), False),
        ("unanswered>0.5%", (199, 0, 1), False),
        ("unanswered>=0.5%", (199, 0, 1), True),
        ("UNANSWERED", (0, 0, 1), True),
    ],
)
def test_conditions(text: str, numbers: tuple[int, int, int], holds: bool) -> None:
    assert bool(counts(*numbers).held([condition_of(text)])) == holds


@pytest.mark.parametrize("text", ["", "p99>5ms", "failed<1", "failed>x", "failed>1 ms", "failed>²"])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(CommandError, match="not a valid condition") as caught:
        condition_of(text)
    assert caught.value.status is ExitStatus.USAGE


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--fail-on", "failed"], ExitStatus.DIFFERENCES),
        (["--fail-on", "failed>99%"], ExitStatus.OK),
        (["--summary", "--fail-on", "unanswered"], ExitStatus.DIFFERENCES),
        (["--where", "status == oneway", "--fail-on", "failed"], ExitStatus.OK),
        (["--check"], ExitStatus.OK),
        (["--commands", "--fail-on", "failed"], ExitStatus.USAGE),
    ],
)
def test_the_status_is_that_of_the_traffic(
    tmp_path: Path, arguments: list[str], status: ExitStatus
) -> None:
    result = rmqtool("decode", "pcap", capture_in(tmp_path), *arguments)
    assert result.status == status
    assert ("rmqtool: --fail-on" in result.err) == (status is not ExitStatus.OK)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ([CLIENT_HELLO], ["TLS: encrypted", "--tls-keylog"]),
        ([PREFACE + GRPC_HEADERS], ["gRPC: no RocketMQ call was recognized"]),
        ([KAFKA_VERSIONS], ["Kafka: another program"]),
        ([CLIENT_HELLO, b"AMQP\0\0\x09\x01"], ["TLS: encrypted", "AMQP: another program"]),
        ([b"EHLO a.example\r\n" * 600], ["--decode-as PORT"]),
    ],
)
@pytest.mark.parametrize("view", [[], ["--summary"], ["--format", "jsonl"], ["--quiet"]])
def test_a_capture_of_other_protocols_says_what_to_do(
    tmp_path: Path, first: Sequence[bytes], said: list[str], view: list[str]
) -> None:
    talks = []
    for number, data in enumerate(first):
        talks.append(Talk(End("10.0.0.5", 40000 + number), End("10.0.0.9", 10911)).open())
        talks[-1].say(0, data).close()
    path = tmp_path / "other.pcap"
    path.write_bytes(pcap_of(merged(*talks)))
    result = rmqtool("decode", "pcap", path, *view)
    assert result.status == ExitStatus.FAILURE
    assert all(part in result.err for part in said)
    assert result.err.count("no RocketMQ in") == 1


def test_refused_connections_alone_are_no_failure_to_decode(tmp_path: Path) -> None:
    path = tmp_path / "refused.pcap"
    path.write_bytes(pcap_of(Talk().open().close().segments))
    result = rmqtool("decode", "pcap", path)
    assert result.status == ExitStatus.OK
    assert "no payload" in result.err


@pytest.mark.parametrize(
    "target", [["--dry-run"], ["--dry-run", "-T", "jsonl"], ["--target", "sandbox"]]
)
def test_a_replay_of_other_protocols_says_what_to_do(tmp_path: Path, target: list[str]) -> None:
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap_of(Talk().open().say(0, CLIENT_HELLO).close().segments))
    result = rmqtool("replay", path, *target, "-o", tmp_path / "journal")
    assert result.status == ExitStatus.FAILURE
    assert "TLS: encrypted" in result.err
    assert "messages" not in result.err, "nothing is said before the error"
