from __future__ import annotations

from analytics.diagnosis.problem import ProblemSeverity
from analytics.diagnosis.rules.consumers.pull_from_slave import RULE
from dissectors.remoting.codes import RequestCode

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

PULL = int(RequestCode.PULL_MESSAGE)


def test_the_slave_of_a_master_that_is_gone() -> None:
    (one,) = problems_of_sample(RULE, "slave-read-5x.pcap")
    assert one.title == (
        "consumers read from a slave of broker-a (127.77.0.12:10921, id 1): 5 pulls of"
        " late_group (3), slave_group (2)"
    )
    assert (one.severity, one.count, one.subject.broker) == (ProblemSeverity.INFO, 5, "broker-a")
    assert one.details == [
        "according to the latest routes, broker-a has no master: its queues can be read from the"
        " slave, but not written"
    ]


def test_the_4x_client_too() -> None:
    (one,) = problems_of_sample(RULE, "slave-read-4x.pcap")
    assert (one.count, one.subject.group) == (6, "late_group")


def test_a_master_that_names_its_slave() -> None:
    row = exchange(0, PULL, topic="orders", group="bills", queue_id=0, facts=["from_broker=1"])
    (one,) = problems(RULE, [row])
    assert one.title == (
        "10.0.0.1:10911 sends consumers to its slave (id 1): what they read is no longer in its"
        " memory"
    )


def test_pulls_from_masters_are_normal_though_there_are_slaves() -> None:
    assert problems_of_sample(RULE, "push-consumer-5x.pcap") == []
    assert problems_of_sample(RULE, "ha-replication-5x.pcap") == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, sample("slave-read-5x.pcap").exchanges)
