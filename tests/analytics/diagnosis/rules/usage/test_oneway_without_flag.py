from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.usage.oneway_without_flag import RULE
from dissectors.remoting.codes import RequestCode

from ...made_rows import exchange, oneway, problems, problems_of_sample, same_in_any_order, sample

COMMIT = int(RequestCode.UPDATE_CONSUMER_OFFSET)


def test_offsets_that_the_go_client_stores() -> None:
    (one,) = problems_of_sample(RULE, "go-client-5x.pcap")
    assert one.title == (
        "192.0.2.10@go-consumer (GO) committed offsets 4 times without the oneway flag: the client"
        " ignores the responses"
    )
    assert (one.count, one.severity) == (4, ProblemSeverity.INFO)
    assert one.subject.group == "go_consumer_group"


def test_java_says_that_it_does_not_wait_or_waits() -> None:
    assert problems_of_sample(RULE, "push-consumer-5x.pcap") == []
    assert problems(RULE, [exchange(0, COMMIT, language="JAVA")]) == []
    assert problems(RULE, [oneway(0, COMMIT, language="GO")]) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, sample("go-client-5x.pcap").exchanges)
