"""Attempts of messages sent by gRPC: calls of a proxy, each with its outcome.

Pure logic over rows of sends, like `attempts` for remoting. An attempt is the client's call;
requests of the proxy to a broker are not attempts (`hops`).

RocketMQ: ProducerImpl.send0 and ClientManagerImpl.sendMessage of rocketmq-clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from dissectors.grpc import send_codes
from dissectors.rows.outcome import FAILED
from dissectors.rows.record import ANSWERED, ExchangeRecord

from .attempts import (
    CALL_RESET,
    CLOSED,
    LATE,
    REFUSED,
    RESET,
    STORED,
    STORED_UNCONFIRMED,
    TIMED_OUT,
    UNKNOWN,
    UNSURE,
    WITHIN_US,
    ConnectFailure,
    ObservedAttempt,
    Send,
    attempts_of,
    merged,
)
from .chains import Limits

_CANCELLED: Final = "CANCEL client"
"""How a client resets the stream when its deadline has passed."""


def attempts_of_message(
    sent: Sequence[Send], failures: Sequence[ConnectFailure], limits: Limits
) -> list[ObservedAttempt]:
    """Return the attempts of one message by either protocol; `sent` is not empty."""
    calls = [send for send in sent if send.call]
    remoting = [send for send in sent if not send.call] if calls else sent
    if not remoting:
        # failed connects belong to no message here: all calls share one connection
        return call_attempts_of(calls)
    observed = attempts_of(remoting, failures, limits.timeout_us, limits.timeout_known)
    return numbered_together(call_attempts_of(calls), observed) if calls else observed


def with_broker_outcomes(sent: Sequence[Send], rows: Iterable[ExchangeRecord]) -> list[Send]:
    """Return the sends of one message, in order, with the outcome at the broker in `said`.

    This is `hops.with_broker_outcomes` for rows in memory; `rows` are all sends of the message,
    including those of proxies.
    """
    responses = [
        (row.request_time // 1000, REFUSED if row.outcome_class == FAILED else STORED)
        for row in rows
        if row.request_code is not None and row.status == ANSWERED and row.request_time is not None
    ]
    result = []
    for index, send in enumerate(sent):
        following = sent[index + 1].begin if index + 1 < len(sent) else send.begin + WITHIN_US
        # without a response to the call, later requests of the proxy may be those of the next call
        until = send.end if send.end is not None else min(send.begin + WITHIN_US, following)
        outcomes = [
            outcome for time, outcome in responses if send.call and send.begin <= time <= until
        ]
        # STORED is the larger text: one success is enough
        result.append(send._replace(said=max(outcomes)) if outcomes else send)
    return result


def call_attempts_of(calls: Iterable[Send]) -> list[ObservedAttempt]:
    """Return the attempts of one message, in order; `calls` (not empty) share its message id."""
    result: list[ObservedAttempt] = []
    requests = merged(calls)
    for index, (call, views) in enumerate(requests):
        following = requests[index + 1][0] if index + 1 < len(requests) else None
        outcome = _outcome(call, following)
        seen = bool(call.whole) or call.end is not None or call.reset is not None
        result.append(
            ObservedAttempt(
                call,
                index + 1,
                outcome,
                call.begin,
                _known_at(call, outcome, following),
                certain=seen and outcome not in (UNKNOWN, UNSURE),
                views=views,
            )
        )
    return result


def numbered_together(
    calls: list[ObservedAttempt], others: list[ObservedAttempt]
) -> list[ObservedAttempt]:
    """Return the attempts of both protocols by time, renumbered."""
    attempts = sorted((*calls, *others), key=lambda attempt: attempt.begin)
    return [replace(attempt, number=index + 1) for index, attempt in enumerate(attempts)]


def _outcome(call: Send, following: Send | None) -> str:
    if call.end is not None:
        late = following is not None and call.end > following.begin
        return LATE if late and call.response_code in send_codes.STORED else _response(call)
    presumed = _without_response(call)
    # the broker stored the message, but the proxy's response never reached the client
    if call.said == STORED and presumed != UNKNOWN:
        return STORED_UNCONFIRMED
    return presumed


def _response(call: Send) -> str:
    code = call.response_code
    if code is None or code in send_codes.UNDECIDED:
        return UNKNOWN
    if code in send_codes.STORED:
        return STORED
    if code in send_codes.NOT_DURABLE or call.said == STORED:
        return STORED_UNCONFIRMED
    return REFUSED if send_codes.is_refusal(code) or call.said == REFUSED else UNSURE


def _without_response(call: Send) -> str:
    if call.reset is not None:
        # the deadline of a call is not in the packets; only the reset shows that it passed
        return TIMED_OUT if call.reset == _CANCELLED else CALL_RESET
    if not call.whole or call.how_ended not in ("reset", "closed"):
        return UNKNOWN
    return RESET if call.how_ended == "reset" else CLOSED


def _known_at(call: Send, outcome: str, following: Send | None) -> int | None:
    """Return when the client knew the outcome of a call.

    That is the response, or else the start of a retry, or else the end of the connection; unknown
    for a reset stream.
    """
    if call.end is not None and outcome != LATE:
        return call.end
    if following is not None:
        return following.begin
    return call.closed if outcome in (RESET, CLOSED) else None
