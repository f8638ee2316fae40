"""The engine: which rule takes what, bounds, and the same diagnosis in whatever order rows come."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import permutations

import msgspec
import pytest

from analytics.diagnosis import engine, incidents
from analytics.diagnosis.context import Context, Need
from analytics.diagnosis.engine import Diagnosis, Engine, not_judged
from analytics.diagnosis.incidents import merged
from analytics.diagnosis.problem import Case, Confidence, ProblemSeverity, Subject, Tally, connected
from analytics.diagnosis.registry import rules
from analytics.diagnosis.rule import DiagnosisRule, Exchanges, Fold
from dissectors.findings import Finding, FindingKind
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import UNANSWERED
from tests.expected import captures

from .made_rows import SampleRows, connection, exchange, sample
from .made_rules import ByTopic, problem, rule

SEND, PULL = int(RequestCode.SEND_MESSAGE), int(RequestCode.PULL_MESSAGE)
SAMPLES = [one.name for one in captures()]
INCIDENTS = (
    "fault-kill-5x.pcap",
    "fault-freeze-4x.pcap",
    "busy-page-cache-5x.pcap",
    "namesrv-gone-4x.pcap",
    "acting-master-5x.pcap",
    "proxy-remoting-5x.pcap",
)


def judged(
    chosen: list[DiagnosisRule],
    rows: SampleRows,
    connections_first: bool = False,
    at_once: int = 100,
) -> bytes:
    """All that is said of rows, also a second time, as bytes that can be compared."""
    made = Engine(chosen)
    if connections_first:
        made.add_connections(rows.connections)
    for start in range(0, len(rows.exchanges), at_once):
        made.add_exchanges(rows.exchanges[start : start + at_once])
    if not connections_first:
        made.add_connections(rows.connections)
    made.add_findings(rows.findings)
    first = text_of(made.diagnosis())
    assert text_of(made.diagnosis()) == first
    return first


def text_of(diagnosis: Diagnosis) -> bytes:
    return msgspec.json.encode(
        (diagnosis.problems, diagnosis.silent, diagnosis.spoke, diagnosis.limits)
    )


def shuffled(rows: SampleRows, seed: int) -> SampleRows:
    exchanges, connections = list(rows.exchanges), list(rows.connections)
    random.Random(seed).shuffle(exchanges)
    random.Random(seed).shuffle(connections)
    return SampleRows(exchanges, connections, rows.findings)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_diagnosis_does_not_depend_on_the_order_of_rows(name: str) -> None:
    """Nor on how many are taken together."""
    rows = sample.__wrapped__(name)
    every = list(rules())
    expected = judged(every, rows)
    assert judged(every, shuffled(rows, 0)) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "BATCH", 1)
        assert judged(every, shuffled(rows, 1), connections_first=True, at_once=1) == expected


@pytest.mark.parametrize("name", INCIDENTS)
def test_a_diagnosis_of_an_incident_depends_on_no_order(name: str) -> None:
    rows = sample(name)
    every = list(rules())
    expected = judged(every, rows)
    assert len(msgspec.json.decode(expected)[0]) > 1
    for seed in range(3):
        assert judged(every, shuffled(rows, seed), connections_first=seed == 1) == expected


def test_nothing_was_seen() -> None:
    found = Engine(rules()).diagnosis()
    assert (found.problems, found.limits) == ([], [])
    assert found.spoke < len(rules())
    assert all(Need(need) for need in found.silent)


def test_a_rule_takes_what_it_asks_for() -> None:
    sends = rule("sends", exchanges=(Exchanges(lambda _: "", requests=frozenset((SEND,))),))
    refused = rule("refused", exchanges=(Exchanges(lambda _: "", responses=frozenset((2,))),))
    silent = rule("silent", exchanges=(Exchanges(lambda _: "", statuses=frozenset((UNANSWERED,))),))
    never = rule("never", exchanges=(Exchanges(lambda _: None),))
    rows = [
        exchange(0, SEND, 0),
        exchange(1, SEND, 2),
        exchange(2, PULL, 2),
        exchange(3, PULL, None),
    ]
    made = Engine([sends, refused, silent, never])
    made.add_exchanges(rows)
    found = {one.rule: one.count for one in made.diagnosis().problems}
    assert found == {"sends": 2, "refused": 2, "silent": 1}


def test_cases_of_one_subject_are_one_problem_in_the_words_of_the_most_frequent() -> None:
    often = [exchange(at, SEND, 2, server_address="10.0.0.2:1", topic="T") for at in (5, 6)]
    once = exchange(1, SEND, 2, server_address="10.0.0.1:1", topic="T")
    for rows in ([once, *often], [*often, once]):
        made = Engine([rule()])
        made.add_exchanges(rows)
        (one,) = made.diagnosis().problems
        assert (one.title, one.count) == ("2 of 10.0.0.2:1", 3)
        assert (one.first_time, one.last_time) == (once.response_time, often[1].response_time)
        assert one.details == ["also: 1 of 10.0.0.1:1", "10.0.0.2:1", "10.0.0.1:1"]
        assert [evidence.packet for evidence in one.evidence] == [12, 52, 62]
        assert one.filter == "frame.number in {12, 52, 62}"


def test_problems_found_apart_join_in_any_order() -> None:
    def parts() -> list[object]:
        return [
            problem(at=3, count=3, title="three"),
            problem(at=2, count=3, title="three, earlier"),
            problem(at=1, count=5, title="five", confidence=Confidence.LIKELY, reason="so"),
            problem("other", at=1),
        ]

    found = set()
    for order in permutations(range(4)):
        made = parts()
        joined = merged([made[place] for place in order], [])  # type: ignore[misc]
        found.add(msgspec.json.encode(sorted(joined, key=lambda one: one.rule)))
    ((first, second),) = map(msgspec.json.decode, found)
    assert (first["title"], first["count"], first["confidence"]) == ("five", 11, "likely")
    assert second["rule"] == "other"


# -- bounds ---------------------------------------------------------------------------------------


def test_keys_of_a_rule_are_bounded_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_KEYS", 3)
    made = Engine([rule()])
    made.add_exchanges(
        [exchange(at, SEND, 2, server_address=f"10.0.0.{at}:1", topic=str(at)) for at in range(5)]
    )
    found = made.diagnosis()
    assert len(found.problems) == 3
    assert found.limits == ["made: 2 rows not checked"]
    assert made.diagnosis().limits == found.limits


def test_problems_of_a_rule_are_bounded_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "MAX_CASES", 4)
    made = Engine([rule()])
    made.add_exchanges([exchange(at, SEND, 2, topic=f"T{at % 7}") for at in range(20)])
    found = made.diagnosis()
    assert [one.subject.topic for one in found.problems] == ["T0", "T1", "T2", "T3"]
    assert found.limits == ["made: 3 more problems"]


def test_keys_of_messages_are_bounded_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Message(Fold):
        def add_message(self, message: object) -> None:
            pass

        def cases(self, context: Context) -> Iterable[Case]:
            return []

    monkeypatch.setattr(engine, "MAX_KEYS", 2)
    made = Engine([rule(fold=Message, exchanges=(), messages=lambda message: message.key)])
    made.add_exchanges([exchange(at, SEND, 2, topic="T", unique_key=str(at)) for at in range(5)])
    assert made.diagnosis().limits == ["made: 3 messages not checked"]


# -- what is not whole ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hole", "said"),
    [
        (connection(0, gaps=2), "bytes are missing in 1 connection"),
        (
            connection(0, directions="client"),
            "one direction of 1 connection was not captured",
        ),
        (Finding(FindingKind.PACKET_TRUNCATED, "", 0, 0, -1, -1), "packets were cut or lost"),
    ],
)
def test_what_rests_on_absence_is_less_sure_in_a_capture_with_holes(
    hole: ConversationRecord | Finding, said: str
) -> None:
    made = Engine([rule("absent", rests_on_absence=True), rule("present")])
    made.add_exchanges([exchange(0, SEND, 2, topic="T")])
    silent = exchange(0, SEND, None, topic="T")
    assert {one.confidence for one in made.diagnosis().problems} == {Confidence.CERTAIN}
    if isinstance(hole, Finding):
        made.add_findings([hole])
    else:
        made.add_connections([hole])
        made.add_exchanges([silent])
    found = made.diagnosis()
    by_rule = {one.rule: one for one in found.problems}
    assert by_rule["present"].confidence is Confidence.CERTAIN
    assert by_rule["present"].reason is None
    assert by_rule["absent"].confidence is Confidence.LIKELY
    assert by_rule["absent"].reason == f"the capture is incomplete: {said}"
    assert not_judged(found) == [f"The capture is incomplete: {said}."]


def test_rules_that_could_not_speak_are_named() -> None:
    made = Engine([rule("a", needs=frozenset((Need.ROUTES, Need.SENDS))), rule("b")])
    made.add_exchanges([exchange(0, SEND, 0)])
    found = made.diagnosis()
    assert (found.silent, found.spoke) == ({str(Need.ROUTES): ["a"]}, 1)
    assert not_judged(found) == ["Rules skipped because no NameServer responses were captured: a."]


def test_a_case_may_be_of_another_rule() -> None:
    class Other(ByTopic):
        def cases(self, context: Context) -> Iterable[Case]:
            for case in super().cases(context):
                case.rule = "disk-full"
                yield case

    made = Engine([rule(fold=Other)])
    made.add_exchanges([exchange(0, SEND, 2, topic="T")])
    (one,) = made.diagnosis().problems
    assert one.rule == "disk-full"
    assert one.advice != "Nothing."


def test_connections_are_told_apart_by_input() -> None:
    class Connections(Fold):
        def __init__(self, key: str) -> None:
            super().__init__(key)
            self.tally = Tally()

        def add_connection(self, row: ConversationRecord) -> None:
            self.tally.add(connected(row, "seen"))

        def cases(self, context: Context) -> Iterable[Case]:
            yield self.tally.case(self.key, Subject(broker=self.key))

    made = Engine(
        [rule(fold=Connections, exchanges=(), connections=lambda row: row.server_address)]
    )
    made.add_connections([connection(0), connection(1, server_address="10.0.0.7:1")])
    found = made.diagnosis().problems
    assert [one.subject.broker for one in found] == ["10.0.0.1:10911", "10.0.0.7:1"]
    assert found[0].filter == "tcp.stream in {0}"
    assert {one.severity for one in found} == {ProblemSeverity.ERROR}
