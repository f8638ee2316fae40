"""broker-name-twice: two masters of one name, and what only looks like that."""

from __future__ import annotations

from analytics.diagnosis.problem import Confidence, ProblemSeverity, Subject
from analytics.diagnosis.rules.routes.broker_name_twice import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import NAMESRV, exchange, problems, same_in_any_order

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
REGISTER = int(RequestCode.REGISTER_BROKER)
FIRST, SECOND = "10.0.0.1:10911", "10.0.0.3:10911"


def registers(
    address: str, *seconds: int, port: int = 1, namesrv: str = NAMESRV
) -> list[ExchangeRecord]:
    return [
        exchange(
            1000 * at,
            REGISTER,
            client_address=f"{address.rpartition(':')[0]}:{port}",
            server_address=namesrv,
            broker_name="broker-a",
            brokers=[f"broker-a={address}"],
        )
        for at in seconds
    ]


def route(second: int, *addresses: str) -> ExchangeRecord:
    brokers = [f"broker-a={address}" for address in addresses]
    return exchange(1000 * second, ROUTE, server_address=NAMESRV, topic="T", brokers=brokers)


BOTH = [*registers(FIRST, 0, 30, 60), *registers(SECOND, 10, 40, 70)]


def test_two_masters_of_one_name() -> None:
    rows = [*BOTH, route(5, FIRST), route(45, SECOND), route(62, FIRST)]
    (one,) = problems(RULE, rows)
    assert one.title == (
        f"2 brokers are registered as broker-a with the same id: {FIRST} and {SECOND}; clients get"
        " the address of either one"
    )
    assert (one.severity, one.confidence) == (ProblemSeverity.ERROR, Confidence.CERTAIN)
    assert (one.subject, one.count) == (Subject(broker="broker-a"), 6)
    assert one.details[0] == f"{FIRST} registered 3 times from 11:06:40 to 11:07:40 UTC"
    assert "route of T: it is at 10.0.0.3:10911" in {seen.what for seen in one.evidence}
    assert same_in_any_order(RULE, rows)


def test_a_master_and_its_slave_stand_in_one_route() -> None:
    assert problems(RULE, [*BOTH, route(5, FIRST), route(45, FIRST, SECOND)]) == []


def test_a_broker_that_moved_registers_no_more_at_its_old_address() -> None:
    rows = [*registers(FIRST, 0, 30), *registers(SECOND, 40, 70), route(45, SECOND)]
    assert problems(RULE, rows) == []
    again = registers(FIRST, 100, 130, port=2)  # a new process
    assert problems(RULE, [*rows, *again, route(101, FIRST)]) == []


def test_without_routes_their_ids_are_not_known() -> None:
    assert problems(RULE, BOTH) == []
    assert problems(RULE, [*BOTH, route(5, FIRST), route(90, SECOND)]) == []


def test_two_namesrvs_know_different_brokers() -> None:
    other = registers(SECOND, 10, 40, 70, namesrv="10.0.0.8:9876")
    assert problems(RULE, [*registers(FIRST, 0, 30, 60), *other, route(45, FIRST)]) == []
