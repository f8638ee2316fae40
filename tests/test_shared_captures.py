"""Captures of other people's clusters, of 4.x clients, filtered: starts missing, holes.

They are not the project's own and lie beside it; where they do not, these tests skip.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.command_row import command_row_of
from dissectors.expert import ExpertKind, Severity
from dissectors.pipeline import Decode
from dissectors.record import ExchangeRecord

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "captures"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no folder {FOLDER.name} beside us")


def records(name: str) -> tuple[list[ExchangeRecord], Decode]:
    run = Decode([str(FOLDER / name)])
    rows = [record for batch in run.records() for record in batch]
    errors = [kind for kind in run.stats.expert_counts if kind.severity == Severity.ERROR]
    assert errors == []
    return rows, run


def test_sends_by_v2_over_the_vip_port() -> None:
    rows, run = records("rocketmq-send-message-v2.pcap")
    assert run.stats.commands == 4
    assert [row.request_name for row in rows] == ["SEND_MESSAGE_V2"] * 2
    assert [row.latency_us for row in rows] == [4147, 400]
    assert {row.topic for row in rows} == {"TopicTest"}
    assert {row.version_name for row in rows} == {"V4_4_0"}
    assert all(row.responder.endswith(":10909") for row in rows)
    assert all(row.response_name == "SUCCESS" and row.offset_msg_id for row in rows)
    assert all(row.unique_key and row.message_count == 1 for row in rows)


def test_pulls_that_wait_twenty_seconds_and_answer_out_of_order() -> None:
    rows, run = records("rocketmq-pull-message.pcap")
    assert run.stats.commands == 9
    assert run.stats.gaps == 3
    answered = [row for row in rows if row.status == "answered"]
    assert len(answered) == 4
    # From tshark's frame.time_epoch of the packets named.
    pairs = [(row.request_packet, row.response_packet, row.latency_us) for row in answered]
    assert pairs == [
        (1, 3, 19_999_130),
        (2, 4, 19_999_063),
        (7, 8, 12_533_315),
        (6, 9, 12_534_766),
    ]
    found = [row for row in answered if row.response_name == "SUCCESS"]
    assert [row.message_count for row in found] == [1, 1]
    assert {row.response_name for row in answered} == {"SUCCESS", "PULL_NOT_FOUND"}


def test_stored_messages_of_the_pulls() -> None:
    run = Decode([str(FOLDER / "rocketmq-pull-message.pcap")])
    rows = [command_row_of(seen, run.sources) for batch in run.commands() for seen in batch]
    messages = [message for row in rows for message in row.messages or []]
    assert len(messages) == 2
    for message in messages:
        assert message["topic"] == "TopicTest"
        assert message["msgId"]


def test_route_queries_with_bare_integer_keys() -> None:
    rows, run = records("rocketmq-get-routeinfo-by-topic.pcap")
    assert run.stats.commands == 6
    assert [row.topic for row in rows][1:] == ["TopicTest", "TBW102"]
    assert {row.status for row in rows} == {"answered"}
    run = Decode([str(FOLDER / "rocketmq-get-routeinfo-by-topic.pcap")])
    bodies = [
        command_row_of(seen, run.sources).body
        for batch in run.commands()
        for seen in batch
        if seen.request is not None and seen.pdu.command.code == 0
    ]
    assert bodies
    for body in bodies:
        assert body is not None
        assert "brokerDatas" in str(body)


def test_a_heartbeat() -> None:
    rows, _ = records("rocketmq-heartbeat.pcap")
    assert [(row.request_name, row.response_name, row.latency_us) for row in rows] == [
        ("HEART_BEAT", "SUCCESS", 876)
    ]
    assert rows[0].group


def test_holes_between_sends_are_gaps_and_not_errors() -> None:
    rows, run = records("rocketmq-producer-otel.pcap")
    assert run.stats.commands == 6
    assert run.stats.expert_counts[ExpertKind.GAP] == 4
    assert [row.latency_us for row in rows] == [504, 501, 484]
    run = Decode([str(FOLDER / "rocketmq-producer-otel.pcap")])
    texts = [
        str(command_row_of(seen, run.sources).messages)
        for batch in run.commands()
        for seen in batch
        if seen.request is None
    ]
    assert all("traceparent" in text for text in texts)
