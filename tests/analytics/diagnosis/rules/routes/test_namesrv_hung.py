"""namesrv-hung: requests for routes that nobody answers."""

from __future__ import annotations

from msgspec.structs import replace

from analytics.diagnosis.problem import Confidence, ProblemState, Subject
from analytics.diagnosis.rules.routes.namesrv_hung import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, NAMESRV, connection, exchange, problems, problems_of_sample

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)


def asked(at_ms: float, answer: int | None = None, server: str = NAMESRV) -> ExchangeRecord:
    end = "closed" if answer is None else None
    return exchange(at_ms, ROUTE, answer, server_address=server, topic="T", end=end)


def test_a_broker_that_is_taken_for_a_namesrv() -> None:
    rows = [asked(0, server=BROKER), asked(1100, server=BROKER)]
    (one,) = problems(RULE, rows, [connection(0, 5000, server_address=BROKER)])
    assert one.title == (
        f"{BROKER} did not respond to 2 requests for routes: it is a broker, not a NameServer"
    )
    assert (one.count, one.confidence) == (2, Confidence.CERTAIN)
    assert one.subject == Subject(server=BROKER)


def test_a_namesrv_that_stands_still() -> None:
    rows = [asked(0, 0), asked(1000), asked(2000)]
    (one,) = problems(RULE, rows, [connection(0, 5000, server_address=NAMESRV)])
    assert one.title.startswith(f"NameServer {NAMESRV} hung from ")
    assert one.title.endswith("(4 s): 2 of 2 requests for routes unanswered")


def test_a_namesrv_that_stands_still_twice_is_not_said_to_do_so_in_between() -> None:
    """Nobody asked for 14 s; then it answered again."""
    rows = [asked(0, 0), asked(1000), asked(20_000), asked(40_000, 0)]
    connections = [connection(0, 500), connection(900, 3100), connection(19_900, 2100)]
    made = [
        replace(one, conversation=at, server_address=NAMESRV) for at, one in enumerate(connections)
    ]
    rows = [replace(row, conversation=at) for row, at in zip(rows, (0, 1, 2, 3), strict=True)]
    (one,) = problems(RULE, rows, [*made, connection(39_000, 2000, 3, server_address=NAMESRV)])
    assert one.title.endswith(" UTC (3 s), and once more: 2 of 2 requests for routes unanswered")
    assert one.details[-1] == (
        "all times: from 11:06:41 to 11:06:44 UTC (3 s), from 11:07:00 to 11:07:02 UTC (2 s)"
    )
    assert one.state is ProblemState.OVER


def test_an_answer_to_a_broker_shows_that_it_lives() -> None:
    registered = exchange(1500, int(RequestCode.REGISTER_BROKER), server_address=NAMESRV)
    rows = [asked(0, 0), asked(1000), registered]
    assert problems(RULE, rows, [connection(0, 3000, server_address=NAMESRV)]) == []


def test_others_are_answered_meanwhile() -> None:
    rows = [asked(0), asked(2000, 0)]
    assert problems(RULE, rows, [connection(0, 5000, server_address=NAMESRV)]) == []


def test_silent_where_routes_are_answered() -> None:
    for name in ("namesrv-gone-4x.pcap", "fault-kill-5x.pcap", "send-sync-5x.pcap"):
        assert problems_of_sample(RULE, name) == []
