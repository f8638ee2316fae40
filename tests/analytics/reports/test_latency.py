"""Latency: what is counted as what, the network's part, the slowest, and what stays unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.analytics.rows import START, moment, report_input, row

if TYPE_CHECKING:
    from analytics.report import ReportInput, Row

Tables = Mapping[str, Sequence["Row"]]
SECOND = 1_000_000


def computed(given: ReportInput, *names: str, **options: object) -> Tables:
    """Return the rows of some tables of the report."""
    from dataclasses import replace

    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.result import computed as computed_reports

    report = report_of("latency")
    chosen = replace(report, tables=tuple(t for t in report.tables if t.name in names))
    settings = ReportOptions(tables=frozenset(names), **options)  # type: ignore[arg-type]
    (result,) = computed_reports([chosen], given, settings)
    return {name: table.rows() for name, table in result.tables.items()}


def connection(number: int, **values: object) -> dict[str, object]:
    """A whole connection of the exchanges' plain client and broker."""
    return {
        "source": "test.pcap",
        "capture": "test.pcap",
        "conversation": number,
        "client_address": "10.0.0.9:40000",
        "server_address": "10.0.0.1:10911",
        "protocol": "ROCKETMQ",
        "start": "handshake",
        "end": "fin",
        "directions": "both",
        "syn_rtt_us": 200,
        "ack_rtt_us": 30,
        "client_retransmissions": 0,
        "server_retransmissions": 0,
        "client_zero_windows": 0,
        "server_zero_windows": 0,
        "gaps": 0,
        "gap_bytes": 0,
        **values,
    }


def test_answers_are_counted_by_what_they_say() -> None:
    rows = [
        row(0, opaque=1),
        row(1, opaque=2, latency_us=3000, response_code=2, response_name="SYSTEM_BUSY"),
        row(2, opaque=3, latency_us=None, end="reset"),
        row(3, opaque=4, latency_us=None, end="open"),
        row(4, opaque=5, latency_us=None, end="closed", conversation=1),
        row(5, opaque=6, latency_us=None, status="oneway"),
        row(10 * SECOND, opaque=7, status="orphan", request_name=None, request_time=None),
    ]
    ends = [connection(0), connection(1, gaps=1, gap_bytes=100)]
    given = report_input(rows, ends)
    (found,) = computed(given, "operations")["operations"]
    expected = {
        "exchanges": 6,
        "answered": 2,
        "failed": 1,
        "no_response": 1,
        "unknown": 2,
        "oneway": 1,
        "failed_share": 0.5,
        "no_response_share": pytest.approx(1 / 3),
        "mean_us": 2000,
        "p50_us": 1004,  # the middle of its bucket
        "max_us": 3000,
    }
    assert {name: found[name] for name in expected} == expected


def test_without_connections_no_answer_is_unknown() -> None:
    rows = [row(0), row(1, latency_us=None, end="reset")]
    tables = computed(report_input(rows), "operations", "latency_network")
    (found,) = tables["operations"]
    assert (found["no_response"], found["unknown"]) == (0, 1)
    assert "latency_network" not in tables


def test_what_nobody_answered_has_no_latency() -> None:
    given = report_input([row(0, latency_us=None, end="open")])
    (found,) = computed(given, "operations")["operations"]
    for name in ("mean_us", "p50_us", "p999_us", "max_us", "failed_share", "no_response_share"):
        assert found[name] is None, name
    assert found["rate"] is None  # a single moment has no rate


def test_long_polls_are_apart() -> None:
    poll = {"request_name": "PULL_MESSAGE", "response_name": "PULL_NOT_FOUND"}
    rows = [row(0), row(1, opaque=2, latency_us=15 * SECOND, **poll)]
    tables = computed(report_input(rows), "latency_brokers", "latency_over_time", "latency_slowest")
    brokers = {one["long_poll"]: one["max_us"] for one in tables["latency_brokers"]}
    assert brokers == {False: 1000, True: 15 * SECOND}
    assert {one["max_us"] for one in tables["latency_over_time"]} == {1000}
    assert [one["latency_us"] for one in tables["latency_slowest"]] == [1000]


def test_windows_begin_at_whole_multiples() -> None:
    rows = [row(at, opaque=at) for at in (0, 9 * SECOND, 10 * SECOND, 31 * SECOND)]
    rows.append(row(31 * SECOND, opaque=1, server_address="10.0.0.2:10911", broker_name="broker-b"))
    given = report_input(rows)
    found = computed(given, "latency_over_time", window_us=10 * SECOND)["latency_over_time"]
    whole = [(one["window_start"], one["exchanges"]) for one in found if one["broker"] is None]
    assert whole == [
        (START, 2),
        (START + timedelta(seconds=10), 1),
        (START + timedelta(seconds=30), 2),
    ]
    assert {one["broker"] for one in found} == {None, "broker-a", "broker-b"}
    assert {one["window_us"] for one in found} == {10 * SECOND}
    assert {one["rate"] for one in found if one["exchanges"] == 2} == {0.2}


def test_there_are_about_sixty_windows() -> None:
    rows = [row(at * SECOND, opaque=at) for at in range(0, 3600, 4)]
    found = computed(report_input(rows), "latency_over_time")["latency_over_time"]
    assert {one["window_us"] for one in found} == {60 * SECOND}
    assert len([one for one in found if one["broker"] is None]) == 60


def test_the_slowest_have_their_packets_and_the_networks_part() -> None:
    rows = [
        row(
            at, opaque=at, latency_us=1000 + at, request_packet=10 * at, response_packet=10 * at + 1
        )
        for at in range(30)
    ]
    rows[29]["findings"] = ["RETRANSMISSION"]
    back = row(
        40, latency_us=5000, client_address="10.0.0.1:10911", server_address="10.0.0.9:40000"
    )
    given = report_input([*rows, back], [connection(0)])
    found = computed(given, "latency_slowest", slowest=3)["latency_slowest"]
    assert [one["latency_us"] for one in found] == [5000, 1029, 1028]
    assert [one["network_us"] for one in found] == [30, 200, 200]
    assert [one["broker_us"] for one in found] == [4970, 829, 828]
    assert [one["retransmitted"] for one in found] == [False, True, False]
    assert (found[1]["capture"], found[1]["request_packet"]) == ("test.pcap", 290)


def test_network_and_broker_are_told_apart() -> None:
    rows = [
        row(0, opaque=1, latency_us=1000),
        row(1, opaque=2, latency_us=3000, conversation=1, findings=["RETRANSMISSION"]),
    ]
    ends = [
        connection(0, syn_rtt_us=500, client_retransmissions=2),
        connection(1, syn_rtt_us=None, ack_rtt_us=None, start="midstream", server_zero_windows=4),
        connection(2, end="refused", protocol="no payload", syn_rtt_us=None, ack_rtt_us=None),
        connection(3, end="fin", protocol="TLS", server_address="10.0.0.1:443"),
    ]
    given = report_input(rows, ends)
    (found,) = computed(given, "latency_network")["latency_network"]
    expected = {
        "client": "10.0.0.9",
        "broker": "broker-a",
        "connections": 3,
        "refused": 1,
        "exchanges": 2,
        "mean_us": 2000,
        "network_us": 500,
        "network_share": 0.5,
        "known_share": 0.5,
        "beyond_us": 30,
        "retransmitted": 1,
        "retransmitted_mean_us": 3000,
        "retransmissions": 2,
        "zero_windows": 4,
    }
    assert {name: found[name] for name in expected} == expected


def test_grpc_calls_use_the_network() -> None:
    given = report_input(
        [row(0, request_name="SendMessage", latency_us=1000)],
        [
            connection(0, protocol="gRPC", commands=2, syn_rtt_us=500),
            connection(1, protocol="gRPC", commands=0),  # of another service
        ],
    )
    (found,) = computed(given, "latency_network")["latency_network"]
    assert (found["connections"], found["exchanges"], found["network_us"]) == (1, 1, 500)


def test_the_histogram_has_every_answer_once() -> None:
    latencies = [0, 1, 2, 3, 127, 128, 255, 256, 1000, 1023, 1024, 70_000]
    rows = [row(at, opaque=at, latency_us=latency) for at, latency in enumerate(latencies)]
    found = computed(report_input(rows), "latency_histogram")["latency_histogram"]
    for one in found:
        low, high = one["from_us"], one["below_us"]
        assert isinstance(low, int)
        assert isinstance(high, int)
        assert one["exchanges"] == sum(low <= latency < high for latency in latencies)
    assert sum(one["share"] for one in found) == pytest.approx(1)  # type: ignore[misc]


def test_a_moment_is_what_it_says() -> None:
    assert moment(5) - START == timedelta(microseconds=5)


def recorded() -> tuple[ReportInput, list[dict[str, object]]]:
    """Return a capture of a slow broker as an input, and its requests as the decoder gives them."""
    from dissectors.decode.pipeline import Decode
    from dissectors.rows.outcome import LONG_POLLS
    from tests.analytics.reported import input_of
    from tests.expected import SAMPLES

    capture = str(SAMPLES / "fault-slow-5x.pcap")
    found = [
        {
            "operation": one.request_name,
            "latency": one.latency_us,
            "time": one.request_time,
            "packet": one.request_packet,
            "failed": one.outcome_class == "failed",
        }
        for records in Decode([capture]).records()
        for one in records
        if one.status == "answered" and one.request_name not in LONG_POLLS
    ]
    return input_of((capture,)), found


def test_operations_are_ranked_by_total_time() -> None:
    given, requests = recorded()
    totals: dict[object, int] = {}
    for one in requests:
        totals[one["operation"]] = totals.get(one["operation"], 0) + one["latency"]  # type: ignore[operator]
    whole, so_far = sum(totals.values()), 0
    found = computed(given, "operations")["operations"]
    assert len(found) == len(totals) > 3
    for row_, (operation, total) in zip(
        found, sorted(totals.items(), key=lambda item: -item[1]), strict=True
    ):
        so_far += total
        assert (row_["operation"], row_["total_us"]) == (operation, total)
        assert row_["time_share"] == pytest.approx(total / whole)
        assert row_["cumulative"] == pytest.approx(so_far / whole)


def test_each_bucket_has_the_packet_of_its_first_exchange() -> None:
    given, requests = recorded()
    found = computed(given, "latency_histogram")["latency_histogram"]
    assert len(found) > 10
    for bucket in found:
        low, high = bucket["from_us"], bucket["below_us"]
        first = min(
            (one["time"], one["packet"])
            for one in requests
            if one["operation"] == bucket["operation"] and low <= one["latency"] < high  # type: ignore[operator]
        )
        assert bucket["request_packet"] == first[1]
        assert str(bucket["capture"]).endswith("fault-slow-5x.pcap")


def test_the_objective_counts_what_was_answered_well_and_in_time() -> None:
    from decimal import Decimal

    from analytics.report import LatencyObjective

    refused = {"response_code": 2, "response_name": "SYSTEM_BUSY"}
    rows = [
        *(row(at, opaque=at, latency_us=50_000) for at in range(95)),
        row(96, opaque=96, latency_us=50_001),
        row(SECOND + 1, opaque=97, latency_us=10, **refused),
        row(SECOND + 2, opaque=98, latency_us=None, end="reset"),
        row(SECOND + 3, opaque=99, latency_us=None, end="open"),  # cannot be told
        row(SECOND + 4, opaque=9, latency_us=None, status="oneway"),
        row(SECOND + 5, latency_us=60_000, request_name="PULL_MESSAGE"),
    ]
    names = ("latency_slo", "latency_slo_over_time")
    slo = LatencyObjective(50_000, Decimal("0.95"))
    given = report_input(rows, [connection(0)])
    tables = computed(given, *names, slo=slo, window_us=SECOND)
    (found,) = tables["latency_slo"]
    expected = {"requests": 98, "good": 95, "slow": 1, "failed": 1, "no_response": 1, "missed": 3}
    assert {name: found[name] for name in expected} == expected
    assert found["burn_rate"] == pytest.approx((3 / 98) / 0.05)
    windows = tables["latency_slo_over_time"]
    assert [one["good_share"] for one in windows] == pytest.approx([95 / 96, 0])
    assert [one["budget_spent"] for one in windows] == pytest.approx([1 / 4.9, 3 / 4.9])
    assert computed(given, *names) == {}


def test_one_row_of_1970_does_not_make_windows_of_days() -> None:
    from datetime import UTC, datetime

    from analytics.report import ReportOptions
    from analytics.reports import report_of
    from analytics.result import computed as computed_reports

    rows = [row(number * SECOND) for number in range(55)]
    stray = row(0) | {"request_time": datetime(1970, 1, 1, tzinfo=UTC)}
    names = ("latency_total", "latency_over_time")
    expected, found = (computed(report_input(some), *names) for some in (rows, [*rows, stray]))
    (total,) = found["latency_total"]
    assert total["rate"] == pytest.approx(56 / 54)
    lengths = {one["window_us"] for one in found["latency_over_time"]}
    assert lengths == {one["window_us"] for one in expected["latency_over_time"]} == {SECOND}
    given = report_input([*rows, stray])
    (result,) = computed_reports([report_of("latency")], given, ReportOptions())
    assert result.notes[0].startswith(
        "1 exchange is more than a month away from all others (1970-01-01)"
    )
