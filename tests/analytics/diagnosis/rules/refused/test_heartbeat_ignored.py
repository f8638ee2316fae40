"""heartbeat-ignored: members of heartbeats that newer brokers do not read."""

from __future__ import annotations

from analytics.diagnosis.problem import Confidence, ProblemSeverity
from analytics.diagnosis.rules.refused.heartbeat_ignored import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

PULL, BEAT = int(RequestCode.PULL_MESSAGE), int(RequestCode.HEART_BEAT)
REFUSED = int(ResponseCode.SUBSCRIPTION_NOT_EXIST)


def test_a_broker_of_5_5_refuses_what_one_of_4_9_reads() -> None:
    (one,) = problems_of_sample(RULE, "heartbeat-respelled-5x.pcap")
    assert one.title.startswith(
        "127.77.0.11:10911 ignores the heartbeats of 127.0.0.1@respelled: JSON members are spelled"
        " ClientID, "
    )
    assert one.title.endswith("; it refused 3 pulls")
    assert (one.severity, one.confidence) == (ProblemSeverity.ERROR, Confidence.CERTAIN)
    assert same_in_any_order(RULE, sample("heartbeat-respelled-5x.pcap").exchanges)
    assert problems_of_sample(RULE, "heartbeat-respelled-4x.pcap") == []


def beat() -> ExchangeRecord:
    return exchange(0, BEAT, group="g", facts=["client=c", "respelled=ClientID"])


def test_without_pulls_it_is_possible_only() -> None:
    (one,) = problems(RULE, [beat()])
    assert (one.severity, one.confidence) == (ProblemSeverity.WARNING, Confidence.POSSIBLE)
    assert problems(RULE, [beat(), exchange(9, PULL, 0, group="g", topic="T")]) == []
    usual = exchange(0, BEAT, group="g", facts=["client=c"])
    assert problems(RULE, [usual, exchange(9, PULL, REFUSED, group="g", topic="T")]) == []
