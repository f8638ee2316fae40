"""Incidents: the cause first, no circle, nothing together that contradicts itself."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.incidents import grouped, merged
from analytics.diagnosis.problem import Evidence, Problem, ProblemSeverity, ProblemState, Subject
from analytics.diagnosis.rule import DiagnosisRule

from .made_rules import problem, rule

RULES = {
    name: rule(name, consequence_of=frozenset(causes))
    for name, causes in {
        "killed": (),
        "reset": ("killed",),
        "retried": ("reset", "killed"),
        "chicken": ("egg",),
        "egg": ("chicken",),
        "alone": ("alone",),
    }.items()
}
INFO, WARNING = ProblemSeverity.INFO, ProblemSeverity.WARNING


def shape(problems: list[Problem]) -> list[tuple[int, str, str | None]]:
    return [(one.incident, one.rule, one.consequence_of) for one in grouped(problems, RULES)]


def test_the_cause_comes_first_although_less_grave() -> None:
    found = shape([problem("retried", 3), problem("killed", 5, severity=INFO), problem("reset", 4)])
    assert found == [(1, "killed", None), (1, "retried", "reset"), (1, "reset", "killed")]


def test_an_injected_fault_leads_to_what_nothing_else_leads_to() -> None:
    rules = {
        **RULES,
        "fault": rule("fault", leads_to_all=True),
        "setting": rule("setting", lasts=None),
    }
    given = [problem(name, 3) for name in ("killed", "reset", "alone", "setting")]
    found = grouped([problem("fault", 2, severity=INFO), *given], rules)
    assert {one.rule: one.consequence_of for one in found} == {
        "fault": None,
        "killed": "fault",
        "reset": "killed",
        "alone": "fault",
        "setting": None,
    }
    far = grouped([problem("fault", 2), problem("alone", 3600)], rules)
    assert [one.consequence_of for one in far] == [None, None]


def test_far_in_time_is_another_incident() -> None:
    assert shape([problem("killed", 0), problem("reset", 31)]) == [
        (1, "killed", None),
        (2, "reset", None),
    ]
    assert shape([problem("killed", 0, last=10), problem("reset", 39)])[1][0] == 1
    assert shape([problem("killed", 50), problem("reset", 0, last=20)])[0][0] == 1


def test_a_cause_that_leads_to_nothing_later() -> None:
    """A server that was starting had no users yet."""
    start = problem("killed", 0, last=5, leads_within=0)
    assert shape([start, problem("reset", 6)])[1] == (2, "reset", None)
    assert shape([start, problem("reset", 4)])[1] == (1, "reset", "killed")


def test_the_cause_is_the_nearest_in_time() -> None:
    first, second = Subject(server="a"), Subject(server="b")
    found = grouped(
        [
            problem("killed", 0, last=2, subject=first),
            problem("killed", 20, last=25, subject=second),
            problem("retried", 22),
            problem("reset", 8),
        ],
        RULES,
    )
    assert [(one.incident, one.rule, one.subject) for one in found] == [
        (1, "killed", first),
        (1, "reset", Subject()),
        (2, "killed", second),
        (2, "retried", Subject()),
    ]


def times(*seconds: tuple[int, int]) -> list[tuple[int, int]]:
    return [(first * 1_000_000_000, last * 1_000_000_000) for first, last in seconds]


def test_a_cause_that_came_twice_leads_to_nothing_in_between() -> None:
    """A master is gone at the beginning and at the end, its slave meanwhile."""
    master, slave = Subject(broker="a", server="master"), Subject(broker="a", server="slave")
    found = grouped(
        [
            problem("killed", 0, last=60, subject=master, spans=times((0, 2), (58, 60))),
            problem("killed", 20, last=30, subject=slave),
            problem("reset", 26, last=28, subject=Subject(broker="a")),
        ],
        RULES,
    )
    assert [(one.incident, one.rule, one.subject.server) for one in found] == [
        (1, "killed", "master"),
        (2, "killed", "slave"),
        (2, "reset", None),
    ]


def test_of_causes_at_one_time_that_counts_which_has_the_evidence() -> None:
    """Sends fail while a broker restarts, and more of them while it hangs later."""
    seen = [Evidence("a.pcap", at, at * 1_000_000_000, 0, "seen") for at in (4, 15, 16)]
    found = shape(
        [
            problem("killed", 0, last=5),
            problem("reset", 4, last=18, spans=times((4, 5), (14, 18))),
            problem("retried", 4, last=16, evidence=seen),
        ]
    )
    assert found == [(1, "killed", None), (1, "reset", "killed"), (1, "retried", "reset")]


def test_what_only_one_time_of_a_cause_led_to_says_which() -> None:
    def details(*at: int, count: int | None = None) -> list[str]:
        seen = [Evidence("a.pcap", one, one * 1_000_000_000, 0, "seen") for one in at]
        number = len(at) if count is None else count
        cause = problem("reset", 4, last=18, spans=times((4, 5), (14, 18)))
        return grouped([cause, problem("retried", 4, last=16, evidence=seen, count=number)], RULES)[
            1
        ].details

    assert details(15, 16) == ["caused only by reset at these times: 00:00:14 to 00:00:18 UTC"]
    assert details(4, 15) == []
    assert details(15, 16, count=9) == []  # of those that are not shown nobody knows


def test_parts_of_one_subject_are_not_joined() -> None:
    found = merged([problem("killed", 0), problem("killed", 4), problem("killed", 2, part="a")], [])
    assert sorted((one.count, one.part) for one in found) == [(1, "a"), (2, "")]


def test_another_server_of_the_same_name_is_another_incident() -> None:
    """A proxy has the name of its broker in the routes that it gives."""

    def found(server: str | None) -> list[tuple[int, str, str | None]]:
        proxy = problem("killed", 0, last=9, subject=Subject(broker="a", server="proxy"))
        return shape([proxy, problem("reset", 5, subject=Subject(broker="a", server=server))])

    assert found("broker")[1] == (2, "reset", None)
    assert found("proxy")[1] == found(None)[1] == (1, "reset", "killed")


def test_a_server_that_is_no_broker_contradicts_none() -> None:
    broker = problem("killed", 0, subject=Subject(broker="a", server="slave"))
    assert shape([broker, problem("reset", 5, subject=Subject(server="proxy"))])[1][0] == 1


def test_a_rule_may_follow_at_once_only() -> None:
    rules = {**RULES, "reset": rule("reset", consequence_of=frozenset(("killed",)), **AT_ONCE)}

    def incidents(at: int) -> list[int]:
        found = grouped([problem("killed", 0), problem("reset", at)], rules)
        return [one.incident for one in found]

    assert (incidents(2), incidents(3)) == ([1, 1], [1, 2])


AT_ONCE = {"follows_within": 2_000_000_000}


@pytest.mark.parametrize("part", ["broker", "topic", "group", "client"])
def test_another_subject_is_another_incident(part: str) -> None:
    def about(name: str) -> Subject:
        return Subject(**{part: name})  # type: ignore[arg-type]

    found = grouped(
        [
            problem("killed", 0, subject=about("a")),
            problem("reset", 1, subject=about("b")),
            problem("reset", 2, subject=about("a")),
            problem("reset", 3),
        ],
        RULES,
    )
    assert [(one.incident, one.subject, one.consequence_of) for one in found] == [
        (1, about("a"), None),
        (1, about("a"), "killed"),
        (1, Subject(), "killed"),
        (2, about("b"), None),
    ]


def test_the_gravest_incident_comes_first() -> None:
    found = shape(
        [
            problem("killed", 0, severity=INFO),
            problem("killed", 100, severity=WARNING),
            problem("killed", 200, severity=INFO),
            problem("reset", 201),
        ]
    )
    assert [one[:2] for one in found] == [(1, "killed"), (1, "reset"), (2, "killed"), (3, "killed")]


def test_rules_that_follow_from_each_other_make_no_circle() -> None:
    assert shape([problem("egg", 1), problem("chicken", 2)]) == [
        (1, "chicken", None),
        (1, "egg", "chicken"),
    ]
    assert shape([problem("alone", 1), problem("alone", 2)]) == [
        (1, "alone", None),
        (1, "alone", "alone"),
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(RULES)),
            st.integers(0, 90),
            st.sampled_from(ProblemSeverity),
            st.sampled_from([None, "a", "b"]),
        ),
        max_size=12,
    ),
    st.integers(0, 9),
)
def test_any_problems(given: list[tuple[str, int, ProblemSeverity, str | None]], seed: int) -> None:
    def made() -> list[Problem]:
        return [
            problem(name, at, severity=severity, subject=Subject(broker=broker), spans=spans(at))
            for name, at, severity, broker in given
        ]

    def spans(at: int) -> list[tuple[int, int]]:
        return times((at, at + 1), (at + 50, at + 60)) if at % 2 else []

    problems, shuffled = made(), made()
    random.Random(seed).shuffle(shuffled)
    found = grouped(problems, RULES)
    check(found, RULES)
    assert len(found) == len(problems)
    assert found == grouped(shuffled, RULES)


def check(found: list[Problem], by_id: dict[str, DiagnosisRule]) -> None:
    """Each incident begins with its only cause; what follows names a rule that leads to it."""
    assert [one.incident for one in found] == sorted(one.incident for one in found)
    for number in {one.incident for one in found}:
        first, *others = (one for one in found if one.incident == number)
        assert first.consequence_of is None
        names = [first.rule]
        for one in others:
            assert one.consequence_of is not None
            assert one.consequence_of in by_id[one.rule].consequence_of
            names.append(one.rule)
        assert {one.consequence_of for one in others} <= set(names)
    assert {one.incident for one in found} == set(
        range(1, len({one.incident for one in found}) + 1)
    )


def test_many_problems_are_put_together_in_time() -> None:
    every = [problem(name, at) for name in RULES for at in range(200)]
    assert len(grouped(every, RULES)) == len(every)


@pytest.mark.parametrize("states", [("ended", "ongoing"), ("ongoing", "ended")])
def test_a_problem_goes_on_if_one_of_its_parts_does(states: tuple[str, str]) -> None:
    often, rare = problem("killed", 3), problem("killed", 4)
    often.count, rare.count = 9, 1
    often.state, rare.state = map(ProblemState, states)
    (one,) = merged([often, rare], [])
    assert one.state is ProblemState.GOING_ON
