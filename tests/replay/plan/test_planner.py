"""The plan: captured sends in, steps and reasons out."""

from __future__ import annotations

import zlib
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from dissectors.budget import Budget
from replay.captured.captured_send import CapturedSend, SkipReason
from replay.message import SendMode, TransactionState
from replay.plan.choose import OptionalKind, Selection
from replay.plan.pace import PaceOptions
from replay.plan.planned_run import PlannedRun
from replay.plan.planner import (
    MARK,
    ORIGINAL_KEY,
    BatchPolicy,
    CapturedQueue,
    Ids,
    Mode,
    PlannedSend,
    Planner,
    PlanOptions,
    QueuePolicy,
    RequestPolicy,
    SendOrder,
    Skipped,
)
from replay.plan.rewrite import Rewrite, rules_of

from ..replayed import MS, SECOND, START, batch, captured, plan_of, sample, seen


def planned(
    *sends: CapturedSend, options: PlanOptions | None = None, rewrite: Rewrite | None = None
) -> list[PlannedSend | Skipped]:
    return list(Planner(options or PlanOptions(), rewrite).steps(sends))


def step(one: CapturedSend, **options: object) -> PlannedSend:
    (found,) = planned(one, options=PlanOptions(**options))  # type: ignore[arg-type]
    assert isinstance(found, PlannedSend)
    return found


def test_a_step_is_the_captured_message_at_its_time() -> None:
    sends = [captured(seen(n * 10 * MS, key=f"K{n}", queue=n)) for n in range(3)]
    steps = [one for one in planned(*sends) if isinstance(one, PlannedSend)]
    assert [(one.number, one.due) for one in steps] == [(0, 0), (1, 10 * MS), (2, 20 * MS)]
    assert [one.queue for one in steps] == [CapturedQueue("broker-a", n, False) for n in range(3)]
    assert [one.messages[0].unique_key for one in steps] == ["K0", "K1", "K2"]
    assert {one.group for one in steps} == {"producers"}


def test_modes_are_those_of_the_capture_unless_one_is_asked_for() -> None:
    overlapped = captured(seen())
    overlapped.overlapped = True
    oneway = captured(seen(oneway=True))
    oneway.response.status = "oneway"
    assert step(captured(seen())).mode is SendMode.SYNC
    assert step(overlapped).mode is SendMode.ASYNC
    assert step(oneway).mode is SendMode.ONEWAY
    for mode in (Mode.sync, Mode.async_, Mode.oneway):
        assert step(captured(seen()), mode=mode).mode == mode.value


def test_a_body_becomes_no_more_than_there_is_room_for() -> None:
    def send_of(number: int, body: bytes) -> CapturedSend:
        sys_flag = 0x301 if body.startswith(b"x") else 0
        return captured(seen(number * MS, body=zlib.compress(body), sys_flag=sys_flag))

    bodies = (b"x" * 600, b"plain" * 1000, b"x" * 400, b"x" * 401, b"")
    sends = [send_of(number, body) for number, body in enumerate(bodies)]
    budget = Budget(1000)
    steps = list(Planner(PlanOptions(), budget=budget).steps(sends))
    assert [isinstance(one, PlannedSend) for one in steps] == [True, True, True, False, True]
    assert isinstance(steps[3], Skipped)
    assert steps[3].why is SkipReason.TOO_MUCH
    assert (budget.room, budget.ended, budget.first) == (0, 1, "a.pcap, packet 4")


def waits(first: CapturedSend, second: CapturedSend, **options: object) -> bool:
    """Whether the second of two sends waits for the first."""
    return not {*step(first, **options).lanes}.isdisjoint(step(second, **options).lanes)


def test_a_client_with_one_send_at_a_time_waits_on_its_connection() -> None:
    for mode in (Mode.as_captured, Mode.sync):
        assert waits(captured(seen(queue=1)), captured(seen(queue=2)), mode=mode)
    assert not waits(captured(seen(queue=1)), captured(seen(queue=1)), mode=Mode.async_)


def test_sends_of_a_concurrent_client_wait_only_where_their_order_was_kept() -> None:
    def of(queue: int, key: str = "", in_turn: bool = False) -> CapturedSend:
        one = captured(seen(queue=queue, properties={"__SHARDINGKEY": key}))
        one.concurrent, one.in_turn = True, in_turn
        return one

    for mode in (Mode.as_captured, Mode.sync, Mode.async_):
        assert not waits(of(1), of(1), mode=mode)
        assert waits(of(1, in_turn=True), of(1, in_turn=True), mode=mode)
        assert not waits(of(1, in_turn=True), of(2, in_turn=True), mode=mode)
        assert waits(of(1, "k"), of(1, "k"), mode=mode)
        assert not waits(of(1, "k"), of(1, "other"), mode=mode)


def test_order_per_queue_and_none() -> None:
    for queue, order, expected in (
        (1, SendOrder.queue, True),
        (2, SendOrder.queue, False),
        (1, SendOrder.none, False),
    ):
        sharded = [captured(seen(queue=n, properties={"__SHARDINGKEY": "k"})) for n in (1, queue)]
        assert waits(*sharded, order=order) is expected


def test_the_id_is_kept_or_becomes_a_property() -> None:
    kept = step(captured(seen()), mark="run-1").messages[0]
    assert kept.properties == {"UNIQ_KEY": "K1", MARK: "run-1"}
    new = step(captured(seen()), ids=Ids.new).messages[0]
    assert new.properties == {ORIGINAL_KEY: "K1"}


def test_from_the_second_loop_on_ids_are_new() -> None:
    planner = Planner(PlanOptions())
    list(planner.steps([captured(seen())]))
    planner.again()
    (again,) = planner.steps([captured(seen())])
    assert isinstance(again, PlannedSend)
    assert (again.number, again.loop) == (1, 1)
    assert again.messages[0].properties == {ORIGINAL_KEY: "K1"}


def test_a_batch_is_kept_or_taken_apart() -> None:
    body = batch(("A", b"1"), ("B", b"2"))
    whole = step(captured(seen(code=320, body=body)))
    assert (len(whole.messages), whole.is_batch) == (2, True)
    apart = planned(
        captured(seen(code=320, body=body)), options=PlanOptions(batches=BatchPolicy.apart)
    )
    assert [
        (one.messages[0].body, one.is_batch) for one in apart if isinstance(one, PlannedSend)
    ] == [
        (b"1", False),
        (b"2", False),
    ]


def test_a_half_message_has_its_outcome_and_unknown_where_that_was_not_captured() -> None:
    half = captured(seen(sys_flag=4, properties={"TRAN_MSG": "true", "PGROUP": "g"}))
    half.state = TransactionState.ROLLBACK
    found = step(half)
    assert found.state is TransactionState.ROLLBACK
    assert "TRAN_MSG" not in found.messages[0].properties
    assert step(captured(seen(sys_flag=4))).state is TransactionState.UNKNOWN
    assert step(captured(seen())).state is None


def test_ordered_messages_go_to_their_queue_only() -> None:
    ordered = captured(seen(queue=3, properties={"__SHARDINGKEY": "s"}))
    assert step(ordered).queue == CapturedQueue("broker-a", 3, True)
    assert step(captured(seen(queue=3)), queues=QueuePolicy.strict).queue == CapturedQueue(
        "broker-a", 3, True
    )
    assert step(captured(seen(queue=3)), queues=QueuePolicy.new).queue is None


def test_the_queue_is_the_one_that_stored_the_message() -> None:
    retried = captured(seen(queue=3))
    retried.response.attempts, retried.response.code = 2, 0
    retried.response.broker, retried.response.queue_id = "broker-b", 1
    assert step(retried).queue == CapturedQueue("broker-b", 1, False)
    retried.response.code = 14
    assert step(retried).queue == CapturedQueue("broker-a", 3, False)


def test_a_delivery_time_is_kept_as_a_distance() -> None:
    at_ms = START // MS + 7000
    timed = captured(seen(2 * SECOND, properties={"TIMER_DELIVER_MS": str(at_ms)}))
    assert step(timed).deliver_after_ms == 5000


def test_a_request_may_wait_for_a_reply() -> None:
    properties = {"CORRELATION_ID": "c", "REPLY_TO_CLIENT": "me", "TTL": "3000"}
    plain = step(captured(seen(properties=properties)))
    assert not plain.wants_reply
    assert plain.messages[0].properties["CORRELATION_ID"] == "c"
    asking = step(captured(seen(properties=properties)), requests=RequestPolicy.request)
    assert asking.wants_reply
    assert asking.messages[0].properties == {"UNIQ_KEY": "K1"}


def test_limits_end_the_plan() -> None:
    sends = [captured(seen(n * SECOND, key=f"K{n}")) for n in range(5)]
    planner = Planner(PlanOptions(limit=3))
    assert len(list(planner.steps(sends))) == 3
    assert planner.ended
    sends = [captured(seen(n * SECOND, key=f"K{n}")) for n in range(5)]
    pace = PaceOptions(speed=Fraction(2))
    assert len(planned(*sends, options=PlanOptions(duration=2 * SECOND, pace=pace))) == 4


def test_rules_give_group_and_topic_and_may_drop(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nif.topic = "Drop"\ndrop = true\n[[rule]]\ngroup = "test"\n')
    rewrite = Rewrite(rules_of(path.read_bytes(), str(path)))
    kept, dropped = planned(captured(seen()), captured(seen(1, topic="Drop")), rewrite=rewrite)
    assert isinstance(kept, PlannedSend)
    assert kept.group == "test"
    assert isinstance(dropped, Skipped)
    assert (dropped.why, dropped.topic) == (SkipReason.DROPPED, "Drop")


def test_what_was_planned_keeps_no_bytes_of_the_capture() -> None:
    steps, _ = plan_of(sample("send-sync-5x.pcap"))
    assert len(steps) == 8
    assert all(one.captured.seen.pdu is None and not one.captured.seen.body for one in steps)


def test_the_same_sources_give_the_same_plan() -> None:
    def shape() -> list[tuple[object, ...]]:
        steps, skipped = plan_of(sample("fault-kill-5x.pcap"), sample("transaction-5x.pcap"))
        made = [(s.number, s.due, s.origin, s.mode, s.queue, s.messages, s.state) for s in steps]
        return [*made, *skipped]

    assert shape() == shape()


@pytest.mark.parametrize(
    ("name", "sends", "messages"),
    [
        ("send-sync-5x.pcap", 8, 8),
        ("send-async-4x.pcap", 20, 20),
        ("send-batch-5x.pcap", 3, 12),
        ("send-binary-header-4x.pcap", 8, 8),
        ("send-trace-5x.pcap", 4, 4),
        ("request-reply-5x.pcap", 3, 3),
        ("fault-disk-full-plain-5x.pcap", 77, 77),
        ("push-retry-dlq-5x.pcap", 0, 0),
        ("foreign-5x.pcap", 0, 0),
        ("snaplen-5x.pcap", 0, 0),
        ("format-gzip-5x.pcap.gz", 6, 6),
    ],
)
def test_samples_give_their_messages(name: str, sends: int, messages: int) -> None:
    steps, _ = plan_of(sample(name))
    assert (len(steps), sum(len(one.messages) for one in steps)) == (sends, messages)


def test_concurrent_sends_of_samples_are_async_and_the_rest_is_not() -> None:
    for name, mode in (
        ("send-sync-5x.pcap", SendMode.SYNC),
        ("send-async-5x.pcap", SendMode.ASYNC),
        ("send-oneway-5x.pcap", SendMode.ONEWAY),
        ("one-direction-5x.pcap", SendMode.SYNC),
    ):
        steps, _ = plan_of(sample(name))
        assert {one.mode for one in steps} == {mode}, name


def test_what_is_asked_for_is_replayed_too() -> None:
    include = frozenset((OptionalKind.trace, OptionalKind.replies))
    options = PlanOptions(choice=Selection(include=include))
    traces, _ = plan_of(sample("send-trace-5x.pcap"), options=options)
    assert Counter(one.messages[0].topic for one in traces)["RMQ_SYS_TRACE_TOPIC"] > 0
    replies, _ = plan_of(sample("request-reply-5x.pcap"), options=options)
    assert len(replies) == 6


def test_reasons_are_counted_and_loops_are_not_counted_twice() -> None:
    run = PlannedRun([sample("removed-5x.pcap")], lambda _: PlanOptions(), loops=3)
    rows = [row for group in run.batches() for row in group]
    once = PlannedRun([sample("removed-5x.pcap")], lambda _: PlanOptions())
    list(once.batches())
    assert run.skipped == once.skipped
    assert run.skipped[SkipReason.ORPHAN, ""] == 5
    assert run.sends == 3 * once.sends == len([row for row in rows if isinstance(row, PlannedSend)])
    dues = [row.due for row in rows if isinstance(row, PlannedSend)]
    assert dues == sorted(dues)
