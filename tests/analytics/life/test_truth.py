"""The table of messages and `trace` against what the clients of recorded clusters knew themselves.

`NAME.clients.json` beside a capture was printed by the clients (`tests/cluster/clients/told.py`):
each send, each delivery with the listener's outcome, each decision about a transaction.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import pytest

from analytics.life.life import MessageTrace
from dissectors.rows.message_record import (
    ACKNOWLEDGED,
    BEFORE,
    CHECKED,
    COMMITTED,
    DEAD,
    DELIVERED,
    PREPARED,
    RECALLED,
    RETURNED,
    ROLLED_BACK,
    SENT,
    STORED,
    UNDECIDED,
    MessageRecord,
)
from tests.dissectors.message_rows.seen import seen_in

from .lives import SAMPLES, searched

NAMES = sorted(path.name.split(".")[0] for path in SAMPLES.glob("*.clients.json"))
MILLI = 1_000_000
LATEST_MS = 500
"""A client tells of a message that long after the packet with it at most: the recordings were made
on a busy machine. It never tells of it before, but for the part of a millisecond that it cuts."""
_DECISIONS = {
    "COMMIT_MESSAGE": COMMITTED,
    "ROLLBACK_MESSAGE": ROLLED_BACK,
    "UNKNOW": UNDECIDED,
}


Key = tuple[str, str | None]
"""unique key and topic of a message"""


class Truth(NamedTuple):
    """What the clients of a sample told, and what the capture shows."""

    name: str
    told: list[dict[str, Any]]
    rows: list[MessageRecord]
    lives: dict[Key, MessageTrace]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.told if one["kind"] == kind]

    def deliveries(self, key: Key) -> list[dict[str, Any]]:
        """What was told of the deliveries of a message; a retry is told with a topic of its own."""
        only = sum(name == key[0] for name, _ in self.lives) == 1
        return [
            one
            for one in self.of("delivery")
            if one["msgId"] == key[0] and (only or one["topic"] == key[1])
        ]

    def ended(self) -> set[str]:
        """Clients that ended in order, so that they committed all that they consumed."""
        return {one["client"] for one in self.of("stopped")}


@cache
def truth_of(name: str) -> Truth:
    told = json.loads((SAMPLES / f"{name}.clients.json").read_text(encoding="utf-8"))
    search, lives = searched([f"{name}.pcap"], where="has unique_key")
    assert not search.messages_left_out
    by_name = {(life.name, life.topic): life for life in lives}
    assert len(by_name) == len(lives)
    return Truth(name, told, seen_in(f"{name}.pcap"), by_name)


@pytest.fixture(params=NAMES)
def truth(request: pytest.FixtureRequest) -> Truth:
    return truth_of(request.param)


def is_told_in_time(told_ms: int, time: int | None) -> bool:
    """Whether a client told of what it was sent at that time, within the bound."""
    assert time is not None
    return -MILLI < told_ms * MILLI - time <= LATEST_MS * MILLI


def test_every_send_is_in_the_table_as_its_producer_knew_it(truth: Truth) -> None:
    sends = truth.of("send")
    assert sends
    rows = {row.offset_msg_id: row for row in truth.rows if row.event in (STORED, PREPARED)}
    halves = {row.unique_key: row for row in truth.rows if row.event == PREPARED}
    for send in sends:
        if "status" not in send:
            continue
        # The client does not tell where a half message is.
        row = rows[send["offsetMsgId"]] if send["offsetMsgId"] else halves[send["msgId"]]
        assert (row.unique_key, row.topic) == (send["msgId"], send["topic"])
        if row.queue_offset is not None:
            assert (row.queue_id, row.queue_offset) == (send["queue"], send["offset"])
        assert row.time is not None
        assert row.latency_us is not None
        assert send["begin"] * MILLI <= row.time
        assert is_told_in_time(send["at"], row.time + row.latency_us * 1000)
    assert {row.unique_key for row in rows.values()} <= {send["msgId"] for send in sends}


def test_every_delivery_is_in_the_table_by_client(truth: Truth) -> None:
    rows: dict[tuple[Any, ...], list[MessageRecord]] = {}
    for row in truth.rows:
        if row.event == DELIVERED:
            rows.setdefault(_place_of_row(row), []).append(row)
    killed = {one["client"]: one["at"] for one in truth.of("killed")}
    told: Counter[tuple[Any, ...]] = Counter()
    for one in truth.of("delivery"):
        place = _place_told(one)
        assert place in rows, one
        row = rows[place][told[place]]
        told[place] += 1
        assert is_told_in_time(one["at"], row.time)
        assert (row.topic or "").endswith(one["topic"]) or row.original_topic == one["topic"]
        assert row.crc_ok is not False
    for place, same in rows.items():
        for row in same[told[place] :]:
            # What was killed may not have come to tell of the last answer.
            assert row.client_id in killed, row
            assert (row.time or 0) > (killed[row.client_id] - LATEST_MS) * MILLI


def _place_of_row(row: MessageRecord) -> tuple[Any, ...]:
    return (
        row.client_id,
        row.consumer_group,
        row.unique_key,
        row.offset_msg_id,
        row.queue_id,
        row.queue_offset,
        row.reconsume_times,
    )


def _place_told(one: dict[str, Any]) -> tuple[Any, ...]:
    names = ("client", "group", "msgId", "offsetMsgId", "queue", "offset", "reconsumed")
    return tuple(one[name] for name in names)


def test_a_trace_has_each_delivery_of_the_message_in_order(truth: Truth) -> None:
    keys = {(send["msgId"], send["topic"]) for send in truth.of("send")}
    assert keys <= set(truth.lives)
    for key in keys:
        life = truth.lives[key]
        steps = [step.row for step in life.steps]
        assert [row.time for row in steps] == sorted(row.time or 0 for row in steps)
        assert steps[0].event in (STORED, PREPARED, SENT)
        told = truth.deliveries(key)
        shown = [step for step in life.steps if step.row.event == DELIVERED]
        assert len(shown) >= len(told)
        assert Counter(map(_place_told, told)) <= Counter(_place_of_row(s.row) for s in shown)
        assert {one["client"] for one in told} <= {step.target.name for step in shown}
        groups = Counter(one["group"] for one in told)
        for group, times in groups.items():
            assert sum(step.row.consumer_group == group for step in shown) >= times
        again = [one for one in shown if one.why.startswith(("redelivered", "duplicate"))]
        firsts = len({step.row.consumer_group for step in shown})
        assert len(again) == len(shown) - firsts
        if not told:
            assert not shown


def test_what_was_consumed_is_covered_and_what_was_not_is_said(truth: Truth) -> None:
    for key, life in truth.lives.items():
        told = truth.deliveries(key)
        open_ = " ".join(line for line in life.unseen if "no acknowledgement" in line)
        for group in {one["group"] for one in told}:
            done = [
                one
                for one in told
                if one["group"] == group
                and one.get("outcome") in ("CONSUME_SUCCESS", "SUCCESS")
                and one["client"] in truth.ended()
            ]
            assert not (done and group in open_), (key, open_)


def test_a_commit_comes_after_what_it_covers_was_consumed(truth: Truth) -> None:
    done = {
        (one["client"], one["offsetMsgId"], one["reconsumed"]): one["done"] * MILLI
        for one in truth.of("delivery")
        if "done" in one
    }
    seen = 0
    for life in truth.lives.values():
        commits = [s for s in life.steps if s.row.covers == BEFORE]
        for step in commits:
            row = step.row
            covered = [
                (one.target.name, one.row.offset_msg_id, one.row.reconsume_times)
                for one in life.steps
                if one.row.event == DELIVERED
                and (one.row.consumer_group, one.row.topic) == (row.consumer_group, row.topic)
                and one.row.queue_id == row.queue_id
                and (one.source, one.target) == (step.target, step.source)
                and (one.row.queue_offset or 0) < (row.queue_offset or 0)
            ]
            seen += len(covered)
            assert all(done[one] < step.time + MILLI for one in covered), (life.name, row.packet)
    assert seen or truth.name.startswith("pop-")


def test_what_is_given_back_is_in_the_table(truth: Truth) -> None:
    told = Counter(
        (one["client"], one["msgId"])
        for one in truth.of("delivery")
        if one.get("outcome") == "RECONSUME_LATER"
    )
    rows = Counter(
        (row.client_id, row.unique_key)
        for row in truth.rows
        if row.event in (RETURNED, DEAD) and row.request_name == "CONSUMER_SEND_MSG_BACK"
    )
    assert rows == told


def test_what_is_acknowledged_one_by_one_is_what_was_consumed(truth: Truth) -> None:
    rows = [row for row in truth.rows if row.event == ACKNOWLEDGED and row.covers != BEFORE]
    if not rows:
        assert not truth.name.startswith("pop-")
        return
    told = Counter(
        (one["client"], one["queue"], one["offset"])
        for one in truth.of("delivery")
        if one.get("outcome") == "CONSUME_SUCCESS"
    )
    assert Counter((row.client_id, row.queue_id, row.queue_offset) for row in rows) == told


def test_transactions_end_as_their_producer_decided(truth: Truth) -> None:
    told = Counter(
        (one["msgId"], _DECISIONS[one["outcome"]])
        for kind in ("decided", "checked")
        for one in truth.of(kind)
    )
    ends = {*_DECISIONS.values()}
    assert Counter((r.unique_key, r.event) for r in truth.rows if r.event in ends) == told
    checks = Counter(one["msgId"] for one in truth.of("checked"))
    assert Counter(row.unique_key for row in truth.rows if row.event == CHECKED) == checks
    if told:
        # A broker may ask before it has heard: then a commit comes first, and what follows is late.
        committed = {key for key, event in told if event == COMMITTED}
        for (key, _), life in truth.lives.items():
            shown = {step.row.event for step in life.steps}
            assert (DELIVERED in shown) is (key in committed)


def test_nothing_is_delivered_before_it_is_due(truth: Truth) -> None:
    for life in truth.lives.values():
        due = [s.row.deliver_time for s in life.steps if s.row.event in (STORED, RECALLED)]
        for step in life.steps:
            if step.row.event == DELIVERED:
                assert all(step.time >= one for one in due if one is not None)
