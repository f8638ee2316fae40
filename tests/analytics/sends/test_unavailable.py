"""Connects that failed: of producers without another broker, of other clients, of probes."""

from __future__ import annotations

import json

import pytest

from tests.analytics.reported import Tables, tables_from, tables_of
from tests.analytics.rows import moment, report_input, row
from tests.expected import SAMPLES

OUTAGE = "outage-5x"
NAMES = {
    "retries": ("failed_connects", "retry_totals", "retry_causes"),
    "overview": ("failed_connects", "errors", "unanswered", "relays"),
    "latency": ("latency_unavailable", "relays", "operations"),
    "isolation": ("isolation_producers", "isolation_brokers"),
}
"""what is looked at, by the remarks, too"""
PROBES = 12
"""the other program of the recording connects every 0.4 s for 5 s"""


def lost_sends() -> int:
    """Return how many calls of the recorded producer failed while there was no broker."""
    known = json.loads((SAMPLES / f"{OUTAGE}.producer.json").read_text())
    return sum(one.get("error") == "MQClientException" for one in known)


@pytest.fixture(scope="module", params=NAMES)
def recorded(request: pytest.FixtureRequest) -> tuple[str, Tables]:
    """A report of the recorded outage."""
    name, capture = request.param, str(SAMPLES / f"{OUTAGE}.pcap")
    return name, tables_of(name, [capture], *NAMES[name], send_timeout_ms=1500)


def test_an_outage_of_the_only_broker_is_in_every_report(recorded: tuple[str, Tables]) -> None:
    from analytics.reports import report_of

    name, tables = recorded
    said = " ".join(report_of(name).notes(tables))
    assert "broker-a" in said
    assert "no broker failed" not in said
    if name in ("retries", "overview"):
        (found,) = tables["failed_connects"]
        assert (found["broker"], found["client"], found["who"]) == (
            "broker-a",
            "127.0.0.1",
            "producer",
        )
        tries = 3 * lost_sends()
        assert tries < int(str(found["connects"])) <= tries + PROBES
        assert (found["refused"], found["no_response"]) == (found["connects"], 0)
        assert found["silent"], "the probe also came through, so some may be the probe's"
        assert "may come from a probe" in said
    elif name == "latency":
        (outage,) = tables["latency_unavailable"]
        assert 10_000_000 < int(str(outage["lasted_us"])) < 30_000_000
        assert outage["first_time"] < outage["last_time"] < outage["back_time"]  # type: ignore[operator]
        assert (outage["producers"], outage["clients"], outage["strangers"]) == (1, 0, 0)
    else:
        (producer,) = tables["isolation_producers"]
        assert producer["unreachable"] == "broker-a"
        assert int(str(producer["connects_failed"])) > 3 * lost_sends()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("sample", "leader"),
    [("peer-lost-5x", "127.77.0.11:10911"), ("peer-lost-4x", "127.77.0.11:10911")],
)
def test_a_leader_that_is_lost_is_in_every_report(sample: str, leader: str, name: str) -> None:
    """The producer's connects to the DLedger leader; what follows has no master to connect to."""
    from analytics.reports import report_of

    capture = str(SAMPLES / f"{sample}.pcap")
    tables = tables_of(name, [capture], *NAMES[name], send_timeout_ms=3000)
    said = " ".join(report_of(name).notes(tables))
    assert "broker-a" in said
    assert "no broker failed" not in said
    if name in ("retries", "overview"):
        found = tables["failed_connects"]
        (producer,) = [one for one in found if one["who"] == "producer"]
        assert (producer["broker"], producer["server_address"]) == ("broker-a", leader)
        assert int(str(producer["connects"])) == producer["refused"]
        assert producer["first_time"] <= producer["last_time"]  # type: ignore[operator]
    elif name == "latency":
        assert {one["broker"] for one in tables["latency_unavailable"]} == {"broker-a"}
    else:
        (producer,) = tables["isolation_producers"]
        assert producer["unreachable"] == "broker-a"


def failed(
    number: int, client: str, at: int, server: str, end: str = "refused"
) -> dict[str, object]:
    return {
        "source": "test.pcap",
        "capture": "test.pcap",
        "conversation": number,
        "client_address": f"{client}:{40_000 + number}",
        "server_address": server,
        "start": "syn",
        "end": end,
        "start_time": moment(at),
        "end_time": moment(at + 100),
        "directions": "both",
        "commands": 0,
    }


A, B, C = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:3306"
SECOND = 1_000_000
CONNECTIONS = [
    failed(10, "10.0.0.9", 0, A),
    {**failed(11, "10.0.0.9", SECOND, A, "no_response"), "syns": 2},
    failed(12, "10.0.0.9", 60 * SECOND, A),
    failed(13, "10.0.0.8", 2 * SECOND, A),
    failed(14, "10.0.0.7", 3 * SECOND, A),
    failed(15, "10.0.0.7", 3 * SECOND, B),
    failed(16, "10.0.0.7", 3 * SECOND, C),
    {**failed(17, "10.0.0.7", 0, A, "fin"), "start": "handshake"},
]


def used(number: int, at: int) -> dict[str, object]:
    """Return a connection of the producer that broker-a served."""
    more = {"start": "handshake", "commands": 2, "server_bytes": 100, "client_bytes": 100}
    return {**failed(number, "10.0.0.9", at, A, "fin"), **more, "ended_by": "client"}


WITH_USE = [*CONNECTIONS, used(18, -SECOND), used(19, 30 * SECOND)]
ROWS = [
    row(0),
    row(
        5,
        client_address="10.0.0.8:1",
        server_address="10.0.0.5:9876",
        request_code=105,
        request_name="GET_ROUTEINFO_BY_TOPIC",
        broker_name=None,
        brokers=["broker-a=10.0.0.1:10911", "broker-b=10.0.0.2:10911"],
    ),
]


@pytest.fixture(scope="module")
def made() -> Tables:
    """The overview of rows made up."""
    return tables_from("overview", report_input(ROWS, CONNECTIONS), *NAMES["overview"])


def test_who_connected_is_told_by_what_it_asked(made: Tables) -> None:
    found = {
        (one["broker"], one["client"]): (
            one["who"],
            one["refused"],
            one["no_response"],
            one["silent"],
        )
        for one in made["failed_connects"]
    }
    assert found == {
        ("broker-a", "10.0.0.9"): ("producer", 2, 1, 0),
        ("broker-a", "10.0.0.8"): ("client", 1, 0, 0),
        ("broker-a", "10.0.0.7"): ("stranger", 1, 0, 1),
        ("broker-b", "10.0.0.7"): ("stranger", 1, 0, 0),
    }, "and a server that nobody spoke RocketMQ with is none"


def outages(*connections: dict[str, object]) -> list[tuple[object, ...]]:
    tables = tables_from("latency", report_input(ROWS, list(connections)), "latency_unavailable")
    names = ("broker", "lasted_us", "connects", "producers", "clients", "strangers")
    return [tuple(one[name] for name in names) for one in tables["latency_unavailable"]]


def test_an_outage_lasts_until_the_server_is_seen_again() -> None:
    assert outages(*WITH_USE) == [
        ("broker-a", 30 * SECOND, 4, 1, 1, 1),
        ("broker-a", 100, 1, 1, 0, 0),
    ]
    assert outages(*WITH_USE[:-1]) == [("broker-a", 60 * SECOND + 100, 5, 1, 1, 1)]


def test_connects_of_strangers_alone_are_no_outage() -> None:
    assert outages(*CONNECTIONS) == []


def test_strangers_are_said_apart(made: Tables) -> None:
    from analytics.reports.overview import report_notes

    said = report_notes(made)
    assert said[0].startswith(
        "broker-a could not be reached: 3 connection attempts of 10.0.0.9, which sends"
    )
    assert said[1].startswith(
        "broker-a could not be reached: 1 connection attempt of 10.0.0.8, which is one"
    )
    assert said[2].startswith("2 failed connection attempts of addresses without a request")


def test_without_connections_nothing_is_said() -> None:
    tables = tables_from("overview", report_input(ROWS))
    assert "failed_connects" not in tables
