"""When no-master speaks, and when it must not."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import ProblemSeverity, Subject
from analytics.diagnosis.rules.routes.no_master import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, problems_of_sample, same_in_any_order, sample
from ...refusal_checks import check_recorded

MASTER, SLAVE = "10.0.0.1:10911", "10.0.0.3:10911"


@pytest.mark.parametrize(
    ("name", "count", "title"),
    [
        (
            "slave-read-4x.pcap",
            29,
            "broker-a has no master since 03:07:29 UTC: consumers can read from its slave"
            " 127.77.0.12:10921; sends to broker-a fail",
        ),
        (
            "slave-read-5x.pcap",
            16,
            "broker-a has no master since 03:06:51 UTC: consumers can read from its slave"
            " 127.77.0.12:10921; sends to broker-a fail",
        ),
        (
            "acting-master-5x.pcap",
            31,
            "broker-a had no master from 03:16:32 to 03:17:03 UTC: its slave 127.77.0.12:10921 acts"
            " as master",
        ),
    ],
)
def test_recorded(name: str, count: int, title: str) -> None:
    check_recorded(RULE, name, title, count, Subject(broker="broker-a"))


def route(at_ms: float, *addresses: tuple[str, str]) -> ExchangeRecord:
    ids = ",".join(one for one, _ in addresses)
    return exchange(
        at_ms,
        int(RequestCode.GET_ROUTEINFO_BY_TOPIC),
        server_address=NAMESRV,
        topic="Orders",
        facts=[
            f"route=6 4 4 {ids} broker-a",
            *(f"slave={one} {address}" for one, address in addresses if one != "0"),
        ],
        brokers=[f"broker-a={address}" for _, address in addresses],
    )


def test_a_master_that_came_back() -> None:
    rows = [
        route(0, ("0", MASTER), ("1", SLAVE)),
        route(30_000, ("1", SLAVE)),
        route(60_000, ("0", MASTER), ("1", SLAVE)),
    ]
    (one,) = problems(RULE, rows)
    assert one.title == (
        "broker-a had no master from 11:07:10 to 11:07:40 UTC: consumers could read from its slave"
        " 10.0.0.3:10911; sends to broker-a failed"
    )


def test_messages_that_a_slave_could_not_take_back() -> None:
    remark = "no master available along with 10.0.0.3"
    code, error = int(RequestCode.CONSUMER_SEND_MSG_BACK), int(ResponseCode.SYSTEM_ERROR)
    back = exchange(40_000, code, error, remark=remark, server_address=SLAVE)
    (one,) = problems(RULE, [route(30_000, ("1", SLAVE)), back])
    assert one.details[-1] == "1 message returned by consumers were refused"
    (one,) = problems(RULE, [back])
    assert one.title == "10.0.0.3:10911 has no master: it did not accept 1 request"


def test_brokers_with_masters() -> None:
    rows = [route(0, ("0", MASTER)), route(1, ("0", MASTER), ("1", SLAVE)), route(2)]
    rows[2].facts = ["route=6 4 4 - broker-a"]
    assert not problems(RULE, rows)
    assert not problems_of_sample(RULE, "namesrv-gone-5x.pcap")


def test_a_master_that_was_elected() -> None:
    (one,) = problems_of_sample(RULE, "leader-lost-5x.pcap")
    assert one.title == (
        "broker-a changed its master from 127.77.0.11:10911 to 127.77.0.12:10921 between 09:01:36"
        " and 09:01:38 UTC"
    )
    assert one.subject == Subject(broker="broker-a")
    assert (one.count, one.severity) == (1, ProblemSeverity.INFO)
    assert same_in_any_order(RULE, sample("leader-lost-5x.pcap").exchanges)


def test_addresses_in_turn_are_no_change() -> None:
    rows = [route(0, ("0", MASTER)), route(1, ("0", SLAVE)), route(2, ("0", MASTER))]
    assert not problems(RULE, rows)


def test_namesrvs_of_two_clusters_tell_of_two_brokers() -> None:
    other = route(1000, ("0", SLAVE))
    rows = [route(0, ("0", MASTER)), other]
    assert len(problems(RULE, rows)) == 1
    other.server_address = "10.0.9.9:9876"
    assert problems(RULE, rows) == []
