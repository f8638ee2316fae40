"""go-away: a broker that ends in order."""

from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.network.go_away import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.versions import V5_1_3

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample


def test_a_broker_that_ends_in_order() -> None:
    (one,) = problems_of_sample(RULE, "going-away-5x.pcap")
    assert one.title == (
        "broker-b (127.77.0.12:10921) told clients 59 times to go away: it was shutting down"
    )
    assert (one.count, one.severity) == (59, ProblemSeverity.INFO)
    assert one.subject == Subject(broker="broker-b", topic="AwayTopic")


def test_clients_that_do_not_repeat_it_are_said() -> None:
    away = int(ResponseCode.GO_AWAY)
    row = exchange(0, int(RequestCode.SEND_MESSAGE_V2), away, version=V5_1_3)
    (one,) = problems(RULE, [row])
    assert "1 of these requests came from clients that may not repeat them" in one.details[-1]


def test_silent_where_a_broker_is_killed() -> None:
    assert problems_of_sample(RULE, "fault-kill-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, sample("going-away-5x.pcap").exchanges)
