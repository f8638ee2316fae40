from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.network.fault_injected import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import FAULT, fact

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order

SEND = int(RequestCode.SEND_MESSAGE_V2)
ROWS = [
    exchange(0, SEND, None, facts=[fact(FAULT, "freeze broker=b: request 310 of T")]),
    exchange(5, SEND, None, facts=[fact(FAULT, "freeze broker=b: request 310 of U")]),
    exchange(9, SEND, 0, 300, facts=[fact(FAULT, "300.1ms later: SEND_MESSAGE_V2 to T")]),
    exchange(12, SEND, 0, 280, facts=[fact(FAULT, "280.7ms later: request 310 of T")]),
    exchange(14, SEND, 2, facts=[fact(FAULT, "busy, 1.2ms later: SEND_MESSAGE_V2 to T")]),
    exchange(20, SEND),
]


def test_the_faults_of_one_server() -> None:
    (one,) = problems(RULE, ROWS)
    assert one.title.startswith("rmqtool proxy injected faults into 5 requests to ")
    for fault in ("freeze broker=b", "latency", "busy"):
        assert fault in one.title
    assert "later" not in one.title
    assert (one.count, one.severity) == (5, ProblemSeverity.INFO)


def test_traffic_without_a_proxy() -> None:
    assert problems(RULE, ROWS[-1:]) == []
    assert problems_of_sample(RULE, "fault-freeze-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, ROWS)
