"""namesrv-hung: requests for routes that nobody answers."""

from __future__ import annotations

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.routes.namesrv_hung import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, NAMESRV, connection, exchange, problems, problems_of_sample

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)


def asked(at_ms: float, answer: int | None = None, server: str = NAMESRV) -> ExchangeRecord:
    end = "closed" if answer is None else None
    return exchange(at_ms, ROUTE, answer, responder=server, topic="T", end=end)


def test_a_broker_that_is_taken_for_a_namesrv() -> None:
    rows = [asked(0, server=BROKER), asked(1100, server=BROKER)]
    (one,) = problems(RULE, rows, [connection(0, 5000, server=BROKER)])
    assert one.title == (
        f"{BROKER} did not answer 2 requests for routes: it is a broker, no NameServer"
    )
    assert (one.count, one.confidence) == (2, Confidence.CERTAIN)
    assert one.subject == Subject(server=BROKER)


def test_a_namesrv_that_stands_still() -> None:
    rows = [asked(0, 0), asked(1000), asked(2000)]
    (one,) = problems(RULE, rows, [connection(0, 5000, server=NAMESRV)])
    assert one.title.startswith(f"NameServer {NAMESRV} hung from ")
    assert one.title.endswith("(4.0 s): of 2 requests for routes 2 got no answer")


def test_others_are_answered_meanwhile() -> None:
    rows = [asked(0), asked(2000, 0)]
    assert problems(RULE, rows, [connection(0, 5000, server=NAMESRV)]) == []


def test_silent_where_routes_are_answered() -> None:
    for name in ("namesrv-gone-4x.pcap", "fault-kill-5x.pcap", "send-sync-5x.pcap"):
        assert problems_of_sample(RULE, name) == []
