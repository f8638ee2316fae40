"""What became of calls of gRPC that send a message, one rule at a time."""

from __future__ import annotations

import pytest

from analytics.sends import attempts as words
from analytics.sends.attempts import Send, timeout_learnt
from analytics.sends.calls import call_attempts_of, numbered_together
from analytics.sends.chains import FAILED, MAYBE, STORED_UNCONFIRMED, Limits, chain_of
from dissectors.grpc import send_codes
from dissectors.grpc.names import CODES, OK
from tests.analytics.made_sends import START, answered, silent


def call(at: int = 0, code: int = OK, after: int = 1000, **values: object) -> Send:
    """Return a call at START + `at` µs that was answered `after` µs later."""
    return answered(at, code, after, call=True, offset_msg_id=None, **values)


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (call(), words.STORED),
        (call(code=CODES["HA_NOT_AVAILABLE"]), words.STORED_UNCONFIRMED),
        (call(code=CODES["TOO_MANY_REQUESTS"]), words.REFUSED),
        (call(code=CODES["REQUEST_TIMEOUT"]), words.UNSURE),
        (call(code=CODES["INTERNAL_SERVER_ERROR"]), words.UNSURE),
        (call(code=CODES["INTERNAL_SERVER_ERROR"], said=words.REFUSED), words.REFUSED),
        (call(code=CODES["PROXY_TIMEOUT"], said=words.STORED), words.STORED_UNCONFIRMED),
        (call(code=CODES["MULTIPLE_RESULTS"]), words.UNKNOWN),
        (call(code=CODES["OK"], response_code=None), words.UNKNOWN),
        (call(code=14), words.UNSURE),
        (call(code=12), words.REFUSED),
        (silent(call=True, reset="CANCEL client"), words.TIMED_OUT),
        (silent(call=True, reset="CANCEL client", whole=None), words.TIMED_OUT),
        (silent(call=True, reset="CANCEL client", said=words.STORED), words.STORED_UNCONFIRMED),
        (silent(call=True, reset="REFUSED_STREAM server"), words.CALL_RESET),
        (silent(call=True, ended="reset", by="server"), words.RESET),
        (silent(call=True, ended="closed"), words.CLOSED),
        (silent(call=True, ended="open"), words.UNKNOWN),
        (silent(call=True, ended="open", said=words.STORED), words.UNKNOWN),
        (silent(call=True, ended="reset", whole=False), words.UNKNOWN),
    ],
)
def test_what_became_of_a_call(sent: Send, outcome: str) -> None:
    (attempt,) = call_attempts_of([sent])
    assert attempt.outcome == outcome
    assert attempt.outcome in words.OUTCOMES


def test_a_client_knows_by_the_answer_or_tries_again() -> None:
    sent = [silent(call=True, reset="CANCEL client"), call(at=2_000_000, after=5_000_000)]
    first, second = call_attempts_of(sent)
    assert (first.end, second.end) == (START + 2_000_000, START + 7_000_000)
    assert second.outcome == words.STORED, "no deadline is known that it came after"
    (alone,) = call_attempts_of(sent[:1])
    assert alone.end is None
    (closed,) = call_attempts_of([silent(call=True, closed=START + 70)])
    assert closed.end == START + 70


def test_an_answer_after_the_next_call_began_is_too_late() -> None:
    first, second = call_attempts_of([call(after=9000), call(at=5000)])
    assert (first.outcome, second.outcome) == (words.LATE, words.STORED)
    assert first.end == START + 5000


def test_a_call_in_two_captures_is_one_attempt() -> None:
    (attempt,) = call_attempts_of([call(), call(source="t", capture="d", conversation=7)])
    assert attempt.views == 2


@pytest.mark.parametrize(
    ("code", "final", "verdict"),
    [
        ("TOPIC_NOT_FOUND", FAILED, "retried without sense"),
        ("TOO_MANY_REQUESTS", FAILED, None),
        ("INTERNAL_SERVER_ERROR", MAYBE, None),
        ("SLAVE_PERSISTENCE_TIMEOUT", STORED_UNCONFIRMED, None),
    ],
)
def test_what_three_calls_come_to(code: str, final: str, verdict: str | None) -> None:
    sent = [call(at=4_000_000 * place, code=CODES[code]) for place in range(3)]
    chain = chain_of(call_attempts_of(sent), Limits(3_000_000, 2))
    assert (chain.final, chain.verdict, chain.after_budget) == (final, verdict, 0)


def test_the_deadline_of_a_call_is_not_the_timeout_of_a_producer() -> None:
    waited = [silent(at, lead=0, closed=START + at + 500_000) for at in (0, 9_000_000)]
    assert timeout_learnt([[one] for one in waited]) == 500_000
    assert timeout_learnt([[one._replace(call=True)] for one in waited]) is None


def test_attempts_by_both_protocols_are_counted_in_the_order_of_time() -> None:
    others = words.attempts_of([answered(at=2000)])
    both = numbered_together(call_attempts_of([call(), call(at=5000)]), others)
    assert [(one.number, one.send.call) for one in both] == [(1, True), (2, False), (3, True)]


def test_codes_say_one_thing() -> None:
    for code in (*send_codes.STORED, *send_codes.NOT_DURABLE, *send_codes.UNDECIDED):
        assert not send_codes.is_refusal(code)
    assert all(send_codes.is_refusal(code) for code in CODES.values() if send_codes.is_final(code))
