"""What an answer for a route says, and that equal answers are read once."""

from __future__ import annotations

from analytics.diagnosis.answered_routes import answered_route, latest_routes
from dissectors.remoting.codes import RequestCode

from .made_rows import exchange

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
NAMED = ["broker-a=10.0.0.2:10911", "a=b=10.0.0.3:10911"]
FACTS = ["route=6 4 4 0,1 broker-a", "route=odd", "slave=1 10.0.0.3:10911"]


def test_what_a_route_says() -> None:
    found = answered_route(exchange(0, ROUTE, 0, brokers=NAMED, facts=FACTS))
    assert [(one.name, one.ids) for one in found.brokers] == [("broker-a", ("0", "1"))]
    assert found.named == (("broker-a", "10.0.0.2:10911"), ("a=b", "10.0.0.3:10911"))
    assert found.addresses == {"10.0.0.2:10911", "10.0.0.3:10911"}
    assert found.slaves == {"10.0.0.3:10911": "1"}


def test_equal_answers_are_read_once() -> None:
    first = answered_route(exchange(0, ROUTE, 0, brokers=NAMED, facts=FACTS))
    again = answered_route(exchange(9, ROUTE, 0, brokers=list(NAMED), facts=list(FACTS)))
    other = answered_route(exchange(9, ROUTE, 0, brokers=NAMED, facts=FACTS[:1]))
    assert first is again
    assert other != first


def test_of_equal_answers_in_a_row_the_earliest_and_the_latest_are_left() -> None:
    early, late, between, other = (
        exchange(at, ROUTE, 0, brokers=list(NAMED), facts=list(facts))
        for at, facts in ((0, FACTS), (9, FACTS), (5, FACTS), (7, FACTS[:1]))
    )
    assert latest_routes([early, late, between, other, early]) == [early, late, other, early]
    assert latest_routes([early]) == [early]
    pulls = [exchange(at, 11, 0) for at in range(3)]
    assert latest_routes(pulls) is pulls
