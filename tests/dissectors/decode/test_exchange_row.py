"""Columns of an exchange's row that more than one part of a request decides."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dissectors.decode.exchange_row import record_of
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord
from tests.traffic.commands import Command, send
from tests.traffic.decoded import decode_segments
from tests.traffic.talk import Talk

HEARTBEAT = int(RequestCode.HEART_BEAT)
UNREGISTER = int(RequestCode.UNREGISTER_CLIENT)
LOCK = int(RequestCode.LOCK_BATCH_MQ)
PULL = int(RequestCode.PULL_MESSAGE)
ACK = int(RequestCode.ACK_MESSAGE)


def row_of(command: Command) -> ExchangeRecord:
    """The row of a request and its response."""
    talk = Talk().open().say(0, command.frame).say(1, command.answer().frame)
    (exchange,) = decode_segments(talk.segments).exchanges
    return record_of(exchange, "one.pcap")


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("topic", "properties", "original"),
    [
        ("Orders", "", "Orders"),
        ("Späte", "RETRY_TOPIC\x01Other\x02", "Späte"),
        ("Rocks", "", "Rocks"),
        ("%RETRY%g", "RETRY_TOPIC\x01Orders\x02", "Orders"),
        ("%DLQ%g", "DLQ_ORIGIN_TOPIC\x01Orders\x02", "Orders"),
        ("%RETRY%g", "KEYS\x01k\x02", None),
        ("SCHEDULE_TOPIC_XXXX", "REAL_TOPIC\x01Orders\x02", "Orders"),
        ("RMQ_SYS_TRANS_HALF_TOPIC", "REAL_TOPIC\x01%RETRY%g\x02", None),
    ],
)
def test_original_topic_of_a_send(
    topic: str, properties: str, original: str | None, binary: bool
) -> None:
    plain = send(1, binary=binary)
    command = replace(plain, ext={**plain.ext, "b": topic, "i": properties})
    assert row_of(command).original_topic == original


@pytest.mark.parametrize(
    ("code", "ext", "original"),
    [
        (PULL, {"topic": "Orders", "consumerGroup": "g"}, "Orders"),
        (PULL, {"topic": "%RETRY%g", "consumerGroup": "g"}, None),
        (ACK, {"topic": "%RETRY%g_Orders", "consumerGroup": "g"}, "Orders"),
        (ACK, {"topic": "%RETRY%g+Orders"}, "Orders"),
        (PULL, {"topic": ""}, None),
        (PULL, {}, None),
    ],
)
def test_original_topic_of_other_requests(
    code: int, ext: dict[str, str], original: str | None
) -> None:
    assert row_of(Command(code, 1, ext=ext)).original_topic == original


@pytest.mark.parametrize(
    ("command", "client_id", "facts"),
    [
        (
            Command(HEARTBEAT, 1, body=b'{"clientID":"c@1","producerDataSet":[{"groupName":"g"}]}'),
            *("c@1", ["producer=g"]),
        ),
        (Command(UNREGISTER, 1, ext={"clientID": "c@1"}), "c@1", []),
        (
            Command(LOCK, 1, body=b'{"clientId":"c@1","consumerGroup":"g","mqSet":[]}'),
            *("c@1", ["group=g", "queues_asked=0"]),
        ),
        (Command(HEARTBEAT, 1, body=b"{}"), None, []),
        (send(1), None, []),
    ],
)
def test_a_client_id_is_a_column_and_no_fact(
    command: Command, client_id: str | None, facts: list[str]
) -> None:
    row = row_of(command)
    assert (row.client_id, row.facts) == (client_id, facts)


def test_a_long_heartbeat_has_its_client_id_and_all_facts_that_fit() -> None:
    groups = [{"groupName": f"g{number}"} for number in range(200)]
    body = json.dumps({"clientID": "c@1", "producerDataSet": groups}).encode()
    row = row_of(Command(HEARTBEAT, 1, body=body))
    assert row.client_id == "c@1"
    assert len(row.facts) == 128
