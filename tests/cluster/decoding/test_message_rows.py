"""Rows of messages and lives are what the clients of a real cluster say that happened to them."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.message_record import MessageRecord
from tests.analytics.life.lives import lives_in
from tests.cluster.clients.clients import QUICK_REBALANCE, run_java, start_java
from tests.cluster.fixtures import require_jars, skip_or_fail
from tests.cluster.recording.capture import Capture
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5, Unavailable
from tests.cluster.servers.cluster import Cluster
from tests.cluster.servers.processes import wait_until

pytestmark = pytest.mark.cluster

COUNT = 6
_CONSUMED = re.compile(r"^(\S+) (\d+) (\d+) (\d+)$", re.MULTILINE)
Consumed = tuple[str, int, int, int]
"""topic, queue, offset, how often it was given back"""


class Run(NamedTuple):
    """What was captured, and what the clients printed."""

    path: Path
    topic: str
    ids: list[str]
    """offset message ids that the producer was answered"""
    printed: dict[str, str]
    """client instance → what it printed"""


@pytest.fixture(scope="module", params=[NEWEST_5, NEWEST_4])
def run(
    request: pytest.FixtureRequest, rocketmq: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """One topic: two groups, one of which gives everything back; a third loses its consumer."""
    version: str = request.param
    require_jars([version])
    stamp = time.time_ns()
    topic, dying = f"Rows{stamp}", f"dying{stamp}"
    rocketmq.make_topic(topic)
    path = tmp_path_factory.mktemp("rows") / f"rows-{version}.pcap"
    namesrv = rocketmq.namesrv_text
    common = {"topic": topic, "version": version, "poll_ms": 2000, "properties": (QUICK_REBALANCE,)}
    printed = {}

    def consume(instance: str, group: str, count: int, **more: object) -> None:
        options = common | {"instance": instance, "group": group, "count": count, "linger_ms": 1500}
        options |= {"wait_ms": 100_000, "timeout": 150} | more
        printed[instance] = run_java("PushConsume", namesrv, **options)  # type: ignore[arg-type]

    try:
        with Capture(path, f"net {rocketmq.network}.0/24"):
            sent = run_java("Send", namesrv, instance="sender", count=COUNT, **common)  # type: ignore[arg-type]
            consume("plain", f"plain{stamp}", COUNT)
            consume("refusing", f"refusing{stamp}", 2 * COUNT, fail=99, max_reconsume=1)
            consume("undertaker", f"undertaker{stamp}", COUNT, topic=f"%DLQ%refusing{stamp}")
            slow = common | {"instance": "killed", "group": dying, "count": 99, "work_ms": 400}
            first = start_java("PushConsume", namesrv, **slow)  # type: ignore[arg-type]
            wait_until(
                "two messages consumed", lambda: len(_CONSUMED.findall(first.output)) >= 2, 60
            )
            first.kill()
            printed["killed"] = first.output
            # It may have told the broker how far it was; what follows is given out at once.
            # It may still get what the killed one only began with.
            remaining = max(1, COUNT - len(consumed(first.output)))
            consume("heir", dying, remaining, linger_ms=8000)
    except Unavailable as reason:
        skip_or_fail(str(reason))
    return Run(path, topic, re.findall(r"^SEND_OK (\S+)", sent, re.MULTILINE), printed)


def rows_in(path: Path) -> list[MessageRecord]:
    decode = Decode([str(path)], DecodeOptions(messages=True))
    rows: list[MessageRecord] = []
    for _ in decode.records():
        rows += [row for carried in decode.take_messages() for row in carried.messages]
    return rows


def consumed(printed: str) -> Counter[Consumed]:
    return Counter((t, int(q), int(o), int(r)) for t, q, o, r in _CONSUMED.findall(printed))


def delivered(rows: list[MessageRecord], instance: str) -> Counter[Consumed]:
    return Counter(
        (
            row.original_topic or "",
            row.queue_id or 0,
            row.queue_offset or 0,
            row.reconsume_times or 0,
        )
        for row in rows
        if row.event == "delivered" and (row.client_id or "").endswith(f"@{instance}")
    )


def test_every_send_and_every_delivery_by_client(run: Run) -> None:
    rows = rows_in(run.path)
    stored = [row for row in rows if row.event == "stored" and row.topic == run.topic]
    assert [row.offset_msg_id for row in sorted(stored, key=lambda r: r.time or 0)] == run.ids
    for instance in ("plain", "refusing", "heir"):
        assert delivered(rows, instance) == consumed(run.printed[instance]), instance
    # What was killed may have been given more than it got to.
    assert consumed(run.printed["killed"]) <= delivered(rows, "killed")
    dead = [row for row in rows if row.event == "delivered" and (row.topic or "")[:5] == "%DLQ%"]
    assert {row.original_topic for row in dead} == {run.topic}
    assert Counter((r.queue_id, r.queue_offset) for r in dead) == Counter(
        (queue, offset) for _, queue, offset, _ in consumed(run.printed["undertaker"]).elements()
    )
    assert all(row.crc_ok for row in rows if row.event == "delivered")


def test_each_life_has_all_of_it_in_order(run: Run) -> None:
    for key in run.ids:
        (life,) = lives_in(run.path, key=key)
        steps = [step.row for step in life.steps]
        assert steps[0].event == "stored"
        assert life.unseen == [], key
        by_group = Counter(
            (row.consumer_group or "").rstrip("0123456789")
            for row in steps
            if row.event == "delivered"
        )
        assert by_group["plain"] == 1
        assert by_group["refusing"] == 2
        assert by_group["undertaker"] == 1
        assert by_group["dying"] in (1, 2)
        returned = [row for row in steps if row.event == "returned"]
        assert [row.max_reconsume_times for row in returned] == [1, 1]
        times = [row.time or 0 for row in steps]
        assert times == sorted(times)
        born = next(row.born_time for row in steps if row.born_time is not None)
        kept = next(row.store_time for row in steps if row.store_time is not None)
        assert born <= kept <= next(row.time or 0 for row in steps if row.event == "delivered")


def test_a_filter_finds_the_dead_and_one_pass_what_came_before(run: Run) -> None:
    lives = lives_in(run.path, where='topic ~ "^%DLQ%"')
    assert len(lives) == COUNT
    for life in lives:
        assert life.steps[0].row.event == "stored"
        assert life.topic == run.topic
