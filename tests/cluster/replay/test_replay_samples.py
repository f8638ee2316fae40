"""Every sample is replayed to a real cluster: a Java consumer reads what was captured."""

from __future__ import annotations

import base64
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from replay.message import Message, SendMode, TransactionState
from replay.plan.planner import MARK, PlannedSend
from replay.run.journal import read_run, read_steps
from replay.run.journal_rows import OutcomeEntry
from tests.cluster.clients.clients import start_java
from tests.cluster.fixtures import skip_or_fail
from tests.cluster.servers.artifacts import Unavailable
from tests.cluster.servers.cluster import BrokerSpec, Cluster
from tests.replay.replayed import SAMPLES, plan_of
from tests.rmqtool.command import rmqtool

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TOPIC = "ReplayedTopic"
QUEUES = 8
TOO_LATE = ("3", "4")
"""delay levels of 10 s and 30 s: a rule drops their messages, two of each are not worth the wait"""
TOO_LARGE = "large"
"""property of a message whose properties are longer than any broker takes"""
REFUSED = "refused"
"""property of a message that is due later than any broker takes"""
RULES = f"""
[[rule]]
topic = "{TOPIC}"

[[rule]]
if = {{ property.DELAY = "^[{"".join(TOO_LATE)}]$" }}
drop = true

[[rule]]
if = {{ property.{TOO_LARGE} = "." }}
drop = true

[[rule]]
if = {{ property.{REFUSED} = "." }}
drop = true
"""
NETWORKS = {"4.9.7": "127.77.33", "5.5.0": "127.77.34"}
"""of no other test, nor of each other: what is left of one cluster is not met by the next"""
QUIET = 3.0
"""seconds without a further message after which nothing more is expected, once all are there"""
SPENT_BY_BROKER = ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""properties that a delayed message has no more, or otherwise, when it is delivered"""


Name = tuple[str, str | bytes]
"""run that replayed it, and what it is known by there: requests made by hand recur in samples"""
Read = dict[Name, dict[str, object]]
Items = dict[tuple[str, bytes], Name]
"""run and body of each message of a batch → its name; see `items_of`"""


class Sample(NamedTuple):
    """A capture and what it is replayed as."""

    path: Path
    steps: list[PlannedSend]


@pytest.fixture(params=NETWORKS)
def target(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two masters of a release, on addresses that no sample has."""
    brokers = [BrokerSpec("broker-a"), BrokerSpec("broker-b")]
    cluster = Cluster(brokers, version=request.param, network=NETWORKS[request.param])
    try:
        cluster.start()
    except Unavailable as reason:
        skip_or_fail(str(reason))
    try:
        cluster.make_topic(TOPIC, queues=QUEUES)
        yield cluster
    finally:
        cluster.stop()


REPEATED = ("forwarded-5x.pcap",)
"""A UNIQ_KEY comes more than once: in two topics."""


def samples() -> list[Sample]:
    """All samples with something to replay."""
    names = [path for path in sorted(SAMPLES.iterdir()) if ".pcap" in path.name]
    found = [Sample(path, plan_of(str(path))[0]) for path in names if "expected" not in path.name]
    return [one for one in found if one.steps and one.path.name not in REPEATED]


def is_delivered(step: PlannedSend) -> bool:
    properties = step.messages[0].properties
    if properties.get("DELAY") in TOO_LATE or {TOO_LARGE, REFUSED} & properties.keys():
        return False
    return step.state in (None, TransactionState.COMMIT)


def is_late(message: Message) -> bool:
    return any(name in message.properties for name in SPENT_BY_BROKER)


def test_a_java_consumer_reads_what_was_captured(target: Cluster, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    given = samples()
    for sample in given:
        done = rmqtool(
            *(
                "replay",
                sample.path,
                "-n",
                target.namesrv_text,
                "--rewrite",
                rules,
                "--top-speed",
                "-q",
            ),
            *("--fail-on", "failures", "-o", tmp_path / sample.path.name),
        )
        assert done.status == 0, (sample.path.name, done.out, done.err)
    runs = {sample.path.name: read_run(tmp_path / sample.path.name).run for sample in given}
    steps = [
        (runs[sample.path.name], step)
        for sample in given
        for step in sample.steps
        if is_delivered(step)
    ]
    expected = {name_of(run, message): message for run, step in steps for message in step.messages}
    assert len(expected) == sum(len(step.messages) for _, step in steps), "an id is there twice"
    twice = {
        (runs[sample.path.name], key)
        for sample in given
        for row in read_steps(tmp_path / sample.path.name)
        if isinstance(row, OutcomeEntry) and row.maybe_twice
        for key in row.unique_keys
    }
    items = items_of(given, runs)
    read = read_by_name(consumed(target, len(expected)), set(expected), items, twice)
    missing = set(expected) - set(read)
    assert not missing, f"{len(missing)} of {len(expected)} are missing"
    assert set(read) - set(expected) == set()
    shadowed = set(items.values()) if target.version.startswith("4.") else set()
    for key, message in expected.items():
        assert_equal(message, read[key], key in shadowed)
    for sample in given:
        assert_in_order(sample, runs[sample.path.name], read)


def name_of(run: str, message: Message) -> Name:
    """What a message is known by: Go gives those of a batch no id, so a replay gives them one."""
    return run, message.unique_key or message.body


def items_of(given: list[Sample], runs: dict[str, str]) -> Items:
    """What messages are known by where their UNIQ_KEY says nothing: without one, or in batches.

    A 4.x broker adds the properties of the request's header to those of each message of a batch.
    Java's consumer reads the last of two with the same name: all of them then have the UNIQ_KEY of
    the batch, as with a 5.x Java producer, which gives the batch one too. They are distinct
    messages all the same: their mark tells the sample, in which the bodies of batches differ.
    """
    found: Items = {}
    for sample in given:
        run = runs[sample.path.name]
        messages = [
            one
            for step in sample.steps
            for one in step.messages
            if step.is_batch or one.unique_key is None
        ]
        items = {(run, message.body): name_of(run, message) for message in messages}
        assert len(items) == len(messages), f"{sample.path.name}: a body is in two batches"
        found |= items
    return found


def consumed(target: Cluster, count: int) -> list[dict[str, object]]:
    """What is stored in the topic, as a Java consumer reads it: so many at least."""
    version = "4.9.8" if target.version.startswith("4.") else target.version
    client = start_java(
        *("PrintMessages", target.namesrv_text),
        version=version,
        topic=TOPIC,
        count=2 * count,
        wait_ms=120_000,
    )
    stored: dict[tuple[object, object], dict[str, object]] = {}
    seen = 0
    begin = last = time.monotonic()
    try:
        while time.monotonic() - begin < 60:
            lines = client.output.split("\n")[:-1]  # the last one is not whole
            rows = [json.loads(line) for line in lines[seen:] if line.startswith("{")]
            found = {(row["offsetMsgId"], row["queueOffset"]): row for row in rows}  # some it twice
            if found.keys() - stored.keys():
                last = time.monotonic()
            stored |= found
            seen = len(lines)
            if len(stored) >= count and time.monotonic() - last > QUIET:
                break
            time.sleep(0.5)
    finally:
        client.stop()
    return list(stored.values())


def read_by_name(
    rows: list[dict[str, object]], names: set[Name], items: Items, twice: set[str]
) -> Read:
    """The messages by name; none is there twice but those of which a journal says it."""
    read: Read = {}
    for row in rows:
        properties, body = row["properties"], base64.b64decode(str(row["body"]))
        assert isinstance(properties, dict)
        run = properties[MARK]
        key = run, properties["UNIQ_KEY"]
        name = key if key in names else items.get((run, body))
        assert name is not None, f"{key} was not captured"
        assert name not in read or {key, name} & twice, f"{name!r} is there twice, nobody said so"
        read.setdefault(name, row)
    return read


def assert_equal(message: Message, read: dict[str, object], is_shadowed: bool) -> None:
    """The consumer's message is the captured one, but for the mark and the id of a batch."""
    assert base64.b64decode(str(read["body"])) == message.body
    assert read["flag"] == message.flag
    properties = read["properties"]
    assert isinstance(properties, dict)
    assert properties[MARK]
    assert properties.get("TAGS") == message.tags
    assert properties.get("KEYS") == message.keys
    other = (*SPENT_BY_BROKER, "UNIQ_KEY") if is_shadowed else SPENT_BY_BROKER
    wanted = {k: v for k, v in message.properties.items() if k not in other}
    assert {k: v for k, v in properties.items() if k in wanted} == wanted


def assert_in_order(sample: Sample, run: str, read: Read) -> None:
    """What was captured for one queue is in one queue; ordered sends in the order of the capture.

    Sends that overlapped in the capture overlap again, so the broker may store them in any order.
    Messages that are delivered late are stored anew when they are due; a broker may store oneway
    messages of one connection in another order, because nobody waits in between.
    """
    places: dict[object, list[tuple[str, object, object]]] = defaultdict(list)
    ordered: dict[object, list[object]] = defaultdict(list)
    for step in sample.steps:
        if step.mode is SendMode.ONEWAY or step.state is not None or not is_delivered(step):
            continue
        if is_late(step.messages[0]):
            continue
        queue = step.queue
        if queue is None:
            assert step.captured.header.queue_id < 0  # a proxy leaves the choice to the broker
            continue
        lane = step.origin.conversation, queue.broker, queue.queue_id
        for message in step.messages:
            row = read[name_of(run, message)]
            store = str(row["offsetMsgId"])[:16]  # address and port of the broker
            places[lane].append((store, row["queueId"], row["queueOffset"]))
            for waits in step.lanes:
                ordered[waits, lane].append(row["queueOffset"])
    for place, found in places.items():
        assert len({(store, queue) for store, queue, _ in found}) == 1, (sample.path.name, place)
    for place, offsets in ordered.items():
        assert offsets == sorted(offsets), (sample.path.name, place)  # type: ignore[type-var]
