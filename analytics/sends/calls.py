"""Attempts of messages that a client sends by gRPC: calls of a proxy, each with what became of it.

Pure logic over rows of sends, as `attempts` is for remoting. Rules: an attempt is the client's
call; what the proxy sends to a broker for it is none (`hops`), but tells what became of the message
where the answer to the call does not. Each call has a deadline of its own, which the capture shows
only when the client resets the stream. Connects that failed belong to no message: all calls share
one connection, which is made without them.
RocketMQ: ProducerImpl.send0 and ClientManagerImpl.sendMessage of rocketmq-clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dissectors.grpc import send_codes

from .attempts import (
    CALL_RESET,
    CLOSED,
    GIVEN_UP,
    LATE,
    REFUSED,
    RESET,
    STORED,
    UNKNOWN,
    UNSURE,
    UNTOLD,
    ObservedAttempt,
    Send,
    merged,
)

_CANCELLED: Final = "CANCEL client"
"""What a client whose deadline is over does with the stream."""


def call_attempts_of(calls: Iterable[Send]) -> list[ObservedAttempt]:
    """Return the attempts of one message, in order; `calls` have its message id, at least one."""
    found: list[ObservedAttempt] = []
    requests = merged(calls)
    for place, (call, views) in enumerate(requests):
        following = requests[place + 1][0] if place + 1 < len(requests) else None
        outcome = _outcome(call, following)
        seen = bool(call.whole) or call.end is not None or call.reset is not None
        found.append(
            ObservedAttempt(
                call,
                place + 1,
                outcome,
                call.begin,
                _known_at(call, outcome, following),
                certain=seen and outcome not in (UNKNOWN, UNSURE),
                views=views,
            )
        )
    return found


def numbered_together(
    calls: list[ObservedAttempt], others: list[ObservedAttempt]
) -> list[ObservedAttempt]:
    """Return attempts by both protocols in the order of time."""
    both = sorted((*calls, *others), key=lambda one: one.begin)
    return [replace(one, number=place + 1) for place, one in enumerate(both)]


def _outcome(call: Send, following: Send | None) -> str:
    if call.end is not None:
        late = following is not None and call.end > following.begin
        return LATE if late and call.response_code in send_codes.STORED else _answer(call)
    known = _without_answer(call)
    if call.said == STORED and known != UNKNOWN:
        return UNTOLD
    return known


def _answer(call: Send) -> str:
    code = call.response_code
    if code is None or code in send_codes.UNDECIDED:
        return UNKNOWN
    if code in send_codes.STORED:
        return STORED
    if code in send_codes.NOT_DURABLE or call.said == STORED:
        return UNTOLD
    return REFUSED if send_codes.is_refusal(code) or call.said == REFUSED else UNSURE


def _without_answer(call: Send) -> str:
    if call.reset is not None:
        return GIVEN_UP if call.reset == _CANCELLED else CALL_RESET
    if not call.whole or call.how_ended not in ("reset", "closed"):
        return UNKNOWN
    return RESET if call.how_ended == "reset" else CLOSED


def _known_at(call: Send, outcome: str, following: Send | None) -> int | None:
    """Return when the client knew what became of a call.

    By the answer. Else a client that tries again has just made up its mind; else by the end of the
    connection. When a stream was reset, no column says.
    """
    if call.end is not None and outcome != LATE:
        return call.end
    if following is not None:
        return following.begin
    return call.closed if outcome in (RESET, CLOSED) else None
