"""What problems mean for messages."""

from __future__ import annotations

from analytics.diagnosis.incidents import impact_of, merged
from analytics.diagnosis.problem import Impact, Problem, Subject, as_json

from .show import SAMPLES, diagnosis_of


def _problems(*samples: str) -> list[Problem]:
    return diagnosis_of([str(SAMPLES / f"{name}.pcap") for name in samples]).problems


def test_an_incident_has_the_sum_of_its_problems() -> None:
    found = _problems("broker-forgotten-51")
    incident = [one for one in found if one.incident == 1]
    assert impact_of(incident) == "1 send attempt failed; 1 send succeeded on retry"
    disk_full = next(one for one in incident if one.rule == "disk-full")
    assert as_json(disk_full)["impact"] == {"sends_failed": 1}


def test_a_group_is_named_where_there_is_one_only() -> None:
    lag = next(one for one in _problems("consumer-lag-5x") if one.rule == "consumer-lag")
    number = lag.impact[Impact.NOT_CONSUMED]
    assert number == lag.count > 1
    assert impact_of([lag]) == f"{number} messages of group lag_group were not consumed"
    dead = next(one for one in _problems("dead-letters-5x") if one.rule == "dead-letter")
    dead.impact = {Impact.NOT_CONSUMED: 1}
    assert impact_of([lag, dead]) == f"{number + 1} messages were not consumed"


def test_what_is_refused_but_no_send_does_not_fail_sends() -> None:
    found = _problems("group-missing-5x")
    missing = next(one for one in found if one.rule == "group-missing")
    assert missing.impact == {}
    assert impact_of(found) == ""


def test_joined_problems_have_the_sum() -> None:
    first, second = (
        next(one for one in _problems("consumer-lag-5x") if one.rule == "consumer-lag")
        for _ in range(2)
    )
    first.impact, second.impact = {Impact.NOT_CONSUMED: 2}, {Impact.NOT_CONSUMED: 3}
    (joined,) = merged([first, second], [])
    assert joined.impact == {Impact.NOT_CONSUMED: 5}


def test_every_impact_has_a_text_for_one_and_for_several() -> None:
    problem = _problems("consumer-lag-5x")[0]
    for impact in Impact:
        texts = []
        for count in (1, 1200):
            problem.impact, problem.subject = {impact: count}, Subject(group="orders")
            texts.append(impact_of([problem]))
        one, several = texts
        assert one.startswith("1 ")
        assert several.startswith("1,200 ")
        assert one.removeprefix("1 ") != several.removeprefix("1,200 ")
        assert "{" not in one + several
