"""What rules say of clients that use gRPC: recorded, in any order, and of one side of the proxy."""

from __future__ import annotations

import re

import pytest

from analytics.diagnosis.problem import Problem
from analytics.diagnosis.registry import rule_of
from analytics.diagnosis.rule import COVERED, DiagnosisRule
from dissectors.rows.record import ExchangeRecord

from .made_rows import SampleRows, problems, same_in_any_order, sample
from .show import SAMPLES, captures, diagnosis_of

CALLS = "18081"
"""the port at which the proxy of recordings speaks gRPC"""
REFUSED = "grpc-refused-5x.pcap.gz"
LATE = "grpc-timer-late-5x.pcap.gz"
FOUND = (
    (REFUSED, "no-route", 3, "topic NobodysTopic has no route: 3 requests from 127.0.0.1 refused"),
    (
        *(REFUSED, "oversize-message", 1),
        "broker-a refused 1 send as too long or malformed: a body of 20,007 bytes (limit 16,384)",
    ),
    (
        *(REFUSED, "timer-illegal", 1),
        "proxy 127.77.0.71:18081 refused 1 send of a timed message: the delay exceeds 1 day",
    ),
    (
        *(REFUSED, "group-missing", 1),
        "consumer group nobodys_group does not exist on broker-a: 1 request refused",
    ),
    (
        *(REFUSED, "call-refused", 1),
        "proxy 127.77.0.71:18081 refused 1 request of group nobodys_group with"
        " GRPC_INVALID_ARGUMENT (3): process client telemetryCommand failed. group not found:"
        " nobodys_group",
    ),
    (
        *(LATE, "proxy-cannot-reach-broker", 11),
        "proxy 127.77.0.71:18081 did not reach broker 127.77.0.11:10911: 11 requests of group"
        " late_pushers failed (the connection attempt failed; the connection was lost)",
    ),
    (
        *(LATE, "no-route", 24),
        "topic GrpcDelay had no route from 23:31:37 to 23:31:57 UTC: none of its brokers was"
        " registered (24 requests from 127.0.0.1 refused)",
    ),
    (
        *(LATE, "delivered-late", 1),
        "1 message of GrpcDelay on proxy 127.77.0.71:18081 asked for a delay of 5 s and was"
        " delivered after 26 s: up to 21 s late",
    ),
    (
        *("grpc-cut-5x.pcap.gz", "connection-cut", 2),
        "proxy 127.77.0.61:17981 closed 2 connections while requests were pending (2 requests"
        " in total), then accepted new ones",
    ),
    (
        *("grpc-lag-5x.pcap.gz", "consumer-lag", 3),
        "slow_pushers falls behind in GrpcNormal: from 14 to 84 unacknowledged messages in"
        " 21.3 s; 5.2/s are received, 1.9/s are acknowledged",
    ),
    (
        *("grpc-redelivered-5x.pcap.gz", "reconsume-growth", 7),
        "refusing_pushers failed to consume 7 messages 4 times each; the broker keeps redelivering"
        " them",
    ),
    (
        *("grpc-blocked-5x.pcap.gz", "grpc-consumer-stuck", 1),
        "push consumer HOST_NAME_NOT_FOUND@451@0@7oypszwob of group blocked_pushers has not asked"
        " for messages since 23:45:15 UTC and holds 2 received messages, although it sent"
        " heartbeats until 23:46:08 (52.1 s)",
    ),
)
BY_CALLS_ONLY = (
    ("no-route", "topic NobodysTopic has no route: 3 requests from 127.0.0.1 refused"),
    (
        "oversize-message",
        "proxy 127.77.0.71:18081 refused 1 send as too long or malformed: a body of 20,007 bytes"
        " (limit 16,384)",
    ),
)
"""what clients are told, where nothing was captured behind the proxy"""


def described(rule: str) -> DiagnosisRule:
    found = rule_of(rule)
    assert found is not None
    assert found.grpc == COVERED
    return found


def said(rule: DiagnosisRule, rows: SampleRows) -> list[Problem]:
    # a rule that finds problems of another one is asked for them
    asked = rule if rule.found_by is None else described(rule.found_by)
    return [one for one in problems(asked, *rows) if one.rule == rule.id]


@pytest.mark.parametrize(("name", "rule", "count", "title"), FOUND)
def test_recorded(name: str, rule: str, count: int, title: str) -> None:
    found = {one.title: one for one in said(described(rule), sample(name))}
    assert found[title].count == count


@pytest.mark.parametrize("name", sorted({name for name, *_ in FOUND}))
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    rows = sample(name)
    for rule in {rule for one, rule, *_ in FOUND if one == name}:
        asked = described(described(rule).found_by or rule)
        assert same_in_any_order(asked, rows.exchanges, rows.connections)


def _of_calls(row: ExchangeRecord) -> bool:
    return row.server_address.endswith(CALLS)


@pytest.mark.parametrize(("rule", "title"), BY_CALLS_ONLY)
def test_only_the_side_of_the_clients_was_captured(rule: str, title: str) -> None:
    rows = list(filter(_of_calls, sample(REFUSED).exchanges))
    assert [one.title for one in problems(described(rule), rows)] == [title]


OF_REMOTING = re.compile(
    "sendMsgTimeout|retryTimesWhenSendFailed|retryAnotherBroker|endLatencyFault|consumeThread"
    "|pullThreshold|maxReconsumeTimes|consumeTimeout|RECONSUME_LATER|slaveReadEnable"
)
"""settings that gRPC clients lack"""


@pytest.mark.parametrize("name", [name for name in captures() if name.startswith("grpc-")])
def test_texts_for_grpc_clients_name_settings_that_they_have(name: str) -> None:
    for problem in diagnosis_of([str(SAMPLES / name)]).problems:
        assert OF_REMOTING.findall(problem.explanation + problem.advice) == [], problem.rule


def test_texts_of_a_rule_depend_on_its_clients() -> None:
    """The producer of one sample uses gRPC, and that of the other does not."""
    rule = described("send-retried")
    (one,) = problems(rule, *sample("grpc-cut-5x.pcap.gz"))
    assert (one.explanation, one.advice) == (rule.grpc_explanation, rule.grpc_advice)
    (two,) = problems(rule, *sample("going-away-5x.pcap"))
    assert (two.explanation, two.advice) == (rule.explanation, rule.advice)


def test_a_proxys_own_question_for_a_group_is_not_an_administrators() -> None:
    rows = [one for one in sample(REFUSED).exchanges if one.request_name != "PULL_MESSAGE"]
    (one,) = problems(described("group-missing"), rows)
    assert "a proxy asked for the group's settings" in " ".join(one.details)
    behind = [one for one in rows if not _of_calls(one)]
    assert not problems(described("group-missing"), behind)


def test_a_consumer_that_keeps_up_does_not_fall_behind() -> None:
    for name in ("grpc-consume-53.pcap", "grpc-python-5x.pcap", "pop-push-5x.pcap"):
        assert not problems(described("consumer-lag"), sample(name).exchanges)


def test_more_time_for_one_delivery_is_no_return() -> None:
    """A simple consumer that asks for more time gets another receipt each time."""
    rows = sample("grpc-redelivered-5x.pcap.gz").exchanges
    changes = [one for one in rows if one.request_name == "ChangeInvisibleDuration"]
    assert not problems(described("reconsume-growth"), changes)
