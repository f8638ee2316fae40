"""Problems as values: tallies in any order, evidence that is bounded, the form in JSON."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.problem import (
    LOWER,
    MOST_EVIDENCE,
    NOT_WRITTEN,
    Confidence,
    Evidence,
    Problem,
    ProblemSeverity,
    Subject,
    Tally,
    as_json,
    asked,
    connected,
    description_of,
    end_of,
    filter_of,
    first_line,
    period,
    shown,
    time_of,
)
from dissectors.remoting.codes import RequestCode

from .made_rows import START, connection, exchange
from .made_rules import problem

SEND = int(RequestCode.SEND_MESSAGE)


def seen(time: int, packet: int | None = 1, capture: str = "a", conversation: int = 0) -> Evidence:
    return Evidence(capture, packet, time, conversation, "seen")


def said(tally: Tally) -> tuple[int, int, int, list[Evidence]]:
    return tally.count, tally.first, tally.last, tally.evidence


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=20), st.integers(0, 20))
def test_a_tally_is_the_same_whole_or_in_parts(times: list[tuple[int, int]], cut: int) -> None:
    whole, first, second, backwards = Tally(), Tally(), Tally(), Tally()
    every = [(seen(time, packet), time + packet) for packet, (time, _) in enumerate(times)]
    for one, last in every:
        whole.add(one, last=last)
    for one, last in reversed(every):
        backwards.add(one, last=last)
    for one, last in every[:cut]:
        first.add(one, last=last)
    for one, last in every[cut:]:
        second.add(one, last=last)
    first.merge(second)
    assert said(first) == said(whole) == said(backwards)
    assert len(whole.evidence) == min(len(times), MOST_EVIDENCE)


def test_the_earliest_evidence_is_kept() -> None:
    tally = Tally()
    for time in (50, 3, 9, *range(100, 200), 1, 2):
        tally.add(seen(time))
    assert [one.time for one in tally.evidence] == [1, 2, 3, 9, 50, 100, 101, 102]
    assert (tally.first, tally.last, tally.count) == (1, 199, 105)
    case = tally.case("t", Subject())
    case.evidence.clear()
    assert len(tally.evidence) == MOST_EVIDENCE


def test_severities_are_ordered() -> None:
    info, warning, error = ProblemSeverity
    for order in permutations((info, warning, error)):
        assert sorted(order) == [info, warning, error]
    assert error >= warning > info
    assert {LOWER[one] for one in Confidence} == {Confidence.LIKELY, Confidence.POSSIBLE}


def test_the_filter_is_of_one_capture() -> None:
    assert filter_of([]) == ""
    assert filter_of([seen(1, 9), seen(2, 3), seen(3, 5, "b")]) == "frame.number in {3, 9}"
    assert filter_of([seen(1, None, conversation=4), seen(2, None)]) == "tcp.stream in {0, 4}"
    assert filter_of([seen(1, None, conversation=4), seen(2, 7)]) == "frame.number in {7}"


def test_rows_as_evidence() -> None:
    row = exchange(1000, SEND, 2, 5, remark="busy\n  now " + "x" * 300)
    assert shown(row) == Evidence("made.pcap", 10002, START + 1_005_000_000, 0, description_of(row))
    assert asked(row, "asked") == Evidence("made.pcap", 10001, START + 1_000_000_000, 0, "asked")
    assert description_of(row).startswith("SEND_MESSAGE -> SYSTEM_BUSY (2): busy now xxx")
    assert len(first_line(row.remark or "")) == 160
    silent = exchange(0, SEND, None, end="reset")
    assert shown(silent).packet == silent.request_packet
    assert description_of(silent) == "SEND_MESSAGE unanswered, connection reset"
    silent.facts = ["stream_reset=CANCEL client"]
    assert description_of(silent) == "SEND_MESSAGE unanswered, reset by the client (CANCEL)"
    assert connected(connection(7, number=3), "x") == Evidence(
        "made.pcap", None, START + 7_000_000, 3, "x"
    )


def test_rows_without_times_or_names_are_evidence_too() -> None:
    answer = exchange(5, SEND, 0, request_time=None, request_name=None, request_packet=None)
    assert time_of(answer) == end_of(answer) == answer.response_time
    assert asked(answer).packet == answer.response_packet
    nothing = exchange(5, SEND, None, request_time=None, request_packet=None, request_name=None)
    assert (time_of(nothing), end_of(nothing), shown(nothing).packet) == (0, 0, None)
    assert description_of(nothing) == "response unanswered"


FIELDS = [
    *("rule", "severity", "confidence", "reason", "title", "subject", "count", "first_time"),
    *("last_time", "state", "evidence", "filter", "details", "explanation", "advice", "references"),
    *("incident", "consequence_of", "impact"),
]


def test_a_problem_as_json_has_all_fields_and_times_as_text() -> None:
    value = as_json(problem(at=1_795_168_800, subject=Subject(broker="b", queue=0)))
    assert list(value) == FIELDS
    assert list(Problem.__struct_fields__) == [*FIELDS, *NOT_WRITTEN]
    assert json.loads(json.dumps(value)) == value
    assert value["first_time"] == value["last_time"] == "2026-11-20T10:00:00.000000Z"
    assert value["subject"] == {"broker": "b", "queue": 0}
    (evidence,) = value["evidence"]  # type: ignore[misc]
    assert evidence["time"] == "2026-11-20T10:00:00.000000Z"  # type: ignore[index]


@pytest.mark.parametrize("time", [-1, 0, (1 << 62) - 1])
def test_times_far_away_are_text(time: int) -> None:
    value = as_json(problem(first_time=time, last_time=time, evidence=[seen(time)]))
    assert isinstance(value["first_time"], str)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(0, 40))
def test_late_ones_are_counted_together(times: list[int], since: int) -> None:
    together, one_by_one = Tally(), Tally()
    for tally in (together, one_by_one):
        for time in range(since, since + MOST_EVIDENCE):
            tally.add(seen(time))
    if together.add_all_late(min(times), max(times), len(times)):
        assert all(one_by_one.add_late(time) for time in times)
    else:
        assert not one_by_one.add_late(min(times))
        return
    assert (together.count, together.last) == (one_by_one.count, one_by_one.last)
    assert together.evidence == one_by_one.evidence


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "23:59:50 to 23:59:50"), (9, "23:59:50 to 23:59:59"),
     (20, "23:59:50 to 2026-11-21 00:00:10"), (86_400, "23:59:50 to 2026-11-21 23:59:50")],
)  # fmt: skip
def test_a_period_that_ends_on_another_day_says_so(seconds: int, text: str) -> None:
    begin = 1_795_219_190_000_000_000
    assert period(begin, begin + seconds * 1_000_000_000) == text
