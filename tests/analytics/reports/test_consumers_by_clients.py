"""Both reports held to what the clients of the recordings logged of themselves."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from tests.analytics.consumed import consumers_of, delivery_of, time_as_spark
from tests.analytics.reported import Tables
from tests.replay.recorded import SAMPLES

NAMES = sorted(file.name.removesuffix(".clients.json") for file in SAMPLES.glob("*.clients.json"))
QUEUES = [name for name in NAMES if not name.startswith(("pop-", "go-"))]
"""those of which the clients know their queues: POP has none, the Go client does not tell"""
LOOKED_US = 500_000
"""the clients look at their queues every 20 ms, when the machine lets them"""
STARTS_US = 3_000_000
"""a client says that it started when `start` returns, which sends the first heartbeat"""
Row = dict[str, object]


@cache
def truth_of(name: str) -> list[Row]:
    found = json.loads((SAMPLES / f"{name}.clients.json").read_text())
    assert isinstance(found, list)
    return found


@cache
def delivered(name: str) -> Tables:
    return delivery_of([str(_capture(name))])


@cache
def consumed(name: str) -> Tables:
    return consumers_of([str(_capture(name))])


def _capture(name: str) -> Path:
    return SAMPLES / f"{name}.pcap"


def of_kind(name: str, kind: str) -> list[Row]:
    return [row for row in truth_of(name) if row["kind"] == kind]


@pytest.mark.parametrize("name", NAMES)
def test_deliveries(name: str) -> None:
    """What each group was given, message by message; more than once is told."""
    given: dict[str, Counter[object]] = defaultdict(Counter)
    for row in of_kind(name, "delivery"):
        given[str(row["group"])][row["msgId"]] += 1
    reported = {
        str(row["group"]): (row["delivered"], row["deliveries"], row["again"])
        for row in delivered(name)["delivery_groups"]
        if row["deliveries"]
    }
    assert reported == {
        group: (len(messages), messages.total(), messages.total() - len(messages))
        for group, messages in given.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_sends(name: str) -> None:
    sent: dict[object, set[object]] = defaultdict(set)
    for row in of_kind(name, "send"):
        sent[row["topic"]].add(row["msgId"])
    reported = {
        row["topic"]: row["sent"]
        for row in delivered(name)["delivery_groups"]
        if row["sent"] is not None
    }
    assert reported == {topic: len(messages) for topic, messages in sent.items()}
    assert not any(row["skipped"] for row in delivered(name)["delivery_groups"])


@pytest.mark.parametrize("name", NAMES)
def test_members(name: str) -> None:
    """Who was there, from when, until when, and how it ended."""
    members = {str(row["client"]): row for row in consumed(name)["consumer_members"]}
    started = {str(row["client"]): row for row in of_kind(name, "started")}
    assert set(members) == set(started)
    for client, row in started.items():
        assert abs(_micros(row) - _since(members[client]["since"])) < STARTS_US
    killed = {str(row["client"]) for row in of_kind(name, "killed")}
    stopped = {str(row["client"]) for row in of_kind(name, "stopped")}
    if name.startswith("go-"):  # the Go client closes its connections without a word
        killed, stopped = stopped, killed
    for client, member in members.items():
        ended = str(member["ended"])
        assert ended.startswith("connection ended") == (client in killed)
        assert (ended == "left") == (client in stopped)


@pytest.mark.parametrize("name", QUEUES)
def test_who_held_which_queue(name: str) -> None:
    """A client pulls what it holds, and only after it got it."""
    first: dict[tuple[str, str], int] = {}
    for row in of_kind(name, "queues"):
        held = row["held"]
        assert isinstance(held, dict)
        for queue in held:
            if "%" not in queue:
                first.setdefault((str(row["client"]), queue), _micros(row))
    pulled: dict[tuple[str, str], int] = {}
    for row in consumed(name)["consumer_queues"]:
        if "%" not in str(row["topic"]):
            queue = f"{row['topic']} {row['broker']} {row['queue_id']}"
            since = _since(row["since"])
            key = (str(row["client"]), queue)
            pulled[key] = min(since, pulled.get(key, since))
    assert set(pulled) == set(first)
    for key, since in pulled.items():
        assert since > first[key] - LOOKED_US


def test_a_group_grows_and_shrinks() -> None:
    """README: one consumer, then three, then one; queues move four times."""
    for name in ("scaling-5x", "scaling-4x"):
        changes = consumed(name)["consumer_rebalances"]
        counts = [row["members_after"] for row in changes]
        assert counts == [1, 2, 3, 2, 1, 0]
        assert sum(int(str(row["queues_moved"])) for row in changes) >= 9
        causes = {row["cause"] for row in delivered(name)["delivery_duplicates"]}
        assert causes == {"another client"}
        jumps = consumed(name)["consumer_offsets"]
        assert {row["what"] for row in jumps} == {"pulled again, by another client"}
        again = sum(int(str(row["messages"])) for row in jumps)
        (group,) = (row for row in delivered(name)["delivery_groups"] if row["deliveries"])
        assert again == group["again"], "what was pulled again is what came again"


def test_causes() -> None:
    """README: what each recording is about."""
    causes = {
        "consumer-killed": "another client",
        "dead-letters": "returned",
        "pop-missed": "POP time ended",
        "sent-twice": "stored again",
        "lock-hand-over": "another client",
    }
    for start, cause in causes.items():
        for name in NAMES:
            if name.startswith(start):
                found = delivered(name)["delivery_duplicates"]
                assert {row["cause"] for row in found} == {cause}


@pytest.mark.parametrize("name", ["dead-letters-5x", "dead-letters-4x"])
def test_dead_letters(name: str) -> None:
    rows = {row["group"]: row for row in delivered(name)["delivery_groups"]}
    assert (rows["dead_group"]["returned"], rows["dead_group"]["dead"]) == (6, 3)
    assert rows["undertaker_group"]["delivered"] == 3


@pytest.mark.parametrize("name", ["slave-lives-5x", "slave-lives-4x"])
def test_reads_from_a_slave(name: str) -> None:
    rows = consumed(name)["consumer_slaves"]
    assert rows
    assert {row["broker"] for row in rows} == {"broker-a"}


def _micros(row: Row) -> int:
    return int(str(row["at"])) * 1000


def _since(value: object) -> int:
    """Return a time of a table as microseconds since the epoch."""
    assert isinstance(value, datetime)
    epoch = time_as_spark(0)
    assert isinstance(epoch, datetime)
    span = value - epoch
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds
