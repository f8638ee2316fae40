"""Hops of one send through a proxy are one attempt, whatever became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analytics.reported import Tables, on_spark, tables_from, tables_of
from tests.analytics.rows import report_input, row
from tests.expected import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROXY, BROKER, OTHER = "10.0.0.7:8080", "10.0.0.1:10911", "10.0.0.2:10911"
KEYS = [f"0A00000900070A0B0C0D{number:012X}" for number in range(10)]
REFUSED = {"response_code": 14, "response_name": "SERVICE_NOT_AVAILABLE", "offset_msg_id": None}
ONEWAY = {"latency_us": None, "status": "oneway", "offset_msg_id": None}


@pytest.fixture(scope="module")
def recorded() -> Tables:
    """Sends through a real proxy: six stored, four one-way, two refused twice each."""
    file = str(SAMPLES / "proxy-remoting-5x.pcap")
    names = {
        "retries": ("retry_totals", "retry_attempts", "retry_causes", "failed_connects"),
        "latency": ("relays", "latency_unavailable", "operations"),
        "overview": ("relays", "errors", "unanswered", "failed_connects"),
    }
    return {
        name: rows
        for report, chosen in names.items()
        for name, rows in tables_of(report, [file], *chosen).items()
    }


def test_a_message_through_a_proxy_is_sent_and_stored_once(recorded: Tables) -> None:
    from analytics.reports.retries import report_notes

    found = [
        (one["messages"], one["attempts"], one["retried"], one["failed"], one["unsure"])
        for one in recorded["retry_totals"]
    ]
    assert found == [(2, 4, 2, 2, 0), (6, 6, 0, 0, 0), (4, 4, 0, 0, 0)]
    assert {one["copies"] for one in recorded["retry_totals"]} == {0}
    assert not any("copies" in said for said in report_notes(recorded))
    assert {one["server_address"] for one in recorded["retry_attempts"]} == {"127.77.0.71:18080"}


def test_the_latency_of_both_hops_stands_side_by_side(recorded: Tables) -> None:
    from analytics.reports.latency import report_notes

    (relay,) = recorded["relays"]
    assert (relay["relay"], relay["server_address"]) == ("127.77.0.71:18080", "127.77.0.11:10911")
    assert relay["sends"] == 10, "stored and refused ones: all that were answered on both sides"
    inner, outer = int(str(relay["inner_p50_us"])), int(str(relay["outer_p50_us"]))
    assert 0 < inner < outer
    assert any("captured on both sides" in said for said in report_notes(recorded))


def test_the_overview_says_that_both_hops_are_counted(recorded: Tables) -> None:
    from analytics.reports.overview import report_notes

    (relay,) = recorded["relays"]
    assert (relay["relay"], relay["server_address"]) == ("127.77.0.71:18080", "127.77.0.11:10911")
    (said,) = [one for one in report_notes(recorded) if "captured on both sides" in one]
    assert said.startswith("Sends through the relays 127.77.0.71:18080 ")


def hop(key: int, at: int, to: str, host: str = "10.0.0.9", **values: object) -> dict[str, object]:
    given = {
        "unique_key": KEYS[key],
        "server_address": to,
        "client_address": f"{host}:40000",
        "opaque": at,
    }
    return row(at, **{**given, "offset_msg_id": f"id-{key}", **values})


def proxied(
    key: int, at: int, inner: str = "10.0.0.7", **values: object
) -> list[dict[str, object]]:
    """Return both hops of a send."""
    answered = values.get("latency_us", 1) is not None
    outer_us, inner_us = ({"latency_us": us} if answered else {} for us in (9000, 4000))
    return [
        hop(key, at, PROXY, **{**values, **outer_us}),
        hop(key, at + 2000, BROKER, inner, **{**values, **inner_us}),
    ]


MADE = [
    *proxied(0, 0),
    *proxied(1, 20_000, **REFUSED),
    *proxied(1, 40_000),
    *proxied(2, 60_000, **ONEWAY),
    # the proxy's host is a client, too, and sends by itself
    hop(3, 80_000, BROKER, "10.0.0.7"),
    # a late answer, and a retry at another broker meanwhile
    hop(4, 100_000, BROKER, latency_us=5_000_000, offset_msg_id="late"),
    hop(4, 3_100_000, OTHER, latency_us=1000, offset_msg_id="in time"),
]


def test_attempts_and_copies_that_are_some_still_are() -> None:
    tables = tables_from("retries", report_input(MADE), "retry_totals", "retry_messages")
    (counts,) = [one for one in tables["retry_totals"] if one["client"] == "10.0.0.9"]
    assert (counts["messages"], counts["attempts"], counts["copies"]) == (4, 6, 1)
    (own,) = [one for one in tables["retry_totals"] if one["client"] == "10.0.0.7"]
    assert (own["messages"], own["attempts"]) == (1, 1)
    causes = {one["unique_key"]: one["causes"] for one in tables["retry_messages"]}
    assert causes == {
        KEYS[1]: "SERVICE_NOT_AVAILABLE → stored",
        KEYS[4]: "stored too late → stored",
    }


@pytest.mark.parametrize(
    ("inner", "attempts"),
    [("10.0.0.7", 1), ("10.0.0.9", 2), ("10.0.0.6", 1)],
    ids=["from the relay's address", "from the client's address", "from another address"],
)
def test_a_relay_of_which_no_id_is_known(inner: str, attempts: int) -> None:
    """Nothing was stored through it: only its address tells it, else there are two attempts."""
    given = report_input(proxied(1, 0, inner, **REFUSED))
    totals = tables_from("retries", given, "retry_totals")["retry_totals"]
    (counts,) = [one for one in totals if one["client"] == "10.0.0.9"]
    assert counts["attempts"] == attempts


def test_calls_of_a_proxy_stand_beside_what_it_asks_the_broker() -> None:
    """The samples have a proxy of one version each; in local mode nothing is behind the calls."""
    names = "grpc-send-5x.pcap", "grpc-go-keys-53.pcapng", "grpc-python-5x.pcap"
    files = [str(SAMPLES / name) for name in (*names, "grpc-local-53.pcap")]
    (relay,) = tables_of("latency", files, "relays")["relays"]
    assert (relay["relay"], relay["server_address"]) == ("127.77.0.71:18081", "127.77.0.11:10911")
    assert relay["sends"] == 12 + 4 + 4
    inner, outer, own = (int(str(relay[f"{hop}_p50_us"])) for hop in ("inner", "outer", "own"))
    assert 0 < inner < outer
    assert 0 < own < outer


def test_spark_pairs_the_same_hops(spark: SparkSession) -> None:
    given = report_input([*MADE, *proxied(5, 200_000, "172.17.0.1")])
    tables = {"retries": ("retry_totals", "retry_attempts"), "latency": ("relays",)}
    for report, names in tables.items():
        here = tables_from(report, given, *names)
        assert tables_from(report, on_spark(given, spark), *names) == here
        assert all(here.values())
