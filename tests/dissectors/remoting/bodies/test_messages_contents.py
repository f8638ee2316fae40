"""Messages that RocketMQ writes for itself."""

from __future__ import annotations

import pytest

from dissectors.remoting.bodies.messages import content_of
from dissectors.remoting.messages.message import StoredMessage

REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"


@pytest.mark.parametrize(
    ("topic", "tag", "data", "kind", "value"),
    [
        (
            "RMQ_SYS_TRACE_TOPIC",
            "",
            b"Recall\x015\x01R\x01G\x01T\x01M\x01true\x02",
            "trace-records",
            [
                {
                    "kind": "Recall",
                    "timeStamp": 5,
                    "regionId": "R",
                    "group": "G",
                    "topic": "T",
                    "msgId": "M",
                    "success": True,
                }
            ],
        ),
        (
            REVIVE,
            "ack",
            b'{"ao":103,"c":"GID"}',
            "AckMsg",
            {"ackOffset": 103, "consumerGroup": "GID"},
        ),
        (REVIVE, "bAck", b'{"aol":[1,2]}', "BatchAckMsg", {"ackOffsetList": [1, 2]}),
        (
            REVIVE,
            "ck",
            b'{"n":2,"d":[0,3]}',
            "PopCheckPoint",
            {"messageCount": 2, "queueOffsetDiff": [0, 3]},
        ),
        ("OFFSET_MOVED_EVENT", "", b'{"offsetNew":5}', "OffsetMovedEvent", {"offsetNew": 5}),
        ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "d", b"7", "queue-offsets", [7]),
    ],
)
def test_contents(topic: str, tag: str, data: bytes, kind: str, value: object) -> None:
    content = content_of(StoredMessage(topic, data, {"TAGS": tag} if tag else {}), data)
    assert content is not None
    assert (content.kind, content.value, content.problem) == (kind, value, None)


def test_a_trace_topic_of_another_name_is_told_by_its_records() -> None:
    content = content_of(StoredMessage("my_traces"), b"Pub\x01x\x02")
    assert content is not None
    assert content.kind == "trace-records"


@pytest.mark.parametrize(
    ("topic", "data"),
    [
        ("T", b"Publish or perish"),
        (REVIVE, b"{}"),
        ("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"x,1"),
        ("T", b""),
    ],
)
def test_what_an_application_wrote_is_left_alone(topic: str, data: bytes) -> None:
    assert content_of(StoredMessage(topic), data) is None
