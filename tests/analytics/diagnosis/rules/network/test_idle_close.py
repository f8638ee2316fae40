"""idle-close: a request on a connection that was closed for being idle."""

from __future__ import annotations

import pytest

from analytics.diagnosis.problem import Subject
from analytics.diagnosis.rules.network import connection_cut, packets_unacknowledged
from analytics.diagnosis.rules.network.idle_close import RULE
from dissectors.remoting.codes import RequestCode

from ...made_rows import (
    connection,
    exchange,
    problems,
    problems_of_sample,
    same_in_any_order,
    sample,
)
from ...show import SAMPLES, diagnosis_of

SEND = int(RequestCode.SEND_MESSAGE_V2)


@pytest.mark.parametrize("name", ["idle-closed-5x.pcap", "idle-closed-4x.pcap"])
def test_a_broker_that_closes_after_four_seconds(name: str) -> None:
    (one,) = problems_of_sample(RULE, name)
    assert one.title == (
        "1 request to broker-a (127.77.0.11:10911) was lost: the connection had been idle for"
        " 4 s and was closed by the server's side"
    )
    assert (one.count, one.subject) == (1, Subject(broker="broker-a"))
    assert problems_of_sample(connection_cut.RULE, name) == []


def test_a_load_balancer_that_forgets_connections() -> None:
    (one,) = problems_of_sample(RULE, "idle-forgotten-5x.pcap")
    assert one.title == (
        "5 requests to broker-a (127.77.0.61:10911) were lost: the connections had been idle"
        " for 11 to 12 s and were cut by the server's side"
    )
    assert one.advice.startswith("Raise the idle timeout of the load balancer")
    found = diagnosis_of([str(SAMPLES / "idle-forgotten-5x.pcap")]).problems
    causes = {other.rule: other.consequence_of for other in found}
    assert causes["connection-cut"] == RULE.id


@pytest.mark.parametrize("name", ["fault-kill-4x.pcap", "fault-reset-5x.pcap", "pull-5x.pcap"])
def test_silent_where_nothing_was_idle(name: str) -> None:
    assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    rows = sample("idle-closed-5x.pcap")
    assert same_in_any_order(RULE, rows.exchanges, rows.connections)


def test_two_minutes_alone_tell_and_a_close_that_hits_nothing_is_by_design() -> None:
    lost = exchange(121_000, SEND, None, end="reset", broker_name="broker-a")
    closed = {"end": "reset", "ended_by": "server"}
    idle = connection(0, 121_001, facts=["idle_ms=120004", "after_fin=1"], **closed)
    (one,) = problems(RULE, [lost], [idle])
    assert len(one.details) == 1
    assert problems(RULE, [], [idle]) == []
    short = connection(0, 121_001, facts=["idle_ms=9000", "after_fin=1"], **closed)
    assert problems(RULE, [lost], [short]) == []


def test_a_load_balancer_that_forgets_in_silence() -> None:
    name = "idle-silent-5x.pcap.gz"
    assert problems_of_sample(RULE, name) == [], "the other rule has the stalls"
    (one,) = problems_of_sample(packets_unacknowledged.RULE, name)
    assert one.rule == RULE.id
    assert one.title == (
        "packets on 1 connection to broker-a (127.77.0.11:10911) are silently lost after 65 s"
        " without traffic, although it responds on other connections"
    )
    assert one.advice.startswith("Raise the idle timeout of the load balancer")
    rows = sample(name)
    assert same_in_any_order(packets_unacknowledged.RULE, rows.exchanges, rows.connections)
    (lost,) = [row for row in rows.connections if any("stall=" in one for one in row.facts)]
    for fact in list(lost.facts):
        if fact.startswith("idle_ms="):
            lost.facts.remove(fact)
    (other,) = problems(packets_unacknowledged.RULE, rows.exchanges, rows.connections)
    assert other.rule == packets_unacknowledged.RULE.id, "it was not idle"
    sample.cache_clear()
