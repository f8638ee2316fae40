"""permanent-avoidance: a broker that gets nothing long after its isolation."""

from __future__ import annotations

from analytics.diagnosis.problem import Confidence, Subject
from analytics.diagnosis.rules.attempts import isolated_broker_still_used
from analytics.diagnosis.rules.attempts.permanent_avoidance import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.versions import V5_2_0
from dissectors.rows.record import ExchangeRecord

from ...made_rows import BROKER, NAMESRV, exchange, problems, problems_of_sample, same_in_any_order
from .made_sends import OTHER, send

ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
NEW = {"version": V5_2_0, "version_name": "V5_2_0"}


def route(*names: str) -> ExchangeRecord:
    facts = [f"route=6 4 4 0 {name}" for name in names]
    return exchange(1, ROUTE, server_address=NAMESRV, topic="Orders", facts=facts)


def sends(back: bool) -> list[ExchangeRecord]:
    """Both brokers in turn, then broker-a is slow once, then broker-b alone, at last both."""
    made = [
        send(10 + 10 * n, n, server_address=BROKER if n % 2 else OTHER, **NEW) for n in range(10)
    ]
    made.append(send(200, 100, latency_ms=600, **NEW))  # isolated for 2 s
    made += [send(900 + 500 * n, 200 + n, server_address=OTHER, **NEW) for n in range(60)]
    if back:
        made.append(send(5000, 500, **NEW))
    return made


def test_a_broker_that_is_never_used_again() -> None:
    rows = [route("broker-a", "broker-b"), *sends(back=False)]
    found = problems(isolated_broker_still_used.RULE, rows)
    (one,) = [problem for problem in found if problem.rule == RULE.id]
    assert one.title.startswith(
        "producer group shop (10.0.0.9) has not used broker-a for 27.6 s since its isolation window"
        " of 2 s ended"
    )
    assert one.confidence is Confidence.LIKELY
    assert one.subject == Subject("broker-a", group="shop", client="10.0.0.9")
    assert same_in_any_order(isolated_broker_still_used.RULE, rows)


def test_silent_where_it_was_used_again_or_left_the_route() -> None:
    for rows in (
        [route("broker-a", "broker-b"), *sends(back=True)],
        [route("broker-b"), *sends(back=False)],
    ):
        found = problems(isolated_broker_still_used.RULE, rows)
        assert [one.rule for one in found if one.rule == RULE.id] == []


def test_a_client_of_514_never_goes_back() -> None:
    found = problems_of_sample(isolated_broker_still_used.RULE, "broker-forgotten-51.pcap")
    (one,) = [problem for problem in found if problem.rule == RULE.id]
    assert one.title == (
        "producer group sample_group (127.0.0.1@producer) has not used broker-a for 113 s"
        " since its isolation window of 10 s ended, and made 75 sends elsewhere"
    )
    assert one.count == 75
