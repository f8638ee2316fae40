"""The fault strategy against what Java producers logged, and as rules that hold for all inputs."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from dissectors.remoting.versions import ordinal_of
from replay.fault import (
    GENERATIONS,
    VARIANTS,
    AttemptEvent,
    ChoiceReason,
    Effect,
    FaultRules,
    FaultSettings,
    FaultStrategy,
    QueueIndex,
    effect_of,
    generation_of_version,
    rules_of_version,
)
from tests.replay.queues import SomeQueue, Table, ToldIndex, table_of
from tests.replay.recorded import ALL_RUNS, Run, Step, routes_of, run_of, wire_attempts_of

every_run = pytest.mark.parametrize("name", ALL_RUNS)
ANY = ""


# what the Java clients logged


def apply(strategy: FaultStrategy, step: Step) -> None:
    """Tell the strategy what happened in a step, and check that it may have happened then."""
    interval = strategy.settings.detect_interval_ms
    ours = {item.name: item for item in strategy.items()}
    for item in step.items:
        if item.name in ours and item.check_stamp != ours[item.name].check_stamp:
            assert item.name in strategy.due(item.check_stamp - interval)
            strategy.probing(item.name, item.check_stamp - interval)
    for update in step.updates:
        assert step.begin + update.latency <= update.now <= step.at
        strategy.report(update.broker, update.event, update.latency, update.now)
    for item in step.items:
        if item.reachable and not strategy.is_reachable(item.name):
            assert item.check_stamp > 0, "only the detector makes a broker reachable by itself"
            strategy.probed(item.name, answered=True)


@every_run
def test_items_are_those_that_java_logged(name: str) -> None:
    run = run_of(name)
    strategy = FaultStrategy(run.settings)
    assert any(step.kind == "send" for step in run.steps)
    for step in run.steps:
        if run.settings.enabled:
            apply(strategy, step)
        else:
            strategy.report("broker-a", AttemptEvent.TRANSPORT_ERROR, 1000, step.at)
        assert strategy.items() == step.items


def attempts_of(run: Run, step: Step) -> list[tuple[str, int | None]]:
    """Return brokers and, where known, queues of a call: from the wire, and those without it."""
    seen = wire_attempts_of(run.name).get(step.unique_key or "", ())
    attempts: list[tuple[str, int | None]] = [(q.broker_name, q.queue_id) for q in seen]
    brokers = {broker for broker, _ in attempts}
    unseen = [(update.broker, None) for update in step.updates if update.broker not in brokers]
    if step.error == "RemotingTooMuchRequestException":
        attempts.append((ANY, None))  # a queue was chosen before the budget was seen to be over
    return [*unseen, *attempts]


def continuations(
    strategy: FaultStrategy,
    queues: tuple[SomeQueue, ...],
    starts: set[int],
    step: Step,
    attempts: list[tuple[str, int | None]],
) -> set[int]:
    """Return where the index may be after a call, for all that it may be before; empty: nowhere."""
    last: str | None = None
    now = step.begin
    for number, (broker, queue_id) in enumerate(attempts):
        after: set[int] = set()
        for start in starts:
            reset = number > 0 and strategy.settings.generation == "5.1"
            for restart in range(len(queues)) if reset else (0,):
                table = Table(queues, ToldIndex(start, restart))
                queue = strategy.select(table, last, number > 0, now).queue
                if broker in (ANY, queue.broker_name) and queue_id in (None, queue.queue_id):
                    after.add(table.index.value % len(queues))
        told = [update for update in step.updates if update.broker == broker]
        for update in told if strategy.settings.enabled else []:
            strategy.report(broker, update.event, update.latency, update.now)
            now = update.now
        starts, last = after, broker
    return starts


@every_run
def test_queues_are_those_that_java_chose(name: str) -> None:
    """All indexes and routes that may be are followed; one must give what Java chose."""
    run = run_of(name)
    strategy = FaultStrategy(run.settings)
    tables: dict[tuple[SomeQueue, ...], set[int]] = {}
    known = sends = 0
    for step in run.steps:
        if step.kind == "send":
            old = [queues for at, queues in routes_of(name) if at < step.begin]
            new = [queues for at, queues in routes_of(name) if step.begin <= at <= step.at]
            tables = {queues: starts for queues, starts in tables.items() if queues in old[-1:]}
            for queues in (*old[-1:], *new):
                tables.setdefault(queues, set(range(len(queues))))
            attempts = attempts_of(run, step)
            known += [len(starts) for starts in tables.values()] == [1]
            sends += 1
            after = {
                queues: continuations(deepcopy(strategy), queues, starts, step, attempts)
                for queues, starts in tables.items()
            }
            assert any(after.values()), f"Java chose {attempts}, which no index gives"
            tables = {
                queues: set(range(len(queues))) if queues in new else starts
                for queues, starts in after.items()
                if starts or queues in new
            }
        if run.settings.enabled:
            apply(strategy, step)
    assert known > sends / 2


# what differs by version, from the sources of the tags


@pytest.mark.parametrize(
    ("version", "generation", "rules"),
    [
        ("V4_2_0", "4.7", VARIANTS[0]),
        ("V4_7_1", "4.7", VARIANTS[0]),
        ("V4_8_0", "4.8", VARIANTS[1]),
        ("V4_9_3", "4.8", VARIANTS[1]),
        ("V4_9_7", "4.8", VARIANTS[2]),
        ("V4_9_8", "4.8", VARIANTS[3]),
        ("V5_0_0", "4.8", VARIANTS[4]),
        ("V5_1_0", "4.8", VARIANTS[4]),
        ("V5_1_3", "4.8", VARIANTS[5]),
        ("V5_1_4", "5.1", VARIANTS[6]),
        ("V5_2_0", "5.1", VARIANTS[7]),
        ("HIGHER_VERSION", "5.1", VARIANTS[7]),
    ],
)
def test_a_version_has_its_rules(version: str, generation: str, rules: FaultRules) -> None:
    ordinal = ordinal_of(version)
    assert generation_of_version(ordinal) == generation
    assert rules_of_version(ordinal) is rules
    assert FaultSettings.of_version(ordinal).rules is rules


def test_without_a_version_the_newest_rules_hold() -> None:
    assert rules_of_version(None) is VARIANTS[-1]
    assert rules_of_version(0) is VARIANTS[0]


@pytest.mark.parametrize(
    ("generation", "latency", "duration"),
    [
        ("4.7", 49, 0),
        ("4.7", 549, 0),
        ("4.8", 550, 30_000),
        ("4.8", 1000, 60_000),
        ("4.8", 2999, 120_000),
        ("4.8", 3000, 180_000),
        ("4.8", 99_999, 600_000),
        ("5.1", 549, 0),
        ("5.1", 550, 2000),
        ("5.1", 1800, 5000),
        ("5.1", 3000, 6000),
        ("5.1", 5000, 10_000),
        ("5.1", 15_000, 30_000),
    ],
)
def test_duration_is_that_of_the_highest_step_reached(
    generation: str, latency: int, duration: int
) -> None:
    assert FaultSettings(generation).duration_of(latency) == duration


def test_an_isolation_is_600_seconds_or_10() -> None:
    durations = [FaultSettings(name).duration_of(3, isolation=True) for name in GENERATIONS]
    assert durations == [600_000, 600_000, 10_000]


def test_tables_can_be_set_and_are_checked() -> None:
    settings = FaultSettings("5.1", latency_max=(10, 20), not_available=(1, 2), isolation_ms=20)
    assert [settings.duration_of(latency) for latency in (9, 10, 20)] == [0, 1, 2]
    assert settings.duration_of(0, isolation=True) == 2
    for wrong in ({"latency_max": (1, 2)}, {"latency_max": (2, 1), "not_available": (1, 2)}):
        with pytest.raises(ValueError, match="latency_max"):
            FaultSettings("5.1", **wrong)
    with pytest.raises(ValueError, match="generation '5'"):
        FaultSettings("5")
    with pytest.raises(ValueError, match="rules"):
        FaultSettings("5.1", rules=VARIANTS[0])


@pytest.mark.parametrize(
    ("event", "old", "new"),
    [
        (AttemptEvent.ANSWERED, False, Effect(False, True)),
        (AttemptEvent.BROKER_ERROR, True, Effect(True, False)),
        (AttemptEvent.TRANSPORT_ERROR, True, Effect(True, True)),
        (AttemptEvent.CLIENT_ERROR, True, Effect(False, True)),
        (AttemptEvent.INTERRUPTED, False, Effect(False, True)),
        (AttemptEvent.HANDED_OVER, False, Effect(False, True)),
        (AttemptEvent.ASYNC_ERROR, True, Effect(True, True)),
        (AttemptEvent.ASYNC_LOST, True, Effect(True, True)),
        (AttemptEvent.NOT_SENT, True, Effect(True, False)),
    ],
)
def test_what_an_event_says(event: AttemptEvent, old: bool, new: Effect) -> None:
    assert effect_of(event, FaultSettings("4.8")).isolation is old
    assert effect_of(event, FaultSettings("5.1")) == new


def test_only_with_the_detector_silence_makes_unreachable() -> None:
    settings = FaultSettings("5.1", detector=True)
    assert effect_of(AttemptEvent.TRANSPORT_ERROR, settings) == Effect(True, False)


def test_an_asynchronous_send_that_cannot_begin_counts_3000_ms_up_to_4_9_3() -> None:
    for version, latency in (("V4_9_3", 3000), ("V4_9_4", 7)):
        strategy = FaultStrategy(FaultSettings.of_version(ordinal_of(version)))
        strategy.report("a", AttemptEvent.NOT_SENT, 7, now=1)
        assert strategy.items()[0].current_latency == latency


# selection


def test_the_first_generation_stays_with_the_broker_that_failed() -> None:
    strategy = FaultStrategy(FaultSettings("4.7"))
    assert strategy.select(table_of("a", "b"), "a").queue.broker_name == "a"
    strategy.report("a", AttemptEvent.TRANSPORT_ERROR, 5, now=0)
    strategy.report("b", AttemptEvent.ANSWERED, 9, now=0)
    choice = strategy.select(table_of("a", "b"), "a", now=1)
    assert (choice.queue.broker_name, choice.why) == ("b", ChoiceReason.LEAST_BAD)


@pytest.mark.parametrize(("version", "renamed"), [("V4_9_7", True), ("V4_9_8", False)])
def test_the_least_bad_broker_is_written_into_the_queues(version: str, renamed: bool) -> None:
    strategy = FaultStrategy(FaultSettings.of_version(ordinal_of(version)))
    for broker, latency in (("a", 20), ("b", 10)):
        strategy.report(broker, AttemptEvent.TRANSPORT_ERROR, latency, now=0)
    table = table_of("a", "b", start=-1)
    choice = strategy.select(table, now=1)
    # one look round, one queue, one number: the queue at 1 gets number 2 modulo 2
    assert choice == (SomeQueue("T", "b", 0), ChoiceReason.LEAST_BAD)
    assert (table.queues[1] == choice.queue) is renamed
    assert table.index.value == 2


def test_an_item_whose_broker_left_the_route_is_forgotten() -> None:
    strategy = FaultStrategy(FaultSettings("4.8"))
    strategy.report("gone", AttemptEvent.TRANSPORT_ERROR, 1, now=0)
    strategy.report("a", AttemptEvent.TRANSPORT_ERROR, 2, now=0)
    choice = strategy.select(table_of("a"), now=1)
    assert (choice.queue.broker_name, choice.why) == ("a", ChoiceReason.LAST_RESORT)
    assert [item.name for item in strategy.items()] == ["a"]


def test_a_fast_answer_ends_an_isolation_of_the_older_generations_only() -> None:
    for generation, until in (("4.7", 60), ("4.8", 60), ("5.1", 10_050)):
        strategy = FaultStrategy(FaultSettings(generation))
        strategy.report("a", AttemptEvent.TRANSPORT_ERROR, 5, now=50)
        strategy.report("a", AttemptEvent.ANSWERED, 5, now=60)
        assert strategy.isolated_until("a") == until


def test_since_5_1_4_reachable_comes_before_any_and_any_before_none() -> None:
    strategy = FaultStrategy(FaultSettings("5.1"))
    strategy.report("a", AttemptEvent.BROKER_ERROR, 5, now=0)
    strategy.report("b", AttemptEvent.TRANSPORT_ERROR, 5, now=0)
    assert strategy.allowed("abc", "c", now=1) == ({"b"}, ChoiceReason.REACHABLE)
    assert strategy.allowed("abc", None, now=1) == ({"c"}, ChoiceReason.AVAILABLE)
    assert strategy.allowed("a", "a", now=1) == ({"a"}, ChoiceReason.LAST_RESORT)


@pytest.mark.parametrize("generation", ["4.7", "4.8"])
def test_brokers_that_are_equally_bad_may_all_be_chosen(generation: str) -> None:
    """4.7.1: LatencyFaultToleranceImpl.pickOneAtLeast gives either, as its shuffle falls."""
    for seed in range(8):
        strategy = FaultStrategy(FaultSettings(generation), Random(seed))
        strategy.report("a", AttemptEvent.BROKER_ERROR, 0, now=5)
        strategy.report("b", AttemptEvent.BROKER_ERROR, 0, now=5)
        strategy.report("c", AttemptEvent.BROKER_ERROR, 0, now=6)
        for _ in range(3):
            assert strategy.allowed("abc", None, now=7) == ({"a", "b"}, ChoiceReason.LEAST_BAD)


def test_5_1_4_itself_takes_unreachable_for_unavailable() -> None:
    for version, available in (("V5_1_4", False), ("V5_2_0", True)):
        strategy = FaultStrategy(FaultSettings.of_version(ordinal_of(version)))
        strategy.report("a", AttemptEvent.BROKER_ERROR, 5, now=0)
        assert strategy.is_available("a", now=10_000) is available


def test_the_index_goes_round_past_what_java_can_count() -> None:
    index = QueueIndex(0xFFFFFFFE)
    assert [index.next() for _ in range(3)] == [0x7FFFFFFF, 0, 1]
    assert {QueueIndex(random=Random(1)).next() for _ in range(3)} == {
        QueueIndex(random=Random(1)).next()
    }


def test_the_detector_asks_again_after_its_interval() -> None:
    strategy = FaultStrategy(FaultSettings("5.1", detector=True))
    strategy.report("a", AttemptEvent.TRANSPORT_ERROR, 5, now=0)
    assert strategy.due(0) == ("a",)
    strategy.probing("a", 0)
    assert strategy.due(1999) == ()
    assert strategy.due(2000) == ("a",)
    strategy.probed("a", answered=False)
    assert not strategy.is_reachable("a")
    strategy.probed("a", answered=True)
    assert strategy.is_reachable("a")
    strategy.forget("a")
    assert strategy.items() == ()


# what holds for all inputs
