"""Every sample is replayed to a real cluster: a Java consumer reads what was captured."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from replay.journal import Outcome, read_steps
from replay.message import Message, SendMode, TransactionState
from replay.plan import MARK, Step
from tests.cluster.artifacts import Unavailable
from tests.cluster.clients import run_java
from tests.cluster.cluster import BrokerSpec, Cluster
from tests.cluster.fixtures import skip_or_fail
from tests.replay.replayed import SAMPLES, plan_of
from tests.rmqtool.command import rmqtool

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TOPIC = "ReplayedTopic"
QUEUES = 8
RULE = f'[[rule]]\ntopic = "{TOPIC}"\n'
SPENT_BY_BROKER = ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""properties that a delayed message has no more, or otherwise, when it is delivered"""


Read = dict[str | bytes, dict[str, object]]


class Sample(NamedTuple):
    """A capture and what it is replayed as."""

    path: Path
    steps: list[Step]


@pytest.fixture(params=["4.9.7", "5.5.0"])
def target(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two masters of a release, on addresses that no sample has."""
    brokers = [BrokerSpec("broker-a"), BrokerSpec("broker-b")]
    cluster = Cluster(brokers, version=request.param, network="127.77.33")
    try:
        cluster.start()
    except Unavailable as reason:
        skip_or_fail(str(reason))
    try:
        cluster.make_topic(TOPIC, queues=QUEUES)
        yield cluster
    finally:
        cluster.stop()


def samples() -> list[Sample]:
    """All samples with something to replay."""
    names = [path for path in sorted(SAMPLES.iterdir()) if ".pcap" in path.name]
    found = [Sample(path, plan_of(str(path))[0]) for path in names if "expected" not in path.name]
    return [one for one in found if one.steps]


def is_delivered(step: Step) -> bool:
    return step.state in (None, TransactionState.COMMIT)


def is_late(message: Message) -> bool:
    return any(name in message.properties for name in SPENT_BY_BROKER)


def test_a_java_consumer_reads_what_was_captured(target: Cluster, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULE)
    given = samples()
    for sample in given:
        done = rmqtool(
            *("replay", sample.path, "-n", target.namesrv_text, "-r", rules, "--top-speed", "-q"),
            *("--fail-on", "failures", "-o", tmp_path / f"journal-{sample.path.name}"),
        )
        assert done.status == 0, (sample.path.name, done.out, done.err)
    expected = {
        name_of(message): message
        for sample in given
        for step in sample.steps
        if is_delivered(step)
        for message in step.messages
    }
    sent = sum(len(s.messages) for one in given for s in one.steps if is_delivered(s))
    assert len(expected) == sent, "an id is in two samples"
    twice = {
        key
        for sample in given
        for row in read_steps(tmp_path / f"journal-{sample.path.name}")
        if isinstance(row, Outcome) and row.maybe_twice
        for key in row.unique_keys
    }
    read = consumed(target, sent, set(expected), twice)
    missing = set(expected) - set(read)
    assert not missing, f"{len(missing)} of {len(expected)} are missing"
    assert set(read) - set(expected) == set()
    for key, message in expected.items():
        assert_equal(message, read[key])
    for sample in given:
        assert_in_order(sample, read)


def name_of(message: Message) -> str | bytes:
    """What a message is known by: Go gives those of a batch no id, so a replay gives them one."""
    return message.unique_key or message.body


def consumed(target: Cluster, count: int, names: set[str | bytes], twice: set[str]) -> Read:
    """What a Java consumer reads of the topic, by name; no message is there twice but `twice`."""
    options = {"topic": TOPIC, "count": 2 * count, "wait-ms": 55_000, "timeout": 150.0}
    options["version"] = "4.9.8" if target.version.startswith("4.") else target.version
    printed = run_java("PrintMessages", target.namesrv_text, expect=None, **options)  # type: ignore[arg-type]
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    stored = {(row["offsetMsgId"], row["queueOffset"]): row for row in rows}  # some it reads twice
    read: Read = {}
    for row in stored.values():
        key = row["properties"]["UNIQ_KEY"]
        name = key if key in names else base64.b64decode(row["body"])
        assert name not in read or key in twice, f"{key} is there twice, and nobody said so"
        read.setdefault(name, row)
    return read


def assert_equal(message: Message, read: dict[str, object]) -> None:
    """The consumer's message is the captured one, but for the mark."""
    assert base64.b64decode(str(read["body"])) == message.body
    assert read["flag"] == message.flag
    properties = read["properties"]
    assert isinstance(properties, dict)
    assert properties[MARK]
    assert properties.get("TAGS") == message.tags
    assert properties.get("KEYS") == message.keys
    wanted = {k: v for k, v in message.properties.items() if k not in SPENT_BY_BROKER}
    assert {k: v for k, v in properties.items() if k in wanted} == wanted


def assert_in_order(sample: Sample, read: Read) -> None:
    """What was captured for one queue is in one queue, in the order of the capture.

    Messages that are delivered late are stored anew when they are due; a broker may store oneway
    messages of one connection in another order, because nobody waits in between.
    """
    places: dict[object, list[tuple[str, object, object]]] = defaultdict(list)
    for step in sample.steps:
        if step.mode is SendMode.ONEWAY or step.state is not None or is_late(step.messages[0]):
            continue
        queue = step.queue
        assert queue is not None
        lane = step.origin.conversation, queue.broker, queue.queue_id
        for message in step.messages:
            row = read[name_of(message)]
            store = str(row["offsetMsgId"])[:16]  # address and port of the broker
            places[lane].append((store, row["queueId"], row["queueOffset"]))
    for lane, found in places.items():
        assert len({(store, queue) for store, queue, _ in found}) == 1, (sample.path.name, lane)
        offsets = [offset for _, _, offset in found]
        assert offsets == sorted(offsets), (sample.path.name, lane)  # type: ignore[type-var]
