"""When disk-full speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.overload.disk_full import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order, sample

REMARK = (
    "service not available now. It may be caused by one of the following reasons: the broker's disk"
    " is full [CL: {} CQ: {} INDEX: {}], messages are put to the slave, message store has been"
    " shut down, etc."
)


def refused(remark: str) -> ExchangeRecord:
    return exchange(
        0,
        int(RequestCode.SEND_MESSAGE_V2),
        int(ResponseCode.SERVICE_NOT_AVAILABLE),
        remark=remark,
        topic="Orders",
        broker_name="broker-a",
    )


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("fault-disk-full-4x.pcap", 1),
        ("fault-disk-full-5x.pcap", 1),
        ("fault-disk-full-plain-5x.pcap", 16),
    ],
)
def test_recorded(name: str, count: int) -> None:
    (one,) = problems_of_sample(RULE, name)
    sends = "1 send" if count == 1 else f"{count} sends"
    assert one.title == (
        f"broker-a refused {sends}: its disk is full (in use: commit log 6 %,"
        " consume queues 6 %, index 6 %) or its store is not writable"
    )
    assert one.subject == Subject(broker="broker-a", topic="FaultTopic", group="sample_group")
    assert one.count == count
    assert one.confidence is Confidence.LIKELY  # 6 % is not a full disk
    assert "sends of FaultTopic can go to broker-b" in one.details


def test_both_hops_of_a_proxy_are_one_refusal() -> None:
    (one,) = problems_of_sample(RULE, "proxy-remoting-5x.pcap")
    assert one.count == 4
    assert one.subject.broker == "broker-a"
    assert same_in_any_order(RULE, sample("proxy-remoting-5x.pcap").exchanges)


def test_the_figures_of_the_remark_decide() -> None:
    (one,) = problems(RULE, [refused(REMARK.format("0.95", " 0.95", "0.40"))])
    assert one.title == (
        "broker-a refused 1 send: its disk is full (in use: commit log 95 %, consume queues 95 %,"
        " index 40 %)"
    )
    assert one.confidence is Confidence.CERTAIN


def test_a_recall_that_was_refused_is_another_matter() -> None:
    assert not problems(RULE, [refused("recall failed, broker service not available")])


def test_brokers_of_4_6_and_before_say_it_otherwise() -> None:
    remark = (
        "service not available now, maybe disk full, CL:  0.95 CQ:  0.95 INDEX:  0.40, maybe your"
        " broker machine memory too small."
    )
    (one,) = problems(RULE, [refused(remark)])
    assert one.title == (
        "broker-a refused 1 send: its disk is full (in use: commit log 95 %, consume queues 95 %,"
        " index 40 %)"
    )
    assert one.confidence is Confidence.CERTAIN
