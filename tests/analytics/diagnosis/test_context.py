"""What all rows together say: the same whole, in parts, and in any order; bounded."""

from __future__ import annotations

import random

import msgspec
import pytest

from analytics.diagnosis import context as of
from analytics.diagnosis.context import Context, Need
from analytics.diagnosis.engine import Diagnosis, not_judged
from dissectors.findings import Finding, FindingKind
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.routes import RoutedBroker
from dissectors.rows import broker_names
from dissectors.rows.record import ExchangeRecord

from .made_rows import (
    BROKER,
    CLIENT,
    NAMESRV,
    START,
    SampleRows,
    connection,
    exchange,
    oneway,
    sample,
)

SEND, HEARTBEAT, ROUTE = 10, 34, 105
REGISTER = int(RequestCode.REGISTER_BROKER)
TOLD = "broker-a=10.0.0.1:10911"


def context_of(rows: SampleRows) -> Context:
    made = Context()
    for row in rows.exchanges:
        made.add_exchange(row)
    made.add_span(rows.exchanges)
    for connected in rows.connections:
        made.add_connection(connected)
    for info in rows.findings:
        made.add_finding(info)
    return made


def text_of(context: Context) -> object:
    value = msgspec.to_builtins(context)
    value["broker_names"].pop("_resolved")  # resolved when asked for
    return {name: sorted(one) if isinstance(one, list) else one for name, one in value.items()}


@pytest.mark.parametrize(
    "name",
    [
        "fault-kill-5x.pcap",
        "proxy-remoting-5x.pcap",
        "acting-master-5x.pcap",
        "push-orderly-4x.pcap",
    ],
)
def test_parts_that_are_merged_are_the_whole(name: str) -> None:
    rows = sample(name)
    whole = context_of(rows)
    assert whole.names
    for seed in range(4):
        chance = random.Random(seed)
        exchanges, connections = list(rows.exchanges), list(rows.connections)
        chance.shuffle(exchanges)
        chance.shuffle(connections)
        cut = chance.randrange(len(exchanges))
        parts = [
            SampleRows(exchanges[:cut], connections[:1], []),
            SampleRows(exchanges[cut:], connections[1:], []),
            SampleRows([], [], rows.findings),
        ]
        chance.shuffle(parts)
        merged = Context()
        for part in parts:
            text = msgspec.json.encode(context_of(part))
            merged.merge(msgspec.json.decode(text, type=Context))
        assert text_of(merged) == text_of(whole)


def named(*rows: ExchangeRecord) -> dict[str, str]:
    """The names that rows give, whatever their order, whole or in parts."""
    found = []
    for order in (rows, rows[::-1]):
        whole, parts = Context(), Context()
        for row in order:
            whole.add_exchange(row)
            part = Context()
            part.add_exchange(row)
            parts.merge(part)
        found += [whole.names, parts.names]
    assert all(one == found[0] for one in found)
    return found[0]


def test_a_name_that_is_told_counts_more_than_one_that_is_asked_for() -> None:
    asked = exchange(0, SEND, 2, broker_name="x")
    served = exchange(5, SEND, 0, broker_name="broker-b")
    later = exchange(6, SEND, 0, broker_name="broker-c")
    route = exchange(9, ROUTE, 0, server_address=NAMESRV, brokers=[TOLD])
    assert named(asked) == {BROKER: "x"}
    assert named(asked, served, served, later) == {}, "no clear majority"
    assert named(asked, *[served] * 8) == {BROKER: "broker-b"}
    assert named(asked, served, later, route) == {BROKER: "broker-a"}


def test_an_address_of_several_brokers_has_no_name() -> None:
    served = exchange(5, SEND, 0, broker_name="broker-b")
    told = [
        exchange(at, ROUTE, 0, server_address=NAMESRV, brokers=[f"broker-{name}={BROKER}"])
        for at, name in enumerate("aba")
    ]
    assert named(told[0], told[2], served) == {BROKER: "broker-a"}
    assert named(*told, served) == {}
    assert named(served, *told) == {}


def test_names_of_addresses() -> None:
    made = Context(clients={CLIENT: "c@1"})
    made.broker_names.add_routed([TOLD])
    assert made.broker("10.0.0.1:10911") == made.broker("10.0.0.1:10909") == "broker-a"
    for other in ("10.0.0.1:10910", "10.0.0.1", "", "10.0.0.1:", "10.0.0.1:²", ":" + "9" * 5000):
        assert made.broker(other) == other
    assert made.client(CLIENT) == "c@1"
    assert made.client("10.0.0.9:1") == "10.0.0.9"
    assert made.client("[::1]:1") == "::1"


def test_what_serves_messages_and_routes_is_a_broker() -> None:
    for order in ((SEND, ROUTE), (ROUTE, SEND)):
        made = Context()
        for code in order:
            made.add_exchange(exchange(0, code))
        assert made.servers == {BROKER: "broker"}


def test_the_last_route_of_a_topic_counts() -> None:
    def route(at: float, perm: int, answer: int = 0) -> ExchangeRecord:
        facts = [f"route={perm} 8 8 0,1 broker-a", "slave=1 10.0.0.2:10911"]
        brokers = [TOLD, "broker-a=10.0.0.2:10911"]
        return exchange(
            at, ROUTE, answer, server_address=NAMESRV, topic="T", facts=facts, brokers=brokers
        )

    rows = [route(0, 6), route(9, 4), route(9, 2), route(20, 7, answer=17)]
    for order in (rows, rows[::-1]):
        made = Context()
        for row in order:
            made.add_exchange(row)
        assert made.brokers_of("T") == [RoutedBroker(4, 8, 8, ("0", "1"), "broker-a")]
        assert made.slave_id("10.0.0.2:10911") == "1"
        assert made.slave_id(BROKER) is made.slave_id("10.0.0.3:1") is None
    assert made.brokers_of(None) == made.brokers_of("U") == []


def test_what_the_capture_has() -> None:
    rows = [
        (SEND, Need.SENDS),
        (11, Need.PULLS),
        (HEARTBEAT, Need.HEARTBEATS),
        (ROUTE, Need.ROUTES),
        (38, Need.GROUPS),
        (37, Need.TRANSACTIONS),
    ]
    for code, need in rows:
        made = Context()
        made.add_exchange(exchange(0, code, facts=["client=c@1"]))
        assert made.needs == {need}
        assert made.clients == ({CLIENT: "c@1"} if code == HEARTBEAT else {})
    made = Context()
    made.add_connection(connection(0, start="midstream"))
    assert made.needs == {Need.CONNECTIONS}
    made.add_connection(connection(0))
    assert made.needs == {Need.CONNECTIONS, Need.HANDSHAKES}


def test_holes_of_the_capture() -> None:
    made = Context()
    made.add_connection(connection(0))
    made.add_finding(Finding(FindingKind.RETRANSMISSION, "", 0, 0, -1, -1))
    assert made.quality.reasons() == []
    made.add_connection(connection(0, gaps=3, directions="client", start="midstream"))
    made.add_exchange(exchange(0, SEND, None))
    made.add_connection(connection(0, directions="server", commands=0))
    made.add_finding(Finding(FindingKind.CAPTURE_DAMAGED, "", 0, 0, -1, -1))
    assert made.quality.reasons() == [
        "bytes are missing in 1 connection",
        "one direction of 1 connection was not captured",
        "packets were cut or lost",
    ]
    assert (made.quality.connections, made.quality.midstream) == (3, 1)


def test_times_from_first_to_last() -> None:
    made = Context()
    made.add_span([])
    assert (made.first_time, made.last_time, made.exchanges) == (None, None, 0)
    made.add_span([exchange(5, SEND, None), exchange(1, SEND, 0, 2), exchange(3, SEND, 0, 9)])
    assert (made.first_time, made.last_time) == (START + 1_000_000, START + 12_000_000)
    assert made.exchanges == 3


def test_everything_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of, "MAX_NAMES", 3)
    monkeypatch.setattr(broker_names, "MAX_ADDRESSES", 3)
    made, merged = Context(), Context()
    for number in range(9):
        facts = [f"client=c@{number}", "route=6 8 8 0 b", f"slave=1 10.0.0.{number}:1"]
        where = {"client_address": f"10.0.1.{number}:1", "server_address": f"10.0.2.{number}:1"}
        for code in (SEND, HEARTBEAT, ROUTE, REGISTER):
            row = exchange(
                number,
                code,
                topic=f"T{number}",
                facts=facts,
                broker_name=f"b{number}",
                brokers=[f"b{number}=10.0.0.{number}:1"],
                **where,
            )
            made.add_exchange(row)
            part = Context()
            part.add_exchange(row)
            merged.merge(part)
    for one in (made, merged):
        named = one.broker_names
        for known in (named.routed, named.asked, one.clients, one.servers, one.routes):
            assert len(known) <= 3
        assert len(one.ranks) <= 3


def test_a_broker_has_its_name_on_the_second_port_too() -> None:
    context = Context()
    context.add_exchange(exchange(0, REGISTER, brokers=[f"broker-a={BROKER}"]))
    assert context.broker(BROKER) == "broker-a"
    assert context.broker("10.0.0.1:10909") == "broker-a"
    assert context.own_address("10.0.0.1:10909") == BROKER
    assert context.broker("10.0.0.1:10908") == "10.0.0.1:10908"
    assert context.names_of_ports() == {BROKER: "broker-a", "10.0.0.1:10909": "broker-a"}


def test_one_side_alone_is_a_loss_only_where_an_answer_is_missing() -> None:
    one_sided = connection(0, 9, directions="client")
    context = Context()
    context.add_connection(one_sided)
    context.add_exchange(oneway(0, REGISTER))
    assert context.quality.reasons() == []
    context.add_exchange(exchange(1, REGISTER, None))
    assert context.quality.reasons() == ["one direction of 1 connection was not captured"]
    other = Context()
    other.merge(context)
    assert other.quality.one_direction == 1


def test_a_file_that_ends_inside_a_packet_is_said_and_lowers_nothing() -> None:
    context = Context()
    context.add_finding(Finding(FindingKind.CAPTURE_TRUNCATED, "", 0, 0, -1, -1))
    assert context.quality.truncated == 1
    assert context.quality.reasons() == []
    said = not_judged(Diagnosis([], context))
    assert said == ["A capture file ends inside a packet: what came after it is unknown."]
