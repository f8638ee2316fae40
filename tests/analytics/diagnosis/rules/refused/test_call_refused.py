"""call-refused: what a proxy refuses is told, under its cause where the broker refused it."""

from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.overload.disk_full import RULE as DISK_FULL
from analytics.diagnosis.rules.refused.call_refused import RULE
from analytics.diagnosis.rules.refused.refused_otherwise import RULE as OTHERWISE

from ....diagnosis.show import SAMPLES, diagnosis_of
from ...made_rows import exchange, problems, same_in_any_order, sample

PROXY = "127.77.0.71:18081"


def test_what_a_broker_refused_is_told_by_its_own_rule() -> None:
    found = diagnosis_of([str(SAMPLES / "grpc-disk-full-53.pcap")]).problems
    assert [(one.rule, one.count) for one in found] == [("disk-full", 6), (RULE.id, 1)]
    assert found[0].title.startswith("broker-a refused 6 sends: ")
    assert (found[0].subject.broker, found[0].subject.server) == ("broker-a", None)


def test_where_only_the_calls_were_captured_the_broker_is_one_behind_the_proxy() -> None:
    rows = [row for row in sample("grpc-disk-full-53.pcap").exchanges if row.request_code is None]
    (one,) = problems(DISK_FULL, rows)
    assert one.title.startswith(f"a broker behind proxy {PROXY} refused 6 sends: ")
    assert (one.count, one.subject) == (6, Subject(server=PROXY, topic="GrpcNormal"))
    assert same_in_any_order(DISK_FULL, rows)


def test_a_heartbeat_after_the_good_bye_is_no_error_and_follows_from_nothing() -> None:
    found = diagnosis_of([str(SAMPLES / "grpc-disk-full-53.pcap")]).problems
    (late,) = [one for one in found if one.rule == RULE.id and one.count == 1]
    assert (late.severity, late.consequence_of) == (ProblemSeverity.INFO, None)
    assert "UNRECOGNIZED_CLIENT_TYPE (40015)" in late.title


def test_without_a_broker_the_calls_speak_alone() -> None:
    rows = [row for row in sample("grpc-disk-full-53.pcap").exchanges if row.request_code is None]
    (one,) = problems(RULE, rows)
    assert "UNRECOGNIZED_CLIENT_TYPE" in one.title
    assert same_in_any_order(RULE, rows)
    assert problems(OTHERWISE, rows) == []


def test_requests_of_remoting_and_answers_that_are_none_are_not_its() -> None:
    call = {"request_code": None, "request_name": "ReceiveMessage", "server_address": PROXY}
    rows = [
        exchange(0, 310, 14, remark="x"),
        exchange(1, 11, 40401, **call),
        exchange(2, 11, 40404, **call),
    ]
    assert problems(RULE, rows) == []
