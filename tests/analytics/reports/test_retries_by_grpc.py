"""The retry report on calls of gRPC: what clients logged, and what the proxy sent for them."""

from __future__ import annotations

import json

import pytest

from tests.analytics.reported import Tables, tables_from, tables_of
from tests.analytics.rows import report_input, row
from tests.expected import SAMPLES

PROXY, OTHER_PROXY, BROKER = "10.0.0.7:8081", "10.0.0.8:8081", "10.0.0.1:10911"
CALL = {
    "request_code": None,
    "request_name": "SendMessage",
    "response_code": 20000,
    "response_name": "OK",
    "group": None,
    "queue_id": None,
    "broker_name": None,
    "version": None,
    "version_name": "5.2.0",
    "server_address": PROXY,
}
FAILED = {"response_code": 50001, "response_name": "INTERNAL_SERVER_ERROR"}
TIMED_OUT = {"response_code": 50400, "response_name": "PROXY_TIMEOUT"}
NO_TOPIC = {"response_code": 40402, "response_name": "TOPIC_NOT_FOUND"}
ABANDONED = {"latency_us": None, "facts": ["stream_reset=CANCEL client"]}


def key(number: int) -> str:
    """Return a message id of process 420."""
    return f"01C696FD965D6F01A40B158087{number:08X}"


def call(number: int, at: int, **values: object) -> dict[str, object]:
    """Return a call that sends message `number`."""
    named = {"unique_key": key(number), "opaque": at, "conversation": 1}
    return row(number * 10_000_000 + at, **{**CALL, **named, **values})


def behind(number: int, at: int, **values: object) -> dict[str, object]:
    """Return what the proxy sends to the broker for message `number`."""
    named = {
        "unique_key": key(number),
        "client_address": "10.0.0.7:50000",
        "server_address": BROKER,
        "opaque": at,
        "conversation": 2,
        "offset_msg_id": f"{number}-{at}",
        "latency_us": 500,
    }
    return row(number * 10_000_000 + at, **{**named, **values})


BUSY = {"response_code": 2, "response_name": "SYSTEM_BUSY", "offset_msg_id": None}
ROWS = [
    # 0: stored at once
    call(0, 0),
    behind(0, 100),
    # 1: the broker refused it to one proxy; the other one stored it
    call(1, 0, **FAILED),
    behind(1, 100, **BUSY),
    call(1, 2000, server_address=OTHER_PROXY),
    # 2: the proxy gave up, although the broker stored the message: stored twice
    call(2, 0, **TIMED_OUT),
    behind(2, 100),
    call(2, 2000),
    behind(2, 2100),
    # 3: errors of which nobody knows whether a broker stored the message
    call(3, 0, **FAILED),
    call(3, 2000, **FAILED),
    # 4: the deadline was over twice; the broker stored the second one's
    call(4, 0, **ABANDONED),
    call(4, 1_000_000, **ABANDONED),
    behind(4, 1_000_100),
    # 5: refused again and again for what it is
    call(5, 0, **NO_TOPIC),
    call(5, 2000, **NO_TOPIC),
    # 6: the capture ended before the answer
    call(6, 0, latency_us=None, end="open"),
    # 7: no replica took it in time: stored, and the client is told of a failure
    call(7, 0, response_code=50002, response_name="HA_NOT_AVAILABLE"),
    call(7, 5_000_000),
    # 8: the status of gRPC itself, by number the same as a code of remoting that says stored
    call(8, 0, response_code=10, response_name="GRPC_ABORTED"),
    # the same broker, by remoting, of another client
    row(90_000_000, unique_key="0A00000900070A0B0C0D000000000001", **BUSY),
]


@pytest.fixture(scope="module")
def made() -> Tables:
    """The report of rows made up."""
    return tables_from("retries", report_input(ROWS))


@pytest.mark.parametrize(
    ("number", "causes", "final", "copies"),
    [
        (1, "INTERNAL_SERVER_ERROR → stored", "stored", 1),
        (2, "PROXY_TIMEOUT → stored", "stored", 2),
        (3, "INTERNAL_SERVER_ERROR → INTERNAL_SERVER_ERROR", "may be stored", 0),
        (4, "timeout → stored, client not told", "stored, client not told", 1),
        (5, "TOPIC_NOT_FOUND → TOPIC_NOT_FOUND", "failed", 0),
        (7, "HA_NOT_AVAILABLE → stored", "stored", 2),
        (8, "GRPC_ABORTED", "may be stored", 0),
    ],
)
def test_calls_are_attempts(
    made: Tables, number: int, causes: str, final: str, copies: int
) -> None:
    (found,) = (one for one in made["retry_messages"] if one["unique_key"] == key(number))
    assert (found["causes"], found["final"], found["copies"]) == (causes, final, copies)
    assert (found["process"], found["over_budget"]) == ("420-C696FD965D6F", 0)


def test_endpoints_and_outcomes_of_the_attempts(made: Tables) -> None:
    found = {
        (one["unique_key"], one["attempt"]): one
        for one in made["retry_attempts"]
        if one["protocol"] == "gRPC"
    }
    assert [found[key(1), place]["broker"] for place in (1, 2)] == [PROXY, OTHER_PROXY]
    outcomes = {at: found[key(at), 1]["outcome"] for at in (1, 2, 3, 8)}
    assert outcomes == {
        1: "refused",
        2: "stored, client not told",
        3: "error, may be stored",
        8: "error, may be stored",
    }
    assert found[key(3), 1]["certain"] is False
    verdicts = {one["unique_key"]: one["verdict"] for one in made["retry_verdicts"]}
    assert {of: verdict for of, verdict in verdicts.items() if str(of).startswith("01C6")} == {
        key(5): "retried without sense"
    }


def test_what_a_proxy_sends_is_no_attempt(made: Tables) -> None:
    calls, other = sorted(made["retry_totals"], key=lambda one: str(one["group"]))
    assert (calls["messages"], calls["attempts"], calls["retried"]) == (9, 15, 6)
    assert (calls["failed"], calls["maybe"], calls["unconfirmed"]) == (1, 2, 1)
    assert (calls["unknown"], calls["copies"], calls["group"]) == (1, 2, None)
    assert (other["messages"], other["attempts"], other["failed"]) == (1, 1, 1)
    assert not [one for one in made["retry_attempts"] if one["client_address"] == "10.0.0.7:50000"]


def test_calls_are_in_no_table_of_isolated_brokers() -> None:
    names = "isolation_producers", "isolation_brokers"
    tables = tables_from("isolation", report_input(ROWS), *names)
    assert [one["group"] for one in tables["isolation_producers"]] == ["shop"]
    assert sum(int(str(one["attempts"])) for one in tables["isolation_brokers"]) == 1


SAMPLED = {
    "grpc-slow-53": (30, 30, 0),
    "grpc-throttled-5x": (14, 24, 5),
    "grpc-disk-full-53": (4, 8, 2),
    "grpc-proxy-killed-5x": (4, 4, 0),
}
"""Messages, attempts, and messages that a client gave up; the Java client tries three times."""


@pytest.mark.parametrize("name", SAMPLED)
def test_messages_are_those_that_clients_logged(name: str) -> None:
    capture = str(SAMPLES / f"{name}.pcap")
    tables = tables_of("retries", [capture], "retry_totals", "retry_messages")
    messages, attempts, failed = SAMPLED[name]
    sums = {
        column: sum(int(str(one[column])) for one in tables["retry_totals"])
        for column in ("messages", "attempts", "retried", "failed", "maybe", "unknown", "copies")
    }
    assert sums == {
        "messages": messages,
        "attempts": attempts,
        "retried": failed,
        "failed": failed,
        "maybe": 0,
        "unknown": 0,
        "copies": 0,
    }
    told = json.loads((SAMPLES / f"{name}.grpc.json").read_text())
    sent = {one["rest"] for one in told if one["what"] == "sent"}
    assert len(sent) == messages - failed
    listed = {one["unique_key"] for one in tables["retry_messages"] if one["final"] == "failed"}
    assert len(listed) == failed
    assert not listed & sent


def test_calls_that_never_left_are_failed_connects() -> None:
    """The client logged eight failures: without a connection there is no call to be seen."""
    from analytics.reports.retries import report_notes

    names = "failed_connects", "retry_totals", "retry_causes"
    tables = tables_of("retries", [str(SAMPLES / "grpc-proxy-killed-5x.pcap")], *names)
    (one,) = tables["failed_connects"]
    assert (one["who"], one["connects"], one["attempts"]) == ("producer", 3, 0)
    assert any("could not be reached" in said for said in report_notes(tables))
