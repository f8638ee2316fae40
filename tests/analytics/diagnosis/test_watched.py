"""While a capture goes on: what is pending is a fact, counts once, and nothing said is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from analytics.diagnosis.engine import Diagnosis, Engine
from analytics.diagnosis.problem import Confidence, Problem, ProblemState
from analytics.diagnosis.registry import rules
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.remoting.codes import RequestCode
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp.formats import reader_of
from tests.expected import captures
from tests.traffic.passing import Passing, packets_in

from .made_rows import (
    NAMESRV,
    SAMPLES,
    START,
    connection,
    exchange,
    oneway,
    refused_connect,
    sample,
)

SECOND = 1_000_000_000
SEND = int(RequestCode.SEND_MESSAGE_V2)
PULL = int(RequestCode.PULL_MESSAGE)
COMMIT = int(RequestCode.UPDATE_CONSUMER_OFFSET)
HEARTBEAT = int(RequestCode.HEART_BEAT)
ROUTE = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
NAMED = exchange(
    1, ROUTE, server_address=NAMESRV, conversation=1, topic="T", brokers=["broker-a=10.0.0.1:10911"]
)
"""the route that names the broker"""
OPEN: dict[str, Any] = {"end": "open", "ended_by": None}


def engine_with(*rows: ExchangeRecord, connections: Iterable[ConversationRecord] = ()) -> Engine:
    engine = Engine(rules())
    engine.add_exchanges(rows)
    engine.add_connections(connections)
    return engine


def seen(
    engine: Engine,
    seconds: float,
    requests: Sequence[ExchangeRecord] = (),
    connections: Sequence[ConversationRecord] = (),
) -> list[Problem]:
    """Return what is wrong after so many seconds, when this is not settled."""
    engine.see_pending(START + int(seconds * SECOND), requests, connections)
    return engine.diagnosis().problems


def waiting(*at_ms: float, **values: Any) -> list[ExchangeRecord]:
    """Return requests that wait."""
    return [exchange(at, SEND, None, end="open", topic="T", **values) for at in at_ms]


SERVED = [NAMED, *(exchange(at * 1000, SEND, topic="T") for at in range(1, 10))]


# -- hangs ---------------------------------------------------------------------------------------


def test_a_hang_is_a_fact_while_it_lasts_and_counts_once() -> None:
    engine = engine_with(*SERVED)
    requests, now = waiting(10_000, 10_500, 11_000), [connection(0, 11_000, **OPEN)]
    assert seen(engine, 12.9, requests, now) == []
    for seconds in (13.1, 20, 60):
        (one,) = seen(engine, seconds, requests, now)
        assert (one.rule, one.state, one.confidence, one.count) == (
            "broker-hung",
            ProblemState.GOING_ON,
            Confidence.CERTAIN,
            3,
        )
        length = f"{seconds - 10:.3g}"
        assert one.title == (
            "broker-a (10.0.0.1:10911) has hung since 11:06:50 UTC"
            f" ({length} s so far): 3 requests wait"
        )
    answered = [exchange(at, SEND, 0, 70_000 - at, topic="T") for at in (10_000, 10_500, 11_000)]
    engine.add_exchanges(answered)
    (hung,) = [one for one in seen(engine, 71, (), now) if one.rule == "broker-hung"]
    assert (hung.state, hung.count) == (ProblemState.OVER, 3)
    assert hung.title.endswith(
        "hung from 11:06:50 to 11:07:50 UTC (60 s): 3 requests answered late"
    )


def test_one_hole_long_ago_hides_no_hang() -> None:
    engine = engine_with(*SERVED)
    holed = connection(0, 10_500, gaps=1, gap_bytes=100, **OPEN)
    (one,) = seen(engine, 14, waiting(10_000, 10_500), [holed])
    assert (one.rule, one.confidence) == ("broker-hung", Confidence.POSSIBLE)
    assert one.reason is not None
    assert "bytes are missing" in one.reason
    half = connection(0, 10_500, directions="client", server_packets=0, server_bytes=0, **OPEN)
    assert seen(engine, 14, waiting(10_000, 10_500), [half]) == []


def test_quiet_ends_no_hang() -> None:
    """The client gave up and is gone: unknown whether the broker still hangs."""
    engine = engine_with(*SERVED)
    seen(engine, 14, waiting(10_000, 10_500), [connection(0, 10_500, **OPEN)])
    engine.add_exchanges(
        [exchange(at, SEND, None, end="closed", topic="T") for at in (10_000, 10_500)]
    )
    engine.add_connections([connection(0, 14_000)])
    problems = seen(engine, 600)
    assert "broker-hung" in {one.rule for one in problems}
    assert [one.title for one in problems if one.state is ProblemState.OVER] == []
    engine.add_exchanges([exchange(601_000, SEND, topic="T", conversation=3)])
    (hung,) = [one for one in seen(engine, 602) if one.rule == "broker-hung"]
    assert hung.state is ProblemState.OVER, "it answered again"


def test_one_slow_request_among_others_is_no_hang() -> None:
    others = [exchange(at * 100, SEND, topic="T", conversation=2) for at in range(100, 300)]
    engine = engine_with(*SERVED, *others)
    assert seen(engine, 30, waiting(10_000), [connection(0, 10_000, **OPEN)]) == []


def test_long_polls_wait_on_purpose() -> None:
    engine = engine_with(*SERVED)
    poll = exchange(10_000, PULL, None, end="open", topic="T", group="g")
    assert seen(engine, 29, [poll], [connection(0, 10_000, **OPEN)]) == []


def test_a_name_server_that_hangs() -> None:
    engine = engine_with(NAMED)
    values = {"server_address": NAMESRV, "conversation": 1, "topic": "T", "end": "open"}
    requests = [exchange(10_000, ROUTE, None, **values)]
    now = [connection(0, 10_000, 1, server_address=NAMESRV, **OPEN)]
    assert seen(engine, 12, requests, now) == []
    (one,) = seen(engine, 14, requests, now)
    assert (one.rule, one.state) == ("namesrv-hung", ProblemState.GOING_ON)
    assert one.title == (
        f"NameServer {NAMESRV} has hung since 11:06:50 UTC (4 s so far):"
        " 1 request for a route waits"
    )


# -- servers that are gone ------------------------------------------------------------------------


def refused(*at_ms: float) -> list[ConversationRecord]:
    return [refused_connect(at, 100 + place) for place, at in enumerate(at_ms)]


def test_a_killed_broker_is_gone_and_its_address_was_right() -> None:
    """Its connection is half closed: the client sends no FIN, so that it is not settled."""
    engine = engine_with(*SERVED, connections=refused(*range(50_100, 55_000, 100)))
    half = connection(0, 50_000, end="fin", ended_by="server")
    problems = seen(engine, 50.5, (), [half])
    assert [(one.rule, one.state) for one in problems] == [("broker-gone", ProblemState.GOING_ON)]
    assert " has been gone since 11:07:30 UTC: " in problems[0].title
    for seconds in (90, 600, 7000):
        (one,) = seen(engine, seconds, (), [half])
        assert (one.rule, one.state) == ("broker-gone", ProblemState.GOING_ON)


def test_requests_wait_on_a_connection_that_has_ended() -> None:
    engine = engine_with(*SERVED, connections=refused(10_500))
    lost = [exchange(9_900, SEND, None, end="closed", topic="T")]
    (one,) = seen(engine, 11, lost, [connection(0, 10_000, end="fin", ended_by="server")])
    assert (one.rule, one.title.rpartition(": ")[2]) == (
        "broker-gone",
        "it closed 1 connection; 1 unanswered request, 1 failed connection attempt",
    )


def lost_by_namesrv(number: int, at_ms: float = 20_000) -> ConversationRecord:
    client = f"10.0.0.{9 + number}:40000"
    return connection(
        0, at_ms, number, server_address=NAMESRV, client_address=client, ended_by="server"
    )


@pytest.mark.parametrize(
    ("clients", "confidence"), [(1, Confidence.POSSIBLE), (3, Confidence.LIKELY)]
)
def test_a_name_server_that_ended_all_its_connections(clients: int, confidence: Confidence) -> None:
    """Nobody asks it for a route before 30 s are over: only the ends of connections show it."""
    engine = engine_with(NAMED)
    engine.add_connections([lost_by_namesrv(number) for number in range(1, clients + 1)])
    assert seen(engine, 22.9) == []
    (one,) = seen(engine, 23.1)
    assert (one.rule, one.confidence, one.state) == (
        "namesrv-gone",
        confidence,
        ProblemState.GOING_ON,
    )
    assert " seems gone since 11:07:00 UTC: " in one.title
    engine.add_connections([connection(40_000, 1000, 9, server_address=NAMESRV)])
    assert seen(engine, 42) == [], "it took another connection: the others may have been cut"


def test_a_server_that_closes_idle_connections_is_not_gone() -> None:
    engine = engine_with(NAMED, connections=[lost_by_namesrv(1, 10_000), lost_by_namesrv(2)])
    assert seen(engine, 60) == []


@pytest.mark.parametrize(
    "other",
    [
        connection(0, 21_000, 9, server_address=NAMESRV, client_address="10.0.0.99:1", **OPEN),
        connection(0, 25_000, 9, server_address=NAMESRV, client_address="10.0.0.99:1"),
    ],
)
def test_a_server_that_others_still_used_is_not_gone(other: ConversationRecord) -> None:
    engine = engine_with(NAMED)
    engine.add_connections([lost_by_namesrv(1), lost_by_namesrv(2)])
    assert seen(engine, 60, (), [other]) == []


def test_a_capture_that_was_not_watched_does_not_tell_that_a_server_is_gone() -> None:
    engine = engine_with(NAMED, exchange(60_000, SEND, topic="T"))
    engine.add_connections([lost_by_namesrv(number) for number in (1, 2, 3)])
    assert engine.diagnosis().problems == []


# -- clients --------------------------------------------------------------------------------------


def test_a_killed_consumer_does_not_stand_still() -> None:
    rows = [exchange(0, HEARTBEAT, facts=["client=10.0.0.9@7"])]
    for second in range(5, 60, 5):
        rows += [oneway(second * 1000, COMMIT, group="g", topic="T", queue_id=0)]
        rows += [exchange(second * 1000 - 500, PULL, 19, 400, group="g", topic="T", queue_id=0)]
    engine = engine_with(*rows)
    alive = [connection(0, 55_000, **OPEN)]
    stands = [one.rule for one in seen(engine, 120, (), alive)]
    assert "client-hung" in stands
    killed = [connection(0, 56_000, end="fin", ended_by="client")]
    assert [one.rule for one in seen(engine, 120, (), killed)] == []


# -- samples as they pass ------------------------------------------------------------------------


class Watched:
    """A sample that passes, looked at every second."""

    def __init__(
        self, name: str, look: Callable[[int, Diagnosis], None], key_log: str = ""
    ) -> None:
        source = Passing(packets_in(str(SAMPLES / name)), name)
        options = DecodeOptions(tls_keylog=key_log, follow=True, conversations=True)
        decode = Decode([source], options, lambda: source.now)
        engine = Engine(rules())
        looked = 0
        for batch in decode.records():
            engine.add_exchanges(batch)
            engine.add_connections(decode.take_conversations())
            engine.add_findings(decode.take_findings())
            if source.now - looked >= SECOND:
                looked = source.now
                pending = decode.pending()
                engine.see_pending(*pending)
                if pending.now:
                    look(pending.now, engine.diagnosis())
        engine.add_connections(decode.take_conversations())
        engine.add_findings(decode.take_findings())
        engine.see_pending(0, (), ())
        self.end = engine.diagnosis()


def words(problems: Iterable[Problem]) -> list[tuple[object, ...]]:
    return [
        (one.incident, one.rule, one.title, one.subject, one.count, one.state, one.confidence)
        for one in problems
    ]


WATCHED = [one.name for one in captures() if one.name != "fault-injected-5x.pcapng"]
"""all samples but one with comments on its packets, which no interface gives"""


def key_log_of(name: str, folder: Path) -> str:
    """Return a file with the secrets of a sample, as the ends of an interface write them."""
    reader = reader_of(0, (SAMPLES / name).read_bytes())
    if reader is None:  # compressed
        return ""
    reader.receive(b"")
    file = folder / "keys.log"
    file.write_bytes(b"".join(reader.secrets))
    return str(file)


@pytest.mark.slow
@pytest.mark.parametrize("name", WATCHED)
def test_a_sample_that_was_watched_has_the_same_problems_in_the_end(
    name: str, tmp_path: Path
) -> None:
    watched = Watched(name, lambda _now, _found: None, key_log_of(name, tmp_path))
    exchanges, connections, findings = sample(name)
    engine = Engine(rules())
    engine.add_exchanges(exchanges)
    engine.add_connections(connections)
    engine.add_findings(findings)
    assert words(watched.end.problems) == words(engine.diagnosis().problems)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("fault-freeze-plain-5x.pcap", "broker-hung"),
        ("fault-freeze-4x.pcap", "broker-hung"),
        ("fault-kill-5x.pcap", "broker-gone"),
        ("fault-kill-4x.pcap", "broker-gone"),
        ("namesrv-gone-4x.pcap", "namesrv-gone"),
    ],
)
def test_a_fault_is_seen_while_it_lasts(name: str, rule: str) -> None:
    first: list[tuple[int, Problem]] = []

    def look(now: int, found: Diagnosis) -> None:
        first.extend((now, one) for one in found.problems if one.rule == rule and not first)

    Watched(name, look)
    ((now, one),) = first
    assert now - one.first_time <= 5 * SECOND
    assert one.state is not ProblemState.OVER
