"""`rmqtool consume` and `topic` against real brokers: all is read, and nothing is left behind."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from replay import Message, Producer, ProducerConfig
from tests.cluster.fixtures import require_jars, running
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4_SERVER, NEWEST_5
from tests.cluster.servers.cluster import BrokerSpec, Cluster
from tests.rmqtool.command import PROGRAM, ROOT

pytestmark = pytest.mark.cluster

TOPIC = "Consumed"
_NOTED = re.compile(rf'"{TOPIC}@TOOLS_CONSUMER":{{[^{{}}]*}}')
"""where a broker of 5.x notes the last pull, which commits nothing"""
COUNT = 500
GET_ALL_CONSUMER_OFFSET, GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 43, 201


@pytest.fixture(scope="module", params=[NEWEST_4_SERVER, NEWEST_5])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two masters of a release, with messages on both."""
    require_jars([request.param])
    specs = [BrokerSpec(name) for name in ("broker-a", "broker-b")]
    with running(Cluster(specs, version=request.param, network="127.77.217")) as started:
        started.make_topic(TOPIC)
        config = ProducerConfig(group="g", namesrv=started.namesrv_text)
        with Producer(config) as producer:
            for number in range(COUNT):
                tag = "even" if number % 2 == 0 else "odd"
                body = b"message %d " % number + b"long " * (number % 3 * 900)
                producer.send(Message(TOPIC, body, tag, f"k{number}"))
        yield started


def _run(cluster: Cluster, *arguments: str) -> str:
    command = [*PROGRAM, *arguments, "-n", cluster.namesrv_text]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _rows(cluster: Cluster, *arguments: str) -> list[dict[str, object]]:
    text = _run(cluster, "consume", "-t", TOPIC, "-T", "jsonl", *arguments)
    return [json.loads(line) for line in text.splitlines()]


def test_every_message_is_read_once(cluster: Cluster) -> None:
    rows = _rows(cluster)
    places = {(row["broker_name"], row["queue_id"], row["queue_offset"]) for row in rows}
    assert len(places) == len(rows) == COUNT
    assert {row["keys"] for row in rows} == {f"k{number}" for number in range(COUNT)}
    assert all(row["crc_ok"] for row in rows)
    assert all(str(row["body"]).startswith(f"message {str(row['keys'])[1:]} ") for row in rows)


def test_filters_and_places(cluster: Cluster) -> None:
    even = _rows(cluster, "--tags", "even")
    assert len(even) == COUNT // 2
    (one,) = _rows(cluster, "--key", "k77")
    stored = str(one["store_time"])
    later = _rows(cluster, "--start", stored)
    assert {row["keys"] for row in later} >= {f"k{number}" for number in range(78, COUNT)}
    assert all(str(row["store_time"]) >= stored for row in later)
    assert _rows(cluster, "--start", "end") == []


def test_a_topic_is_described(cluster: Cluster) -> None:
    value = json.loads(_run(cluster, "topic", TOPIC, "-T", "json"))
    assert sum(one["messages"] for one in value["queues"]) == COUNT
    assert value["groups"] == []


def _kept(cluster: Cluster) -> list[str]:
    """What the brokers have of groups and offsets, as they say it themselves."""
    codes = (GET_ALL_SUBSCRIPTIONGROUP_CONFIG, GET_ALL_CONSUMER_OFFSET)
    return [
        probe.ask(broker.address, code)[1].decode() for broker in cluster.brokers for code in codes
    ]


def test_nothing_is_left_on_the_brokers(cluster: Cluster) -> None:
    before = _kept(cluster)
    assert all("TOOLS_CONSUMER" in text for text in before[::2])
    assert len(_rows(cluster)) == len(_rows(cluster, "--tags", "odd || even")) == COUNT
    _run(cluster, "topic", TOPIC)
    after = [_NOTED.sub("", text) for text in _kept(cluster)]
    assert after == [_NOTED.sub("", text) for text in before]
    assert not any(TOPIC in text for text in after)
