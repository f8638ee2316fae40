"""call-refused: what a proxy refuses is told, under its cause where the broker refused it."""

from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.refused.call_refused import RULE
from analytics.diagnosis.rules.refused.refused_otherwise import RULE as OTHERWISE

from ....diagnosis.show import SAMPLES, diagnosis_of
from ...made_rows import exchange, problems, same_in_any_order, sample

PROXY = "127.77.0.71:18081"


def test_what_the_broker_refused_is_a_consequence() -> None:
    found = diagnosis_of([str(SAMPLES / "grpc-disk-full-53.pcap")]).problems
    (call,) = [one for one in found if one.rule == RULE.id and one.count == 6]
    assert call.consequence_of == "disk-full"
    assert call.subject == Subject(server=PROXY, topic="GrpcNormal")
    assert call.title.startswith(f"{PROXY} refused 6 requests with INTERNAL_SERVER_ERROR (50001)")
    assert "the broker's disk is full" in call.title


def test_a_heartbeat_after_the_good_bye_is_no_error_and_follows_from_nothing() -> None:
    found = diagnosis_of([str(SAMPLES / "grpc-disk-full-53.pcap")]).problems
    (late,) = [one for one in found if one.rule == RULE.id and one.count == 1]
    assert (late.severity, late.consequence_of) == (ProblemSeverity.INFO, None)
    assert "UNRECOGNIZED_CLIENT_TYPE (40015)" in late.title


def test_without_a_broker_the_calls_speak_alone() -> None:
    rows = [row for row in sample("grpc-disk-full-53.pcap").exchanges if row.request_code is None]
    assert len(problems(RULE, rows)) == 2
    assert same_in_any_order(RULE, rows)
    assert problems(OTHERWISE, rows) == []


def test_requests_of_remoting_and_answers_that_are_none_are_not_its() -> None:
    call = {"request_code": None, "request_name": "ReceiveMessage", "responder": PROXY}
    rows = [
        exchange(0, 310, 14, remark="x"),
        exchange(1, 11, 40401, **call),
        exchange(2, 11, 40404, **call),
    ]
    assert problems(RULE, rows) == []
