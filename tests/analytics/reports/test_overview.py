"""The overview: what is a failure, what every healthy client shows, what is said above it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analytics.kept import Kept
from dissectors.decode.pipeline import Decode
from dissectors.rows.outcome import ORPHAN
from rmqtool.summary.summary import Summary
from tests.analytics.reported import Tables, input_of, tables_from, tables_of
from tests.analytics.rows import moment, report_input, row
from tests.expected import SAMPLES


@pytest.fixture(scope="module")
def recorded() -> Tables:
    """A frozen broker, a master without its slave, and a healthy consumer that comes and goes."""
    names = ("fault-freeze-plain-5x", "ha-replication-4x", "push-consumer-5x")
    return tables_of("overview", [str(SAMPLES / f"{name}.pcap") for name in names])


def test_a_message_that_is_stored_is_no_failure(recorded: Tables) -> None:
    (weak,) = (one for one in recorded["errors"] if one["response"] == "SLAVE_NOT_AVAILABLE")
    assert (weak["class"], weak["exchanges"]) == ("stored, not durable", 2)
    (topic,) = (one for one in recorded["topics"] if one["topic"] == "ReplicaTopic")
    assert (topic["sends"], topic["sent"]) == (10, 10)
    assert (topic["failed"], topic["not_durable"]) == (0, 2)


def test_a_retry_topic_that_is_not_made_yet_is_expected(recorded: Tables) -> None:
    last = recorded["errors"][-1]
    assert (last["class"], last["response"]) == ("expected", "TOPIC_NOT_EXIST")
    assert last["topics"] == ["%RETRY%push_group"]
    assert sum(int(str(one["failed"])) for one in recorded["operations"]) == 0


@pytest.mark.parametrize(
    "name", ["push-orderly-5x", "acl-5x", "fault-kill-5x", "grpc-send-5x", "one-direction-5x"]
)
def test_the_summary_counts_the_same(name: str) -> None:
    capture = str(SAMPLES / f"{name}.pcap")
    summary = Summary()
    for records in Decode([capture]).records():
        summary.add([one for one in records if one.status != ORPHAN])
    expected = {
        operation: (one.count, one.failed) for operation, one in summary.operations.rows.items()
    }
    rows = tables_of("overview", [capture])["operations"]
    assert expected
    assert {one["operation"]: (one["exchanges"], one["failed"]) for one in rows} == expected


def test_pulls_that_end_with_the_consumer_come_last(recorded: Tables) -> None:
    found = [
        (one["operation"], one["proven"], one["withdrawn"], one["exchanges"])
        for one in recorded["unanswered"]
    ]
    assert found == [
        ("SEND_MESSAGE_V2", True, False, 6),
        ("HEART_BEAT", True, False, 5),
        ("PULL_MESSAGE", True, True, 4),
    ]
    pulls = next(one for one in recorded["operations"] if one["operation"] == "PULL_MESSAGE")
    assert pulls["no_response"] == 0


def test_what_was_not_answered_is_said_first(recorded: Tables) -> None:
    from analytics.reports.overview import report_notes

    said = report_notes(recorded)
    assert said[0] == "11 requests got no response before their connections ended."
    assert said[1] == "No response reports a failure."
    assert said[2].startswith("2 sends were stored, but not on disk or on a slave in time")
    assert len(said) == 3
    assert report_notes({}) == []


def test_only_a_long_poll_that_its_own_side_ended_is_withdrawn() -> None:
    pull = {"request_name": "PULL_MESSAGE", "latency_us": None, "end": "closed"}
    rows = [
        row(0, conversation=0, **pull),
        row(0, conversation=1, **pull),
        row(0, conversation=2, **pull),
        row(0, conversation=0, latency_us=None, end="closed"),
    ]
    connection = {"source": "test.pcap", "start_time": moment(0), "directions": "both", "gaps": 0}
    connections = [
        {**connection, "conversation": 0, "ended_by": "client"},
        {**connection, "conversation": 1, "ended_by": "server"},
    ]
    given = report_input(rows, connections)
    tables = tables_from("overview", given, "unanswered")
    found = [(one["operation"], one["proven"], one["withdrawn"]) for one in tables["unanswered"]]
    assert found == [
        ("PULL_MESSAGE", True, False),
        ("SEND_MESSAGE_V2", True, False),
        ("PULL_MESSAGE", False, False),
        ("PULL_MESSAGE", True, True),
    ]


def test_another_topic_without_a_route_is_a_failure() -> None:
    route = {
        "request_name": "GET_ROUTEINFO_BY_TOPIC",
        "response_code": 17,
        "response_name": "TOPIC_NOT_EXIST",
    }
    rows = [row(0, topic="orders", **route), *(row(9, topic="%RETRY%g", **route) for _ in "ab")]
    tables = tables_from("overview", report_input(rows), "errors")
    assert [(one["class"], one["exchanges"]) for one in tables["errors"]] == [
        ("failed", 1),
        ("expected", 2),
    ]


@pytest.mark.parametrize("serialize_type", [None, "PROTOBUF"])
def test_sends_by_grpc_count_once_whichever_hops_are_chosen(serialize_type: str | None) -> None:
    """Twelve calls, of which the proxy makes sends to the broker."""
    given = input_of((str(SAMPLES / "grpc-send-5x.pcap"),))
    if serialize_type is not None:
        chosen = given.exchanges.where(f"serialize_type = '{serialize_type}'")
        given = replace(given, exchanges=chosen, kept=Kept(given.kept.engine))
    topics = tables_from("overview", given, "topics")["topics"]
    assert sum(row["sends"] for row in topics) == 12  # type: ignore[misc]
    assert sum(row["sent"] for row in topics) == 12  # type: ignore[misc]


def test_fetches_by_grpc_count_where_no_others_were_captured() -> None:
    topics = tables_of("overview", [str(SAMPLES / "grpc-local-53.pcap")])["topics"]
    assert sum(row["fetched"] for row in topics) == 5  # type: ignore[misc]
