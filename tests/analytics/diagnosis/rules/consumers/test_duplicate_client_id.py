from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.diagnosis.problem import Confidence, ProblemSeverity
from analytics.diagnosis.rules.consumers.duplicate_client_id import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, problems_of_sample, same_in_any_order

HEARTBEAT = int(RequestCode.HEART_BEAT)
MEMBERS = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
CONSUMER = "consumer=CONSUME_PASSIVELY CLUSTERING bills"


def heartbeat(
    at_ms: float, client_address: str, *facts: str, client: str = "c@1"
) -> ExchangeRecord:
    return exchange(
        at_ms, HEARTBEAT, client_address=client_address, facts=[f"client={client}", *facts]
    )


TWINS = [
    heartbeat(0, "10.0.0.7:1", CONSUMER),
    heartbeat(10, "10.0.0.8:1", CONSUMER),
    heartbeat(30_000, "10.0.0.7:1", CONSUMER),
    heartbeat(30_010, "10.0.0.8:1", CONSUMER),
    exchange(
        20,
        MEMBERS,
        group="bills",
        client_address="10.0.0.7:1",
        facts=["members=2", "member=c@1", "member=c@1"],
    ),
]


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_two_real_processes_with_one_id(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"client-id-twice-{generation}.pcap")
    assert one.title.startswith("127.0.0.1@twin is the client id of 2 processes at once (")
    assert one.title.endswith(
        " in twin_group: both pull the same queues, and no one pulls the others"
    )
    assert (one.count, one.confidence) == (2, Confidence.CERTAIN)


def test_two_processes_with_one_id() -> None:
    (one,) = problems(RULE, TWINS)
    assert one.title == (
        "c@1 is the client id of 2 processes at once (10.0.0.7:1, 10.0.0.8:1) in bills: both pull"
        " the same queues, and no one pulls the others"
    )
    assert (one.severity, one.count) == (ProblemSeverity.ERROR, 2)
    assert (one.subject.group, one.subject.client) == ("bills", "c@1")
    assert "10.0.0.1:10911 lists c@1 2 times" in [evidence.what for evidence in one.evidence]


def test_a_client_that_connects_anew_is_one_process() -> None:
    rows = [
        heartbeat(at, f"10.0.0.7:{port}", CONSUMER)
        for at, port in ((0, 1), (30_000, 1), (31_000, 2), (60_000, 2))
    ]
    assert problems(RULE, rows) == []


def test_different_groups_do_not_share_queues() -> None:
    others = [heartbeat(at, "10.0.0.9:1", "producer=shop") for at in (5, 30_005)]
    assert problems(RULE, [TWINS[0], TWINS[2], *others]) == []


def test_producers_with_one_id_are_a_warning() -> None:
    rows = [
        heartbeat(at, client_address, "producer=shop", "producer=CLIENT_INNER_PRODUCER")
        for at in (0, 30_000)
        for client_address in ("10.0.0.7:1", "10.0.0.8:1")
    ]
    (one,) = problems(RULE, rows)
    assert one.severity is ProblemSeverity.WARNING


def test_processes_one_after_the_other_are_normal() -> None:
    for name in ("push-rebalance-5x.pcap", "fault-kill-5x.pcap", "slave-read-5x.pcap"):
        assert problems_of_sample(RULE, name) == []


def test_the_order_of_rows_does_not_matter() -> None:
    assert same_in_any_order(RULE, TWINS)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 1)), max_size=9))
def test_processes_that_overlap_are_found_as_by_comparing_all(
    lives: list[tuple[int, int, int]],
) -> None:
    rows, overlapping = [], set()
    for number, (begin, end, broker) in enumerate(lives):
        for at in sorted((begin, end)):
            row = heartbeat(at * 1000, f"10.0.0.{number}:1", CONSUMER)
            row.server_address = f"10.0.1.{broker}:10911"
            rows.append(row)
        for other, (other_begin, other_end, other_broker) in enumerate(lives[:number]):
            last_begin = max(min(begin, end), min(other_begin, other_end))
            first_end = min(max(begin, end), max(other_begin, other_end))
            if broker == other_broker and last_begin < first_end:
                overlapping |= {number, other}
    found = problems(RULE, rows)
    assert [one.count for one in found] == [len(overlapping)] * bool(overlapping)
