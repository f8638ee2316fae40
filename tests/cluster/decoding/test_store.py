"""The messages in a broker's store are those that its consumers read."""

from __future__ import annotations

import base64
import json
import re
import shutil
import time
from pathlib import Path

import pytest

from tests.cluster.clients.clients import run_java, run_mqadmin
from tests.cluster.fixtures import skip_or_fail
from tests.cluster.servers.artifacts import Unavailable
from tests.cluster.servers.cluster import Cluster
from tests.rmqtool.command import rmqtool

pytestmark = pytest.mark.cluster

COUNT = 6


def test_the_messages_of_a_store_are_those_a_java_consumer_reads(
    rocketmq: Cluster, tmp_path: Path
) -> None:
    topic = f"StoreTopic{time.time_ns()}"  # a second try finds no messages of the first
    rocketmq.make_topic(topic)
    namesrv = rocketmq.namesrv_text
    try:
        run_java("Send", namesrv, topic=topic, count=COUNT)
        # A threshold of one byte: every body is stored compressed.
        run_java("Send", namesrv, **{"topic": topic, "count": COUNT, "compress-over": 1})
        printed = run_java("PrintMessages", namesrv, topic=topic, count=2 * COUNT)
        theirs = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        query = ["queryMsgByUniqueKey", "-i", theirs[0]["msgId"], "-t", topic]
        found = run_mqadmin(query, namesrv)
    except Unavailable as reason:
        skip_or_fail(str(reason))
    assert len(theirs) == 2 * COUNT
    ours = {}
    for broker in rocketmq.brokers:
        copy = tmp_path / broker.name
        shutil.copytree(broker.folder / "store", copy)
        result = rmqtool(
            *("decode", "store", copy, "-Y", f"topic = {topic} and event = on_disk", "-T", "jsonl"),
            *("--body-limit", "1MiB", "--quiet"),
        )
        assert (result.status, result.err) == (0, "")
        rows = [json.loads(line) for line in result.out.splitlines()]
        ours |= {row["offset_msg_id"]: row for row in rows}
    assert len(ours) == 2 * COUNT
    for read in theirs:
        row = ours[read["offsetMsgId"]]
        assert row["event"] == "on_disk"
        assert row["unique_key"] == read["msgId"]
        places = (row["queue_id"], row["queue_offset"], row["commit_log_offset"])
        assert places == (read["queueId"], read["queueOffset"], read["commitLogOffset"])
        assert row["crc_ok"]
        assert row["body"].encode() == base64.b64decode(read["body"])
    asked = next(row for row in ours.values() if row["unique_key"] == theirs[0]["msgId"])
    fields = dict(re.findall(r"^(Topic|Queue ID|Queue Offset|Store Host): +(\S+)$", found, re.M))
    assert fields == {
        "Topic": topic,
        "Queue ID": str(asked["queue_id"]),
        "Queue Offset": str(asked["queue_offset"]),
        "Store Host": asked["server_address"],
    }
