"""broadcast-gap: members of a broadcasting group, one after the other."""

from __future__ import annotations

from analytics.diagnosis.rules.consumers.broadcast_gap import RULE
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...made_rows import exchange, problems, same_in_any_order

PULL, BEAT = int(RequestCode.PULL_MESSAGE), int(RequestCode.HEART_BEAT)
ONE, TWO = "10.0.0.8:1000", "10.0.0.9:2000"


def beat(client_address: str, client: str, model: str = "BROADCASTING") -> ExchangeRecord:
    facts = [f"client={client}", f"consumer=CONSUME_PASSIVELY {model} cg"]
    return exchange(0, BEAT, client_address=client_address, facts=facts)


def pull(at_ms: float, client_address: str, offset: int, following: int) -> ExchangeRecord:
    return exchange(
        at_ms,
        PULL,
        client_address=client_address,
        topic="T",
        group="cg",
        queue_id=3,
        queue_offset=offset,
        broker_name="broker-a",
        facts=[f"offsets={offset} {following} 0 {following}"],
    )


BEATS = [beat(ONE, "one"), beat(TWO, "two")]


def test_a_new_member_starts_behind_the_former_one() -> None:
    rows = [*BEATS, pull(1000, ONE, 5, 6), pull(2000, ONE, 6, 7), pull(9000, TWO, 12, 13)]
    (one,) = problems(RULE, rows)
    assert one.title.startswith("broadcasting group cg skipped 5 messages of T: member one stopped")
    assert one.details[0] == "queue 3 of broker-a: offset 7 → 12"
    assert one.count == 5
    assert same_in_any_order(RULE, rows)


def test_a_member_that_lost_its_offsets_starts_behind_itself() -> None:
    same = [beat(ONE, "one"), beat(TWO, "one")]
    (one,) = problems(RULE, [*same, pull(1000, ONE, 5, 7), pull(9000, TWO, 12, 13)])
    assert ": member one stopped at " in one.title
    assert " UTC and started again at " in one.title
    goes_on = [*same, pull(1000, ONE, 5, 7), pull(9000, TWO, 7, 13)]
    assert problems(RULE, goes_on) == [], "it has its file"


def test_what_is_none() -> None:
    former, new = [pull(1000, ONE, 5, 7)], [pull(9000, TWO, 12, 13)]
    still = [pull(9500, ONE, 12, 13)]
    assert problems(RULE, [*BEATS, *former, *new, *still]) == [], "the other one lives"
    clustering = [beat(ONE, "one", "CLUSTERING"), beat(TWO, "two", "CLUSTERING")]
    assert problems(RULE, [*clustering, *former, *new]) == []
    assert problems(RULE, [*BEATS, *former, pull(9000, TWO, 7, 9)]) == [], "no gap"


def test_what_any_former_member_received_is_not_skipped() -> None:
    three = "10.0.0.9:3"
    rows = [*BEATS, beat(three, "three"), pull(1000, ONE, 90, 100), pull(2000, TWO, 45, 50)]
    (one,) = problems(RULE, [*rows, pull(9000, three, 120, 121)])
    assert one.count == 20
    assert one.details[0] == "queue 3 of broker-a: offset 100 → 120"
