"""What tests of our producer against real brokers share: clusters, what a Java consumer read.

A Java program that consumes prints what the Java client gives to an application; tests compare it
with what we sent.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from replay.message import Message, SendResult
from tests.cluster.clients.clients import run_java
from tests.cluster.fixtures import running
from tests.cluster.servers import probe
from tests.cluster.servers.artifacts import NEWEST_4, RELEASES
from tests.cluster.servers.cluster import BrokerSpec, Cluster

ADDED = frozenset(
    {
        *("MIN_OFFSET", "MAX_OFFSET", "MSG_REGION", "TRACE_ON", "CLUSTER", "WAIT", "UNIQ_KEY"),
        *("REAL_TOPIC", "REAL_QID", "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS"),
        *("TIMER_ROLL_TIMES", "TRAN_MSG", "PGROUP", "__transactionId__", "INNER_NUM"),
        *("TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET", "INSTANCE_ID", "DELAY"),
    }
)
"""properties that clients and brokers add or take away on the way"""


GET_MAX_OFFSET = 30


class Read(NamedTuple):
    """A message as a Java consumer's application saw it."""

    body: bytes
    properties: dict[str, str]
    queue_id: int
    queue_offset: int
    msg_id: str
    flag: int
    sys_flag: int
    store_timestamp: int
    born_timestamp: int


@contextmanager
def cluster_of(
    version: str, network: str, names: Iterable[str] = ("broker-a", "broker-b"), **options: object
) -> Iterator[Cluster]:
    """Masters of these names; skips where there is no Java or nothing to run."""
    settings = options.pop("settings", {})
    assert isinstance(settings, Mapping)
    specs = [BrokerSpec(name, settings=settings) for name in names]
    cluster = Cluster(specs, version=version, network=network, **options)  # type: ignore[arg-type]
    with running(cluster):
        yield cluster


def java_client_of(server: str) -> str:
    """The Java client that reads from a server of this version."""
    return NEWEST_4 if RELEASES[server].generation == "v4" else server


def read_by_java(
    cluster: Cluster, topic: str, count: int, *, wait_ms: int = 30_000, **options: object
) -> list[Read]:
    """The messages of a topic; raises where there are fewer."""
    arguments: dict[str, object] = {
        "topic": topic,
        "count": count,
        "group": f"reader_of_{topic}",
        "wait_ms": wait_ms,
        **options,
    }
    client = {"version": java_client_of(cluster.version)}
    try:
        printed = run_java("PrintMessages", cluster.namesrv_text, **client, **arguments)
    except RuntimeError:  # it could not connect on a busy machine; it has read nothing then
        printed = run_java("PrintMessages", cluster.namesrv_text, **client, **arguments)
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [
        Read(
            base64.b64decode(row["body"]),
            row["properties"],
            row["queueId"],
            row["queueOffset"],
            row["msgId"],
            row["flag"],
            row["sysFlag"],
            row["storeTimestamp"],
            row["bornTimestamp"],
        )
        for row in rows
    ]


def properties_of(message: Message) -> dict[str, str]:
    """What an application must find of the properties that were set."""
    properties = {k: v for k, v in message.properties.items() if k not in ADDED}
    if message.tags:
        properties["TAGS"] = message.tags
    if message.keys:
        properties["KEYS"] = message.keys
    return properties


def is_the_same(sent: Message, read: Read) -> bool:
    """Whether a consumer's application was given what was sent."""
    got = {k: v for k, v in read.properties.items() if k not in ADDED}
    return (
        read.body == sent.body
        and read.flag == sent.flag
        and read.msg_id == sent.unique_key
        and got == properties_of(sent)
    )


def is_where_it_was_stored(result: SendResult, read: Read) -> bool:
    """Whether the result of a send names the place where a consumer found the message."""
    return (result.queue.queue_id, result.queue_offset) == (read.queue_id, read.queue_offset)


def stored_in(cluster: Cluster, topic: str, queues: int = 4) -> int:
    """Messages in all queues of the topic."""
    total = 0
    for broker in cluster.brokers:
        for queue in range(queues):
            fields = {"topic": topic, "queueId": str(queue)}
            header, _ = probe.ask(broker.address, GET_MAX_OFFSET, fields)
            extra = header["extFields"]
            assert isinstance(extra, dict)
            total += int(extra["offset"])
    return total
