"""Attempts of one message: outcomes, order, what is inferred, and what the capture cannot say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.sends import attempts as words
from analytics.sends.attempts import Send, attempts_of, timeout_learnt
from dissectors.remoting.versions import ordinal_of
from tests.analytics.made_sends import START, VERSIONS, answered, failure, silent


def outcomes(*sends: Send, **options: object) -> list[str]:
    return [one.outcome for one in attempts_of(sends, **options)]  # type: ignore[arg-type]


def test_the_versions_of_the_made_up_sends_are_real() -> None:
    assert {name: ordinal_of(name) for name in VERSIONS} == VERSIONS


@pytest.mark.parametrize(
    ("send", "outcome"),
    [
        (answered(), words.STORED),
        (answered(code=10), words.STORED),
        (answered(code=12), words.STORED),
        (answered(code=2), words.REFUSED),
        (answered(closed=START + 500, ended_by="client"), words.LATE),
        (silent(ended="reset", by="server"), words.RESET),
        (silent(ended="closed", by="server"), words.CLOSED),
        (silent(ended="closed", by="client"), words.TIMED_OUT),
        (silent(ended="reset", by="client"), words.TIMED_OUT),
        (silent(ended="open"), words.UNKNOWN),
        (silent(whole=False), words.UNKNOWN),
        (silent(status="oneway"), words.ONEWAY),
    ],
)
def test_what_became_of_an_attempt(send: Send, outcome: str) -> None:
    (attempt,) = attempts_of([send])
    assert attempt.outcome == outcome
    assert attempt.certain == (outcome != words.UNKNOWN)


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [("open", words.TIMED_OUT), ("closed", words.CLOSED), (None, words.NOT_SENT)],
)
def test_what_the_sender_itself_logged_is_certain(ended: str, outcome: str) -> None:
    own = silent(ended=ended, by="", whole=None, request_packet=None, client_address="")
    first, second = attempts_of([own, own._replace(begin=START + 5)])
    assert (first.outcome, first.certain, first.views) == (outcome, True, 1)
    assert second.number == 2


def test_without_connections_the_end_is_believed_but_not_certain() -> None:
    (attempt,) = attempts_of([silent(ended="reset", by="", whole=None)])
    assert (attempt.outcome, attempt.certain) == (words.RESET, False)


def test_an_answer_after_the_next_attempt_began_came_too_late() -> None:
    assert outcomes(answered(after=5000), answered(at=4000)) == [words.LATE, words.STORED]
    assert outcomes(answered(after=3000), answered(at=4000)) == [words.STORED, words.STORED]


def test_two_captures_of_one_request_are_one_attempt() -> None:
    seen_twice = [silent(ended="open"), answered(at=7)._replace(opaque=1), answered(at=90)]
    attempts = attempts_of(seen_twice)
    assert [(one.send.status, one.views) for one in attempts] == [("answered", 2), ("answered", 1)]


def test_a_failed_connect_before_the_request_is_an_attempt() -> None:
    send = answered(at=10_000, lead=9000)
    attempts = attempts_of([send], [failure(2000)])
    assert [(one.number, one.send.broker, one.outcome) for one in attempts] == [
        (1, "b", words.CONNECT_REFUSED),
        (2, "a", words.STORED),
    ]
    assert [one.inferred for one in attempts] == [True, False]
    assert attempts[0].end == START + 2100


@pytest.mark.parametrize(
    ("send", "failed"),
    [
        (answered(at=10_000, lead=None), failure(2000)),
        (answered(at=10_000, lead=5000), failure(2000)),
        (answered(at=10_000, lead=9000), failure(9950)),
        (answered(at=1_100_000, lead=1_099_000), failure(2000)),
        (answered(at=10_000, lead=9000), failure(2000, broker="a")),
    ],
    ids=[
        "key says nothing",
        "before the message",
        "not over by then",
        "long before",
        "same broker",
    ],
)
def test_other_failed_connects_are_none_of_its_attempts(send: Send, failed: object) -> None:
    assert outcomes(send, failures=[failed]) == [words.STORED]


def test_a_connect_between_two_attempts_is_between_them() -> None:
    sends = [answered(code=2), answered(at=9000, broker="c")]
    connects = [failure(5000, refused=False)]
    assert outcomes(*sends, failures=connects) == [
        words.REFUSED,
        words.CONNECT_UNANSWERED,
        words.STORED,
    ]


def test_the_first_attempt_begins_with_the_message() -> None:
    assert attempts_of([answered(at=10_000, lead=2500)])[0].begin == START + 7500
    assert attempts_of([answered(at=10_000, lead=-20)])[0].begin == START + 10_000
    long_ago = answered(at=10_000, lead=3_000_001)
    assert attempts_of([long_ago])[0].begin == START + 10_000


def test_a_retry_begins_with_its_connect() -> None:
    first = answered(code=2)
    later = answered(at=9000, connected=START + 8000)
    assert attempts_of([first, later])[1].begin == START + 8000
    reused = answered(at=9000, connected=START - 5)
    assert attempts_of([first, reused])[1].begin == START + 9000


def test_the_client_knows_by_the_answer_the_next_attempt_or_the_end_of_the_connection() -> None:
    refused, retried = attempts_of([answered(code=2), answered(at=9000)])
    assert (refused.end, retried.end) == (START + 1000, START + 10_000)
    reset, _ = attempts_of([silent(ended="reset", by="server", closed=START + 5), answered(at=80)])
    assert reset.end == START + 80
    (alone,) = attempts_of([silent(ended="reset", by="server", closed=START + 5)])
    assert alone.end == START + 5


@pytest.mark.parametrize(("version", "end"), [("V4_9_8", 3_000_000), ("V5_1_3", 50)])
def test_older_clients_do_not_see_a_broker_close(version: str, end: int) -> None:
    send = silent(by="server", closed=START + 50, version=VERSIONS[version])
    assert attempts_of([send])[0].end == START + end


def test_a_queue_of_another_broker_is_stale() -> None:
    retry = answered(at=50, broker="b", server_address="10.0.0.2:10911")
    first, second = attempts_of([silent(ended="reset", by="server"), retry])
    assert (first.stale_queue, second.stale_queue) == (False, True)
    proxied = answered(broker="10.0.0.3:8080")
    assert not attempts_of([proxied])[0].stale_queue


moments = st.integers(0, 5_000_000)
sends = st.one_of(
    st.builds(answered, moments, st.sampled_from([0, 2, 10, 14]), st.integers(1, 4_000_000)),
    st.builds(silent, moments, st.sampled_from(["reset", "closed", "open"])),
)


@pytest.mark.slow
@given(seen=st.lists(sends, min_size=1, max_size=6), order=st.randoms(use_true_random=False))
def test_the_order_in_which_captures_are_read_is_of_no_account(
    seen: list[Send], order: object
) -> None:
    shuffled = list(seen)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    attempts = attempts_of(seen)
    assert [(one.begin, one.outcome) for one in attempts] == [
        (one.begin, one.outcome) for one in attempts_of(shuffled)
    ]
    assert [one.number for one in attempts] == [*range(1, len(attempts) + 1)]
    assert sum(one.views for one in attempts) == len(seen)
    assert all(one.outcome in words.OUTCOMES for one in attempts)
    assert all(one.end is None or one.end >= one.begin for one in attempts)


# the timeout


def test_an_answer_after_the_timeout_is_late_though_the_connection_was_kept() -> None:
    late = answered(at=1000, lead=1000, after=4_472_000)
    (attempt,) = attempts_of([late], timeout_us=3_000_000)
    assert (attempt.outcome, attempt.certain) == (words.LATE, True)
    assert attempt.end == START + 3_000_000
    (assumed,) = attempts_of([late], timeout_us=3_000_000, timeout_known=False)
    assert (assumed.outcome, assumed.certain) == (words.LATE, False)
    (patient,) = attempts_of([late], timeout_us=5_000_000)
    assert (patient.outcome, patient.certain) == (words.STORED, True)


def test_an_answer_at_the_timeout_may_have_been_in_time() -> None:
    (attempt,) = attempts_of([answered(lead=0, after=3_010_000)], timeout_us=3_000_000)
    assert attempt.outcome == words.STORED


def test_a_late_refusal_is_known_at_the_timeout() -> None:
    (attempt,) = attempts_of([answered(code=2, lead=0, after=4_000_000)], timeout_us=3_000_000)
    assert (attempt.outcome, attempt.end) == (words.REFUSED, START + 3_000_000)


def test_the_client_knows_at_its_timeout_and_not_by_its_fin() -> None:
    """The first timeout of a process loads classes before the connection is closed."""
    waited = silent(lead=0, closed=START + 1_663_000)
    (attempt,) = attempts_of([waited], timeout_us=1_500_000)
    assert (attempt.outcome, attempt.end) == (words.TIMED_OUT, START + 1_500_000)
    (early,) = attempts_of([waited], timeout_us=3_000_000)
    assert early.end == START + 1_663_000


@pytest.mark.parametrize(
    ("waited", "timeout"),
    [
        ((1_663_000, 1_502_000, 1_501_000), 1_500_000),
        ((10_001_000, 10_120_000), 10_000_000),
        ((810_000, 801_000, 804_000), 800_000),
        ((777_000, 778_000), 777_000),
        ((1_502_000,), None),
        ((1_502_000, 2_900_000), None),
        ((4000, 5000, 6000), None),
        ((), None),
    ],
)
def test_the_timeout_is_learnt_from_connections_closed_in_vain(
    waited: tuple[int, ...], timeout: int | None
) -> None:
    messages = [[silent(at=at, lead=0, closed=START + at + us)] for at, us in enumerate(waited)]
    others = [
        [answered(lead=0, closed=START + 1_500_000, ended_by="client")],
        [silent(lead=0, closed=START + 1_500_000, by="server")],
        [silent(lead=None, closed=START + 1_500_000)],
        [silent(lead=0, closed=START + 1_500_000), answered(at=1_500_000)],
    ]
    assert timeout_learnt([*messages, *others]) == timeout


# connects of other programs


@pytest.mark.parametrize("at", [200_000, 700_000, 1_200_000])
def test_a_connect_while_the_client_waits_is_another_programs(at: int) -> None:
    waiting = silent(closed=START + 1_500_000)
    retried = answered(at=1_600_000, broker="c")
    assert outcomes(waiting, retried, failures=[failure(at)]) == [words.TIMED_OUT, words.STORED]


def test_a_connect_long_after_the_birth_of_a_message_is_another_programs() -> None:
    assert outcomes(answered(at=900_000, lead=900_000), failures=[failure(400_000)]) == [
        words.STORED
    ]


def test_connects_one_after_the_other_are_attempts() -> None:
    sends = answered(at=90_000, lead=90_000, broker="c")
    connects = [failure(2000), failure(40_000, broker="a"), failure(80_000)]
    assert outcomes(sends, failures=connects) == [*[words.CONNECT_REFUSED] * 3, words.STORED]
