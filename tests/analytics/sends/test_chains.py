"""What the attempts of a message come to: stored or not, copies, time, and sense of the retries."""

from __future__ import annotations

import pytest

from analytics.sends import chains
from analytics.sends.attempts import STORED, UNKNOWN, Send, attempts_of
from analytics.sends.chains import Chain, Limits, chain_of, remark_shape
from tests.analytics.made_sends import START, VERSIONS, answered, failure, silent

LIMITS = Limits(timeout_us=3_000_000, retries=2)
ACL = "org.apache.rocketmq.acl.common.AclException: Check signature failed for accessKey=x"


def chain(*sends: Send, **options: object) -> Chain:
    return chain_of(attempts_of(sends, **options), LIMITS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sends", "final"),
    [
        ([answered()], STORED),
        ([answered(code=2), answered(at=5000)], STORED),
        ([silent(ended="reset", by="server"), answered(at=5000)], STORED),
        ([answered(code=2), answered(at=5000, code=2)], chains.FAILED),
        ([answered(code=2), silent(at=5000)], chains.MAYBE),
        ([silent()], chains.MAYBE),
        ([silent(ended="open")], UNKNOWN),
        ([answered(code=2), silent(at=5000, ended="open")], UNKNOWN),
        ([answered(after=9000), answered(at=5000, code=2)], chains.STORED_UNCONFIRMED),
        ([answered(closed=START + 10, ended_by="client")], chains.STORED_UNCONFIRMED),
    ],
)
def test_what_became_of_a_message(sends: list[Send], final: str) -> None:
    assert chain(*sends).final == final


def test_a_refused_connect_is_a_failure_that_stores_nothing() -> None:
    found = chain(answered(at=9000, code=2, lead=9000), failures=[failure(10)])
    assert (found.final, found.unsure) == (chains.FAILED, 0)


def test_copies_are_those_that_brokers_gave_a_place_of_their_own() -> None:
    late = chain(answered(after=9000), answered(at=5000, server_address="10.0.0.2:10911"))
    assert (late.copies, late.late, late.duplicate) == (2, 1, True)
    same_place = chain(answered(), answered(at=5000, offset_msg_id="offset-0"))
    assert (same_place.copies, same_place.duplicate) == (1, False)


def test_an_attempt_without_answer_before_the_last_may_be_a_copy() -> None:
    assert chain(silent(ended="reset", by="server"), answered(at=5000)).unsure == 1
    assert chain(answered(code=2), silent(at=5000)).unsure == 0


def test_attempts_after_the_time_budget() -> None:
    sends = [answered(at=at, code=2) for at in (0, 3_000_000, 3_000_001)]
    assert chain(*sends).after_budget == 1


@pytest.mark.parametrize(
    ("sends", "verdict"),
    [
        ([answered(code=13, remark="limit 4"), answered(at=9, code=13, remark="limit 5")], True),
        ([answered(code=16), answered(at=9, code=16), answered(at=20, code=16)], True),
        ([answered(code=1, remark=ACL), answered(at=9, code=1, remark=ACL)], True),
        ([answered(code=1, remark="a"), answered(at=9, code=1, remark="b")], False),
        ([answered(code=2), answered(at=9, code=2), answered(at=20, code=2)], False),
        ([answered(code=16), answered(at=9)], False),
        ([silent(ended="reset", by="server"), answered(at=9, code=16)], False),
    ],
)
def test_retries_without_sense(sends: list[Send], verdict: bool) -> None:
    assert (chain(*sends).verdict == chains.SENSELESS) is verdict


@pytest.mark.parametrize(
    ("send", "verdict"),
    [
        (answered(code=2, version=VERSIONS["V5_2_0"]), chains.OLD_CLIENT),
        (answered(code=2), chains.NOT_RETRIED),
        (answered(code=1, version=VERSIONS["V4_9_8"]), chains.NOT_RETRIED),
        (answered(code=1500, version=VERSIONS["V5_2_0"]), chains.OLD_CLIENT),
        (answered(code=13), None),
        (answered(code=1, remark=ACL), None),
        (answered(code=2, language="GO"), None),
        (answered(code=2, after=3_000_000), None),
        (silent(closed=START + 3_000_000), chains.NO_TIME),
        (silent(closed=START + 500_000), None),
        (answered(), None),
    ],
)
def test_retries_that_are_missing(send: Send, verdict: str | None) -> None:
    assert chain(send).verdict == verdict


def test_all_attempts_made_none_is_missing() -> None:
    sends = [answered(at=at, code=2, remark=f"queue {at}") for at in (0, 9, 20)]
    assert chain(*sends).verdict is None


def test_what_was_retried_once_is_not_called_unretried() -> None:
    """Who tries a refused send again was set to fewer attempts than usual."""
    assert chain(answered(code=2), answered(at=9, code=2)).verdict is None
    cut_off = silent(ended="reset", by="server")
    assert chain(cut_off, answered(at=9, code=2)).verdict == chains.NOT_RETRIED


def test_alike_remarks_have_one_shape() -> None:
    assert remark_shape("period in queue: 201ms, size: 12") == "period in queue: Nms, size: N"
    assert remark_shape(None) is None
    assert len(remark_shape("x" * 100_000) or "") == 200


def test_one_id_is_one_copy_wherever_it_was_answered() -> None:
    twice = chain(
        answered(offset_msg_id="id"),
        answered(at=100, server_address="10.0.0.2:10911", offset_msg_id="id"),
    )
    assert (twice.copies, twice.duplicate) == (1, False)
    assert chain(answered(offset_msg_id="id"), answered(at=5000, offset_msg_id="jd")).copies == 2
