from __future__ import annotations

from typing import Any

import pytest

from analytics.diagnosis.keys import flow_of
from analytics.diagnosis.problem import Impact, ProblemSeverity, time_of
from analytics.diagnosis.rules.consumers import offset_moved
from analytics.diagnosis.rules.consumers.offset_reset import RULE
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, oneway, problems, problems_of_sample, same_in_any_order

PULL = int(RequestCode.PULL_MESSAGE)
OF = {"topic": "orders", "group": "bills"}
RESET = exchange(30_000, int(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET), 0, **OF)
TOLD = oneway(30_010, int(RequestCode.RESET_CONSUMER_CLIENT_OFFSET), **OF)


def pull(at_ms: float, offset: int, following: int, **values: Any) -> ExchangeRecord:
    facts = [f"offsets={offset} {following} 0 {following}"]
    given = {**OF, "queue_id": 0, "queue_offset": offset, "facts": facts, **values}
    return exchange(at_ms, PULL, **given)


BEFORE = [pull(1000 * second, 10 * second, 10 * second + 10) for second in range(30)]


@pytest.mark.parametrize("sign", [RESET, TOLD])
def test_messages_that_the_group_skips_are_counted(sign: ExchangeRecord) -> None:
    rows = [*BEFORE, sign, pull(41_000, 900, 910)]
    (one,) = problems(RULE, rows)
    assert (
        one.title == "an administrator reset the offsets of bills in orders: 600 messages skipped"
    )
    assert (one.severity, one.impact) == (ProblemSeverity.WARNING, {Impact.SKIPPED: 600})
    assert one.evidence[-1].what == "queue 0 pulled from offset 900"
    assert same_in_any_order(RULE, rows)


def test_a_reset_to_the_past_delivers_messages_again() -> None:
    (one,) = problems(RULE, [*BEFORE, RESET, TOLD, pull(41_000, 100, 110)])
    assert one.title.endswith(": up to 200 messages redelivered")
    assert (one.severity, one.impact) == (ProblemSeverity.INFO, {Impact.REDELIVERED: 200})


def test_a_broker_redirects_the_next_pull() -> None:
    """Without the request of the tool in the capture, this response shows the reset."""
    redirected = pull(
        31_000,
        300,
        900,
        response_code=int(ResponseCode.PULL_OFFSET_MOVED),
        remark="OFFSET_RESET, server side reset, from 300 to 900",
    )
    rows = [*BEFORE, redirected, pull(31_100, 900, 910)]
    (one,) = problems(RULE, rows)
    assert (one.count, one.impact) == (600, {Impact.SKIPPED: 600})
    assert problems(offset_moved.RULE, rows) == []
    assert same_in_any_order(RULE, rows)


def test_a_reset_without_a_pull_at_another_offset_is_reported_without_a_number() -> None:
    (one,) = problems(RULE, [*BEFORE, RESET, pull(41_000, 300, 310)])
    assert one.title == "an administrator reset the offsets of bills in orders"
    assert (one.severity, one.impact) == (ProblemSeverity.INFO, {})
    assert one.details == ["the capture does not show how many messages that skips or redelivers"]


def test_what_happens_later_is_not_the_reset() -> None:
    (one,) = problems(RULE, [*BEFORE, RESET, pull(31_000, 300, 310), pull(200_000, 900, 910)])
    assert one.impact == {}


def test_members_of_a_broadcasting_group_are_not_counted_as_one() -> None:
    beat = exchange(
        0,
        int(RequestCode.HEART_BEAT),
        facts=["client=one", "consumer=CONSUME_PASSIVELY BROADCASTING bills"],
    )
    (one,) = problems(RULE, [beat, *BEFORE, RESET, pull(41_000, 900, 910)])
    assert one.impact == {}


def test_pulls_that_wait_at_the_end_before_and_after() -> None:
    """Rows come by flow, so those without messages before and after are next to each other."""
    idle = [pull(1000 * second, 300, 300) for second in (10, 20, 50, 60)]
    again = [pull(45_000, 100, 200), pull(45_100, 200, 300)]
    rows = [pull(0, 290, 300), *idle, RESET, *again]
    (one,) = problems(RULE, rows)
    assert one.impact == {Impact.REDELIVERED: 200}
    assert same_in_any_order(RULE, rows)


def test_a_queue_that_is_busy_and_idle_in_turn_has_no_jump() -> None:
    """Pulls without messages come in another flow than those with messages."""
    busy = [pull(1000 * at, 10 * at, 10 * at + 10) for at in range(200)]
    idle = [pull(1000 * at + 500, 10 * at + 10, 10 * at + 10) for at in range(200)]
    reset = exchange(150_100, int(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET), 0, **OF)
    for rows in (
        [*busy, *idle, reset],
        [*idle, *busy, reset],
        sorted([*busy, *idle, reset], key=time_of),
    ):
        (one,) = problems(RULE, rows)
        assert one.impact == {}
    jump = [*busy[:150], *idle[:150], reset, pull(151_000, 5000, 5010)]
    (one,) = problems(RULE, jump)
    assert one.impact == {Impact.SKIPPED: 3500}


def test_several_clients_of_one_queue_are_not_compared() -> None:
    other = pull(41_000, 900, 910, client_address="10.0.0.77:1")
    (one,) = problems(RULE, [*BEFORE, RESET, pull(40_000, 300, 310), other])
    assert one.impact == {}


def test_memory_is_bounded_for_a_queue_that_is_idle_for_days() -> None:
    fold = RULE.new_fold("bills")
    for at in range(20_000):
        row = pull(15_000 * at, 300, 300)
        fold.adder_of(flow_of(row))([row])
    (pulls,) = vars(fold)["queues"].values()
    assert len(pulls.joined()) == 2


@pytest.mark.parametrize(("address", "skipped"), [("10.0.0.3:8080", 600), ("10.0.0.1:10921", 0)])
def test_addresses_of_one_broker_must_agree(address: str, skipped: int) -> None:
    """A relay shows the same pulls; a slave shows that the master's last pull was not the last."""
    after = pull(41_000, 900, 910, broker_name="b")
    own = [pull(1000 * at, 10 * at, 10 * at + 10, broker_name="b") for at in range(30)]
    hop = {"server_address": address, "broker_name": "b", "client_address": "10.0.0.3:7000"}
    if skipped:
        other = [pull(1000 * at, 10 * at, 10 * at + 10, **hop) for at in range(30)]
        other.append(pull(41_001, 900, 910, **hop))
    else:
        other = [pull(29_500, 300, 500, **hop)]
    (one,) = problems(RULE, [*own, *other, RESET, after])
    assert sum(one.impact.values()) == skipped


def test_a_refused_reset_is_none() -> None:
    refused = exchange(30_000, int(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET), 1, **OF)
    assert problems(RULE, [*BEFORE, refused, pull(41_000, 900, 910)]) == []


def test_many_pulls_before_and_after_do_not_hide_a_reset() -> None:
    before = [pull(second, 10 * second, 10 * second + 10) for second in range(30_000)]
    after = [pull(41_000 + at, 900_000 + at, 900_001 + at) for at in range(3_000)]
    (one,) = problems(RULE, [*before, RESET, *after])
    assert one.impact == {Impact.SKIPPED: 600_000}


@pytest.mark.parametrize("generation", ["4x", "5x"])
def test_real_brokers(generation: str) -> None:
    (one,) = problems_of_sample(RULE, f"offset-reset-{generation}.pcap.gz")
    assert one.title.startswith("an administrator reset the offsets of reset_group in ResetTopic: ")
    assert 20 <= one.impact[Impact.SKIPPED] <= 40
    (again,) = problems_of_sample(RULE, f"admin-{generation}.pcap")
    assert again.impact == {Impact.REDELIVERED: 4}
