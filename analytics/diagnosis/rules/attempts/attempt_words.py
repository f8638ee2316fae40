"""Shared parts of rules about attempts: evidence of an attempt, its waiting time, a counting fold.

Rules: an attempt has times in µs and evidence in ns; an attempt that is only a failed connect has
no packet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.quantities import plain_duration
from dissectors.rows import conversation_record as tcp

from ....sends.attempts import (
    CALL_RESET,
    CLOSED,
    LATE,
    RESET,
    TIMED_OUT,
    UNSURE,
    ObservedAttempt,
)
from ...context import Context
from ...keys import joined_key, keep
from ...messages import ObservedMessage
from ...names import Names, by_client, counted_names, only
from ...problem import Case, Evidence, Subject
from ...rule import TallyFold

BUSY: Final = frozenset(
    (
        "send-queue-timeout",
        "page-cache-busy",
        "page-cache-synchronized",
        "broker-rejects-request",
        "thread-pool-overload",
    )
)
"""the broker is overloaded"""
NO_RESPONSE: Final = frozenset(
    (
        "broker-gone",
        "broker-hung",
        "packets-unacknowledged",
        "broker-slow",
        "connection-cut",
        "send-timeout",
    )
)
"""the broker responds late or never"""


MAX_KEYS: Final = 1000
"""maximum UNIQ_KEYs kept"""
ENDED: Final = frozenset((RESET, CLOSED))
"""outcomes in which the connection ended before the response"""
WITHOUT_RESPONSE: Final = ENDED | {TIMED_OUT}
"""outcomes of which the broker may know more than the client"""
UNDECIDED: Final = WITHOUT_RESPONSE | {CALL_RESET, UNSURE}
"""the same outcomes, including those of gRPC calls"""
CLOCK_US: Final = 5000
"""a UNIQ_KEY has the creation time in whole milliseconds of the client's clock"""
PROMPT_US: Final = 100_000
"""attempts follow the creation of their message, and each other, within this time"""
LEAST_WAIT_US: Final = 300_000
"""a client that closes sooner and does not retry is stopping"""


def evidence_of(attempt: ObservedAttempt, what: str) -> Evidence:
    """Return an attempt as evidence, at its response if captured."""
    send = attempt.send
    answered = send.response_packet is not None and send.end is not None
    packet = send.response_packet if answered else send.request_packet
    time = send.end if answered and send.end is not None else send.begin
    return Evidence(send.capture or "", packet, time * 1000, send.conversation or 0, what)


def waited_us(attempt: ObservedAttempt) -> int:
    """Return how long a client waited for a response that did not arrive in time."""
    end = attempt.end if attempt.end is not None else attempt.send.closed
    return max((end or attempt.begin) - attempt.begin, 0)


def alone(message: ObservedMessage, context: Context) -> bool:
    """Return whether the only captured attempt of a message was certainly its only one."""
    if context.first_time is None or context.last_time is None or context.quality.with_gaps:
        return False
    # Attempts follow each other at once: only near the start or end of the capture, or in a hole,
    # could there be another one.
    first, last = message.attempts[0], message.last
    later = last.send.end if last.send.end is not None else last.send.begin
    created = first.begin - context.first_time // 1000
    left = last.send.ended_by == tcp.CLIENT and last.send.closed is not None
    goes_on = left or context.last_time // 1000 - later >= PROMPT_US
    known = first.send.lead is not None and first.send.lead <= message.timeout_us
    # With the creation time in the UNIQ_KEY, an earlier attempt is ruled out but for the clock.
    return created >= (CLOCK_US if known else PROMPT_US) and goes_on


def timed_out(message: ObservedMessage) -> list[ObservedAttempt]:
    """Return the attempts on which the client timed out."""
    attempts = []
    for place, attempt in enumerate(message.attempts):
        tried_again = place + 1 < len(message.attempts)
        if attempt.outcome == TIMED_OUT:
            if tried_again or waited_us(attempt) >= LEAST_WAIT_US:
                attempts.append(attempt)
        # Without a retry or a close, the client may still have waited: its timeout is not known.
        elif came_late(attempt) and attempt.certain:
            attempts.append(attempt)
    return attempts


def came_late(attempt: ObservedAttempt) -> bool:
    """Return whether a response came too late: no timeout coincides with an inner hop."""
    send = attempt.send
    waited = 0 if send.end is None else send.end - send.begin
    return attempt.outcome == LATE and waited >= LEAST_WAIT_US


def how(attempt: ObservedAttempt) -> str:
    """Return the outcome of an attempt, as a line of evidence."""
    send = attempt.send
    name = f"send to {'proxy ' if send.call else ''}{send.broker}"
    if attempt.inferred:
        return f"{name}: {attempt.outcome}"
    if attempt.outcome == LATE and send.end is not None:
        return f"{name}: answered after {plain_duration(send.end - send.begin)}, too late"
    if attempt.outcome in WITHOUT_RESPONSE:
        return f"{name}: {attempt.outcome} after {plain_duration(waited_us(attempt))}"
    result = send.response_name or attempt.outcome
    return f"{name}: {result}"


class MessageFold(TallyFold):
    """Count messages of one key by topic, group, broker, and client."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.keys: set[str] = set()
        self.topics = Names()
        self.groups = Names()
        self.brokers = Names()
        self.clients = Names()
        """by `address:port`"""
        self.languages = Names()
        self.versions = Names()

    def count(self, message: ObservedMessage, attempt: ObservedAttempt) -> None:
        """Count an attempt of a message."""
        send = attempt.send
        keep(self.keys, message.key, MAX_KEYS)
        self.tally.add(evidence_of(attempt, how(attempt)))
        self.topics.note(send.topic)
        self.groups.note(send.group)
        self.brokers.note(send.broker)
        self.clients.note(send.client_address)
        self.languages.note(send.language)
        self.versions.note(send.version_name)

    def subject(self, context: Context, group: str) -> Subject:
        """Return the subject of attempts of a producer group."""
        return Subject(
            broker=only(map(context.broker, self.brokers)),
            topic=only(self.topics),
            group=group or None,
        )

    def who(self, context: Context) -> list[str]:
        """Return sentences with the clients and examples of the messages."""
        lines = []
        if self.clients:
            lines.append(f"clients: {counted_names(by_client(self.clients, context))}")
        if self.groups:
            lines.append(f"groups: {counted_names(self.groups)}")
        if self.keys:
            lines.append(f"messages: {', '.join(sorted(self.keys)[:3])}")
        return lines


class LoneMessageFold(MessageFold):
    """Messages with one attempt, counted if they certainly had no other attempt."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._messages: list[ObservedMessage] = []

    def add_message(self, message: ObservedMessage) -> None:
        """Add a refused message."""
        if len(self._messages) < MAX_KEYS:
            self._messages.append(message)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case per key, if any message counts."""
        counted_here = type(self)(self.key)
        for message in self._messages:
            if alone(message, context):
                counted_here.count(message, message.last)
        yield from MessageFold.cases(counted_here, context)


def by_broker_and_topic(attempts: Sequence[ObservedAttempt]) -> str | None:
    """Return the broker and topic of the first attempt as a key; None if there is no attempt."""
    return joined_key(attempts[0].send.broker, attempts[0].send.topic) if attempts else None
