"""The consumers report: held to what the samples' README says, and to the rows of messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

import pytest

from analytics.consuming.group_items import GroupEvent
from analytics.consuming.known import MAX_FORMS, Known
from analytics.consuming.queue_ownership import QueueOwnership
from analytics.diagnosis.rules.consumers.queue_pulls import PAUSE_NS
from analytics.diagnosis.rules.consumers.queue_shared import RULE as QUEUE_SHARED
from analytics.report import ReportOptions
from analytics.reports.consumers import report_notes
from dissectors.remoting.code_sets import FETCHES
from tests.analytics.consumed import consumers_of, delivery_of, rows_of, time_as_spark
from tests.analytics.diagnosis.made_rows import problems_of_sample
from tests.analytics.reported import Tables, input_of, on_spark, tables_from
from tests.replay.recorded import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURES = sorted(
    file.name for pattern in ("*.pcap", "*.pcapng", "*.pcap.gz") for file in SAMPLES.glob(pattern)
)
ONE, TWO = "127.0.0.1@consumer-1", "127.0.0.1@consumer-2"


@cache
def of_sample(name: str) -> Tables:
    """The tables of a sample, folded without Spark."""
    return consumers_of([str(SAMPLES / f"{name}.pcap")])


def test_a_second_member_comes_and_goes() -> None:
    """README: a second consumer of the group comes and goes; here it leaves first."""
    tables = of_sample("push-rebalance-4x")
    members = {row["client"]: row for row in tables["consumer_members"]}
    assert set(members) == {ONE, TWO}
    assert {(row["began"], row["ended"]) for row in members.values()} == {("joined", "left")}
    changes = [
        (row["cause"], row["client"], row["members_after"]) for row in tables["consumer_rebalances"]
    ]
    assert changes == [("joined", ONE, 1), ("joined", TWO, 2), ("left", TWO, 1), ("left", ONE, 0)]
    moved = [row["queues_moved"] for row in tables["consumer_rebalances"]]
    assert moved == [0, 2, 2, 0]
    holders = [
        row["client"]
        for row in tables["consumer_queues"]
        if (row["topic"], row["queue_id"]) == ("RebalanceTopic", 2)
    ]
    assert holders == [ONE, TWO, ONE]
    assert tables["consumer_queues_odd"] == [], "a hand-over is not sharing, a long poll holds on"


def test_a_killed_member_keeps_its_locks() -> None:
    """README: nobody consumes until the broker gives the dead consumer's locks up."""
    tables = of_sample("orderly-lock-lost-5x")
    killed = next(row for row in tables["consumer_members"] if "killed" in str(row["client"]))
    assert str(killed["ended"]).startswith("connection ended")
    locks = {str(row["client"]).partition("@")[2]: row for row in tables["consumer_locks"]}
    assert (locks["killed"]["not_all"], locks["killed"]["unlocks"]) == (0, 0)
    assert int(str(locks["heir"]["not_all"])) > 50
    assert locks["heir"]["unlocks"] == 1
    odd = [row for row in tables["consumer_queues_odd"] if row["topic"] == "LockTopic"]
    assert [(row["what"], row["queue_id"]) for row in odd] == [
        ("nobody pulled", 0),
        ("nobody pulled", 1),
    ]
    assert all(50_000_000 < int(str(row["length_us"])) < 62_000_000 for row in odd)
    assert any("disconnected without unregistering" in one for one in report_notes(tables))


@pytest.mark.parametrize("name", ["slave-read-5x", "slave-read-4x"])
def test_reads_from_a_slave_for_want_of_a_master(name: str) -> None:
    rows = of_sample(name)["consumer_slaves"]
    assert {row["why"] for row in rows} == {"no master"}
    assert {row["broker"] for row in rows} == {"broker-a"}
    assert {row["broker_id"] for row in rows} == {"1"}


@pytest.mark.parametrize("name", ["subscription-tags-5x", "subscription-tags-4x"])
def test_members_that_subscribe_differently(name: str) -> None:
    rows = of_sample(name)["consumer_subscriptions"]
    said = {(row["subscribed"], row["differs"]) for row in rows}
    assert said == {("TagsTopic (tags TagA)", True), ("TagsTopic (tags TagB)", True)}
    groups = delivery_of([str(SAMPLES / f"{name}.pcap")])["delivery_groups"]
    (row,) = (row for row in groups if row["topic"] == "TagsTopic")
    assert row["stored"] == 8
    assert int(str(row["delivered"])) + int(str(row["skipped"])) == 8, "some came to nobody"


@pytest.mark.parametrize("name", ["offset-moved-5x", "offset-moved-4x"])
def test_offsets_that_the_broker_moves(name: str) -> None:
    rows = [
        row for row in of_sample(name)["consumer_offsets"] if row["what"] == "moved by the broker"
    ]
    assert {(row["from_offset"], row["to_offset"]) for row in rows} == {(500, 2)}


def test_merged_facts_have_the_limits_of_added_ones() -> None:
    known, other = Known(), Known()
    for number in range(MAX_FORMS):
        known.filters.setdefault("key", set()).add(f"TAG a{number}")
        other.filters.setdefault("key", set()).add(f"TAG b{number}")
    other.filters["new"] = {"TAG c"}
    known.merge(other)
    assert len(known.filters["key"]) == MAX_FORMS
    assert known.filters["new"] == {"TAG c"}


def test_the_next_offset_of_a_queue_may_be_0() -> None:
    queues = QueueOwnership("group", Known(), lambda _: None)
    pull = GroupEvent("pull", 1, "client", "10.0.0.1:1", "broker-a", "10.0.0.2:10911", "", 0, 0)
    pull.topic, pull.queue, pull.answered = "Orders", 0, 2
    for following in (0, None):
        pull.following = following
        queues.pull(pull)
    (row,) = queues.queue_rows()
    assert row["next_offset"] == 0


class CountedText(str):
    """A text that counts how often texts are compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedText.compared += 1
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        CountedText.compared += 1
        return super().__ne__(other)


def test_the_next_client_of_many_periods_is_found_in_one_pass() -> None:
    queues, count = QueueOwnership("group", Known(), lambda _: None), 500
    for number in range(count):  # a period each, because of the pauses between them
        client = CountedText("one" if number < count - 1 else "two")
        pull = GroupEvent("pull", 0, client, "10.0.0.1:1", "broker-a", "10.0.0.2:10911", "", 0, 0)
        pull.topic, pull.queue, pull.time = "Orders", 0, number * 2 * PAUSE_NS
        pull.answered = pull.time
        queues.pull(pull)
    before = CountedText.compared
    rows = queues.queue_rows()
    assert [row["next_client"] for row in rows] == ["two"] * (count - 1) + [None]
    assert CountedText.compared - before < 10 * count


def test_two_clients_with_one_id_pull_the_same_queues() -> None:
    odd = of_sample("client-id-twice-5x")["consumer_queues_odd"]
    assert {row["what"] for row in odd} == {"two clients pulled"}
    assert {row["queue_id"] for row in odd} == {0, 1}
    assert all(len(row["clients"]) == 2 for row in odd)  # type: ignore[arg-type]


def test_a_shared_queue_is_that_of_the_diagnosis() -> None:
    name = "two-strategies-5x.pcap.gz"
    tables = consumers_of([str(SAMPLES / name)])
    (odd,) = tables["consumer_queues_odd"]
    (problem,) = problems_of_sample(QUEUE_SHARED, name)
    assert (odd["what"], odd["queue_id"]) == ("two clients pulled", problem.subject.queue)
    assert (odd["since"], odd["until"]) == (
        time_as_spark(problem.first_time // 1000),
        time_as_spark(problem.last_time // 1000),
    )
    holders = [
        (row["client"], row["pulls"])
        for row in tables["consumer_queues"]
        if (row["topic"], row["queue_id"]) == ("MixedTopic", 1)
    ]
    assert holders == [("127.0.0.1@averagely", 5), ("127.0.0.1@by-circle", 5)], "not handed over"


@pytest.mark.parametrize("name", ["more-consumers-than-queues-5x", "more-consumers-than-queues-4x"])
def test_a_member_without_a_queue(name: str) -> None:
    """README: three members for two queues; 127.0.0.1@third gets none, at last."""
    tables = of_sample(name)
    members = {row["client"] for row in tables["consumer_members"]}
    holders = {
        row["client"]
        for row in tables["consumer_queues"]
        if row["topic"] == "SpareTopic" and row["next_client"] is None
    }
    assert members - holders == {"127.0.0.1@third"}


@pytest.mark.parametrize("name", CAPTURES)
def test_every_sample(name: str) -> None:
    """Pulls are those of the rows; who got a message held its queue then; nothing raises."""
    files = [str(SAMPLES / name)]
    tables = consumers_of(files)
    delivery_of(files)
    exchanges, messages, _ = rows_of(files)
    asked = Counter(
        row.group
        for row in exchanges
        if row.request_code in FETCHES and row.request_time is not None and row.group
    )
    pulls: Counter[str | None] = Counter()
    for line in tables["consumer_pulls"]:
        pulls[str(line["group"])] += int(str(line["requests"]))
    assert pulls == asked
    known = Known()
    known.add_exchanges(exchanges)
    held: dict[tuple[object, ...], list[tuple[object, object]]] = {}
    for row in tables["consumer_queues"]:
        place = tuple(row[key] for key in ("group", "topic", "broker", "queue_id", "client"))
        held.setdefault(place, []).append((row["since"], row["until"]))
    for message in messages:
        if message.event != "delivered" or "PULL" not in (message.request_name or ""):
            continue
        broker = known.broker(message.broker_name, message.server_address)
        client = known.context.client(message.client_address)
        topic, queue = message.topic, message.queue_id
        stretches = held.get((message.consumer_group, topic, broker, queue, client), [])
        begin = (message.time or 0) - 1000 * (message.latency_us or 0)
        at = time_as_spark(begin // 1000)
        assert any(_within(at, start, end) for start, end in stretches), message


def _within(at: object, start: object, end: object) -> bool:
    assert isinstance(at, datetime)
    assert isinstance(start, datetime)
    assert isinstance(end, datetime)
    return start <= at <= end


def test_spark_gives_the_same_whatever_the_size(spark: SparkSession) -> None:
    """What the driver folds of a small input, what tasks fold of a large one; both reports."""
    names = ("push-retry-dlq-5x", "consumer-lag-5x", "push-rebalance-4x", "orderly-lock-lost-5x")
    files = [str(SAMPLES / f"{name}.pcap") for name in names]
    given = input_of(tuple(files), messages=True)
    for report, fold in (("consumers", consumers_of), ("delivery", delivery_of)):
        expected = _sorted(fold(files))
        assert _sorted(tables_from(report, given)) == expected
        assert _sorted(tables_from(report, on_spark(given, spark))) == expected


def test_without_connections_who_joined_is_unknown() -> None:
    from analytics.reports.consumers import build

    given = input_of((str(SAMPLES / "push-rebalance-4x.pcap"),))
    wanted = ReportOptions(tables=frozenset(("consumer_members",)))
    (frame,) = build(replace(given, conversations=None), wanted).values()
    assert set(given.kept.rows(frame).column("began").to_pylist()) == {None}


def _sorted(tables: Tables) -> dict[str, list[str]]:
    def told(value: object) -> object:
        return value.replace(tzinfo=None) if isinstance(value, datetime) else value

    return {
        name: sorted(str(sorted((key, told(row[key])) for key in row)) for row in rows)
        for name, rows in tables.items()
    }
