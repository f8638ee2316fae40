"""The messages that a Java consumer gives to its application are those that we decode."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages
from tests.cluster.clients.clients import run_java
from tests.cluster.fixtures import skip_or_fail
from tests.cluster.recording.capture import Capture
from tests.cluster.servers.artifacts import Unavailable
from tests.cluster.servers.cluster import Cluster

pytestmark = pytest.mark.cluster

TOPIC = "ReadTopic"
COUNT = 6
ADDED_BY_THE_CLIENT = ("MIN_OFFSET", "MAX_OFFSET")
"""properties that the client adds to what was stored"""


def test_messages_are_those_a_java_consumer_reads(rocketmq: Cluster, tmp_path: Path) -> None:
    topic = f"{TOPIC}{time.time_ns()}"  # a second try finds no messages of the first
    rocketmq.make_topic(topic)
    path = tmp_path / "read.pcap"
    namesrv = rocketmq.namesrv_text
    try:
        with Capture(path, f"net {rocketmq.network}.0/24"):
            run_java("Send", namesrv, topic=topic, count=COUNT)
            # A threshold of one byte: every body travels compressed.
            run_java("Send", namesrv, **{"topic": topic, "count": COUNT, "compress-over": 1})
            printed = run_java("PrintMessages", namesrv, topic=topic, count=2 * COUNT)
    except Unavailable as reason:
        skip_or_fail(str(reason))
    theirs = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert len(theirs) == 2 * COUNT
    # Both brokers may have a message at the same offset of a queue and of the log.
    ours = {one.offset_msg_id: one for one in pulled(path)}
    for read in theirs:
        message = ours[read["offsetMsgId"]]
        places = (message.queue_id, message.queue_offset, message.physical_offset)
        assert places == (read["queueId"], read["queueOffset"], read["commitLogOffset"])
        assert message.topic == read["topic"]
        assert message.unique_key == read["msgId"]
        assert message.flag == read["flag"]
        assert message.born_timestamp == read["bornTimestamp"]
        assert message.store_timestamp == read["storeTimestamp"]
        assert message.reconsume_times == read["reconsumeTimes"]
        assert message.body_crc == read["bodyCRC"]
        assert message.decompressed().data == base64.b64decode(read["body"])
        stored = {k: v for k, v in read["properties"].items() if k not in ADDED_BY_THE_CLIENT}
        assert {k: v for k, v in message.properties.items() if k in stored} == stored
    assert any(one.sys_flag & 1 for one in ours.values()), "no compressed message was sent"


def pulled(path: Path) -> list[StoredMessage]:
    """All stored messages in the answers to pulls."""
    run = Decode([str(path)])
    return [
        message
        for batch in run.commands()
        for seen in batch
        if seen.request is not None and "nextBeginOffset" in seen.pdu.command.ext_fields
        for message in decode_messages(seen.pdu.body).messages
    ]
