"""Problems of one subject are parted by long quiet: copies of a capture hours apart tell each time.

What happens all the time, however rarely, is one problem; a setting is one whatever the quiet.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis import refusals
from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import Evidence, Problem, ProblemState, Tally
from analytics.diagnosis.registry import rule_of, rules
from analytics.diagnosis.spells import (
    HOUR,
    MAX_INTERVALS,
    MAX_TIMES,
    Parts,
    SpellTally,
    Times,
    span_of,
    spells,
)
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord
from tests.profiles import examples

from .made_rows import START, SampleRows, exchange, sample
from .made_rules import problem

DAY = 24 * HOUR
SEND = int(RequestCode.SEND_MESSAGE)
BUSY = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 201ms"
INCIDENTS = (
    *("fault-kill-5x", "fault-freeze-4x", "fault-disk-full-5x", "busy-send-queue-5x"),
    *("push-retry-dlq-5x", "namesrv-gone-4x", "acl-5x", "slave-read-4x", "pull-5x"),
    *("flush-late-5x", "send-unknown-topic-4x", "fault-no-permission-5x", "fault-slow-5x"),
)
OPEN_ENDS = ("to the end of the capture", "until at least", "has no master since")


# -- copies of a capture --------------------------------------------------------------------------


def copied(rows: SampleRows, by: int, number: int) -> SampleRows:
    """The same again later: other messages, other connections."""

    def later(time: int | None) -> int | None:
        return None if time is None else time + by

    def renamed(text: str | None) -> str | None:
        # The digits of the process: after a restart they are other ones.
        if text is None or len(text) != 32:
            return text
        return f"{text[:12]}{(int(text[12:20], 16) + number) % (1 << 32):08X}{text[20:]}"

    exchanges = [
        msgspec.structs.replace(
            row,
            conversation=row.conversation + number * 1000,
            request_time=later(row.request_time),
            response_time=later(row.response_time),
            unique_key=renamed(row.unique_key),
        )
        for row in rows.exchanges
    ]
    connections = [
        msgspec.structs.replace(
            row,
            conversation=row.conversation + number * 1000,
            start_time=row.start_time + by,
            end_time=row.end_time + by,
        )
        for row in rows.connections
    ]
    return SampleRows(exchanges, connections, rows.findings)


def judged(parts: Sequence[SampleRows], seed: int | None = None) -> list[Problem]:
    exchanges = [row for part in parts for row in part.exchanges]
    connections = [row for part in parts for row in part.connections]
    if seed is not None:
        random.Random(seed).shuffle(exchanges)
        random.Random(seed).shuffle(connections)
    engine = Engine(rules())
    engine.add_exchanges(exchanges)
    engine.add_connections(connections)
    for part in parts:
        engine.add_findings(part.findings)
    return engine.diagnosis().problems


def passing(found: Sequence[Problem]) -> list[Problem]:
    """Those of states that pass by themselves."""
    return [one for one in found if (rule := rule_of(one.rule)) is not None and rule.lasts]


def told(one: Problem, by: int = 0) -> tuple[object, ...]:
    subject = msgspec.structs.replace(one.subject, message=None)
    # What went on to the end of one copy was seen to go on at least so long.
    title = "" if any(text in one.title for text in OPEN_ENDS) else one.title
    # A renamed UNIQ_KEY loses its creation time, which is some ms before the request.
    title = re.sub(r"(\d\.\d)\d s\b", r"\1 s", title)
    return one.rule, subject, one.count, one.first_time + by, one.last_time + by, title


@pytest.mark.parametrize("name", INCIDENTS)
def test_copies_a_day_apart_are_told_each_with_its_times(name: str) -> None:
    rows = copied(sample(f"{name}.pcap"), 0, 0)
    alone = judged([rows])
    both = judged([rows, copied(sample(f"{name}.pcap"), DAY, 1)])
    expected = Counter(told(one, by) for one in passing(alone) for by in (0, DAY))
    assert Counter(map(told, passing(both))) == expected
    settings = {(one.rule, one.subject) for one in alone} - {
        (one.rule, one.subject) for one in passing(alone)
    }
    found = Counter((one.rule, one.subject) for one in both)
    assert {found[one] for one in settings} <= {1}


@pytest.mark.parametrize("name", INCIDENTS[:6])
@examples(0.1)
@given(st.integers(2, 4), st.integers(2, 40), st.integers(0, 1 << 16))
def test_copies_hours_apart_in_any_order(name: str, copies: int, hours: int, seed: int) -> None:
    rows = sample(f"{name}.pcap")
    alone = Counter(one.rule for one in passing(judged([copied(rows, 0, 0)])))
    parts = [copied(rows, number * hours * HOUR, number) for number in range(copies)]
    found = judged(parts, seed)
    assert Counter(one.rule for one in passing(found)) == Counter(
        {rule: number * copies for rule, number in alone.items()}
    )
    assert [told(one) for one in judged(parts)] == [told(one) for one in found]


@pytest.mark.parametrize("name", INCIDENTS[:6])
def test_copies_minutes_apart_are_one(name: str) -> None:
    rows = sample(f"{name}.pcap")
    alone = Counter(one.rule for one in passing(judged([copied(rows, 0, 0)])))
    parts = [copied(rows, number * HOUR // 6, number) for number in range(3)]
    found = Counter(one.rule for one in passing(judged(parts)))
    assert all(found[rule] <= number for rule, number in alone.items())


# -- what goes on all the time --------------------------------------------------------------------


def refusal(minute: float) -> ExchangeRecord:
    return exchange(minute * 60_000, SEND, 2, remark=BUSY, topic="T")


def healthy(minute: float) -> ExchangeRecord:
    return exchange(minute * 60_000, SEND, 0, topic="T")


def overloads(rows: Sequence[ExchangeRecord]) -> list[Problem]:
    engine = Engine(rules(), {"send-queue-timeout"})
    engine.add_exchanges(rows)
    return sorted(engine.diagnosis().problems, key=lambda one: one.first_time)


def test_sparse_signs_over_a_day_are_one_problem() -> None:
    (one,) = overloads([refusal(minute) for minute in range(0, 24 * 60, 55)])
    assert one.count == 27
    assert one.last_time - one.first_time == 26 * 55 * 60 * 1_000_000_000


def test_good_traffic_between_does_not_hide_that_there_were_two() -> None:
    rows = [healthy(minute) for minute in range(600)]
    rows += [refusal(minute) for minute in (10, 11, 12, 400)]
    first, second = overloads(rows)
    assert (first.count, second.count) == (3, 1)
    assert first.title.startswith("10.0.0.1:10911 refused 3 sends")
    assert second.title.startswith("10.0.0.1:10911 refused 1 send:")
    assert second.first_time == START + 400 * 60 * 1_000_000_000 + 1_000_000
    assert {first.state, second.state} == {ProblemState.OVER}
    # Of the hours in which it refused some: 57 of 600.
    assert "sends to this broker, including refused ones: 10.0.0.9 (57)" in first.details


def test_what_goes_on_to_the_end_is_not_over() -> None:
    (one,) = overloads([refusal(minute) for minute in range(0, 60, 5)] + [healthy(58)])
    assert one.state is ProblemState.GOING_ON
    (one,) = overloads([refusal(0), refusal(0.1), healthy(3)])
    assert one.state is ProblemState.OVER


def test_what_was_seen_once_shortly_before_the_end_is_neither_over_nor_going_on() -> None:
    (one,) = overloads([refusal(0), healthy(0.3)])
    assert one.state is None


@pytest.mark.parametrize(
    ("name", "rule", "state"),
    [
        ("fault-kill-5x", "broker-gone", ProblemState.OVER),
        ("slave-read-4x", "broker-gone", ProblemState.GOING_ON),
        ("fault-freeze-plain-5x", "broker-hung", ProblemState.OVER),
        ("fault-kill-5x", "broker-isolated", ProblemState.OVER),
        ("fault-freeze-4x", "broker-isolated", ProblemState.GOING_ON),
        ("fault-kill-5x", "send-retried", None),
    ],
)
def test_the_capture_shows_whether_it_is_over(
    name: str, rule: str, state: ProblemState | None
) -> None:
    found = judged([sample(f"{name}.pcap")])
    assert {one.state for one in found if one.rule == rule} == {state}


def test_nobody_can_tell_of_a_setting_whether_it_is_over() -> None:
    found = judged([copied(sample("acl-5x.pcap"), 0, 0)])
    assert {one.state for one in found if one.rule == "acl-signature"} == {None}


def test_parts_of_a_long_time_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MAX_PARTS", 4)
    found = overloads([refusal(minute) for minute in range(0, 60 * 200, 200)])
    assert sum(one.count for one in found) == 60
    assert len(found) <= 4


# -- signs ----------------------------------------------------------------------------------------

_TIMES = st.lists(st.integers(0, 400 * HOUR), min_size=1, max_size=40)


def tallied(times: Sequence[int]) -> list[tuple[int, int, int]]:
    tally = SpellTally()
    for time in times:
        tally.at(time).add(Evidence("", None, time, 0, ""))
    return [(one.count, one.first, one.last) for one in tally.spells()]


@given(_TIMES, st.randoms(use_true_random=False))
def test_spells_depend_on_times_only(times: list[int], chance: random.Random) -> None:
    parted = [(len(one), one[0], one[-1]) for one in spells(times, lambda one: (one, one), HOUR)]
    assert tallied(times) == parted
    chance.shuffle(times)
    assert tallied(times) == parted
    ends = [(first, last) for _, first, last in parted]
    assert all(after[0] - before[1] > HOUR for before, after in pairwise(ends))
    assert spells(times, lambda one: (one, one), None) == [sorted(times)]


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=2000))
def test_a_tally_of_many_spells_is_bounded(hours: list[int]) -> None:
    tally = SpellTally()
    for hour in hours:
        time = hour * 3 * HOUR
        tally.at(time).add(Evidence("", None, time, 0, ""))
    found = tally.spells()
    assert len(found) <= MAX_INTERVALS
    assert sum(one.count for one in found) == len(hours)


def test_names_over_the_bound_have_no_part() -> None:
    parts: Parts[Tally] = Parts(2, lambda _: Tally(), Tally.merge)
    assert parts.part("a", 0, HOUR) is not None
    assert parts.part("b", 0, HOUR) is not None
    assert parts.part("c", 0, HOUR) is None
    assert [name for name, *_ in parts.items()] == ["a", "b"]


def test_problems_of_one_subject_join_where_no_hour_is_between() -> None:
    from analytics.diagnosis.incidents import merged

    def at(*minutes: int) -> list[Problem]:
        return [problem(at=60 * one) for one in minutes]

    found = merged(at(0, 50, 100, 200, 250), [])
    assert sorted((one.count, one.first_time) for one in found) == [
        (2, 200 * 60 * 1_000_000_000),
        (3, 0),
    ]
    assert span_of(Tally()) == (0, 0)


def test_every_rule_says_whether_quiet_ends_it() -> None:
    assert {rule.lasts for rule in rules()} == {HOUR, None}


@examples(0.5)
@given(st.lists(st.integers(0, 50 * DAY), max_size=60), st.randoms())
def test_which_moments_are_kept_does_not_depend_on_their_order(
    moments: list[int], chance: random.Random
) -> None:
    several = [moment + HOUR * number for moment in moments for number in range(40)]
    found = []
    for _ in range(2):
        times = Times()
        for moment in several:
            times.add(moment)
        found.append(list(times))
        chance.shuffle(several)
    assert found[0] == found[1] == sorted(set(found[0]) & set(several))
    assert found[0][:1] == sorted(several)[:1]
    assert found[0][-1:] == sorted(several)[-1:]
    assert len(found[0]) <= 2 * MAX_TIMES
