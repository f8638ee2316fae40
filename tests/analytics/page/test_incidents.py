from __future__ import annotations

from analytics.page.incidents import MOST_CARDS, incident_cards
from analytics.report import Row

HOSTILE = "<img src=x onerror=alert(1)>\"'"


def row(**changed: object) -> Row:
    return {
        "incident": 1,
        "severity": "error",
        "title": "broker-a is gone",
        "confidence": "certain",
        "reason": None,
        "rule": "broker-gone",
        "consequence_of": None,
        "count": 1,
        "first_time": 1,
        "last_time": 2,
        "evidence": ["packet 7"],
        "filter": "frame.number in {7}",
        "details": [],
        "explanation": "why",
        "advice": "what to do",
        "references": [],
        **changed,
    }


def test_problems_of_one_incident_stand_together() -> None:
    page = incident_cards(
        [row(), row(consequence_of="broker-gone", severity="info"), row(incident=2)], str
    )
    assert page.count('<li class="incident">') == 2
    assert page.count('class="problem error"') == 2
    assert page.count('class="problem info follows"') == 1


def test_nothing_wrong_is_no_card() -> None:
    assert incident_cards([], str) == ""


def test_texts_of_the_network_stay_texts() -> None:
    names = ("title", "reason", "rule", "severity", "filter", "explanation", "advice")
    changed = dict.fromkeys(names, HOSTILE)
    lists = {name: [HOSTILE] for name in ("evidence", "details", "references")}
    page = incident_cards([row(**changed, **lists)], str)
    assert "<img" not in page
    assert page.count("&lt;img") == len(names) - 1 + len(lists)  # a severity is one of three


def test_many_problems_are_cut_and_counted() -> None:
    page = incident_cards([row(incident=number) for number in range(MOST_CARDS + 3)], str)
    assert page.count("<article") == MOST_CARDS
    assert "3 further problems" in page
