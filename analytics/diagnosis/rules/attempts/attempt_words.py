"""What rules about attempts share: evidence of an attempt, how long it waited, the fold to count.

Rules: an attempt has times in µs and evidence in ns; an attempt of which only a failed connect was
seen has no packet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from dissectors.rows import conversation_record as tcp

from ....sends.attempts import CLOSED, GIVEN_UP, LATE, RESET, ObservedAttempt
from ...context import Context
from ...keys import joined_key
from ...messages import ObservedMessage
from ...problem import Evidence, Tally, seconds
from ...refusals import MAX_NAMED, counted_names
from ...rule import Fold

MAX_KEYS: Final = 1000
"""UNIQ_KEYs that are kept"""
ENDED: Final = frozenset((RESET, CLOSED))
"""outcomes where the connection ended before the answer"""
WITHOUT_ANSWER: Final = ENDED | {GIVEN_UP}
"""outcomes of which the broker may know more than the client"""
CLOCK_US: Final = 5000
"""a UNIQ_KEY says its birth in whole milliseconds, by the client's clock"""
PROMPT_US: Final = 100_000
"""attempts of a message follow its birth, and each other, so soon"""
LEAST_WAIT_US: Final = 300_000
"""a client that closes sooner, and does not try again, is stopping"""


def evidence_of(attempt: ObservedAttempt, what: str) -> Evidence:
    """Return an attempt as evidence, at its answer where there is one."""
    send = attempt.send
    answered = send.response_packet is not None and send.end is not None
    packet = send.response_packet if answered else send.request_packet
    time = send.end if answered and send.end is not None else send.begin
    return Evidence(send.capture or "", packet, time * 1000, send.conversation or 0, what)


def waited_us(attempt: ObservedAttempt) -> int:
    """Return how long a client waited for an answer that it did not get in time."""
    end = attempt.end if attempt.end is not None else attempt.send.closed
    return max((end or attempt.begin) - attempt.begin, 0)


def alone(message: ObservedMessage, context: Context) -> bool:
    """Return whether a message with one attempt had no other: the capture would have shown it.

    Attempts follow each other at once, so it must not begin or end near the capture's own ends, nor
    have holes.
    """
    if context.first_time is None or context.last_time is None or context.quality.with_gaps:
        return False
    first, last = message.attempts[0], message.last
    later = last.send.end if last.send.end is not None else last.send.begin
    born = first.begin - context.first_time // 1000
    left = last.send.ended_by == tcp.CLIENT and last.send.closed is not None
    goes_on = left or context.last_time // 1000 - later >= PROMPT_US
    known = first.send.lead is not None and first.send.lead <= message.timeout_us
    return born >= (CLOCK_US if known else PROMPT_US) and goes_on


def timed_out(message: ObservedMessage) -> list[ObservedAttempt]:
    """Return the attempts that the client gave up because the time was over."""
    found = []
    for place, attempt in enumerate(message.attempts):
        tried_again = place + 1 < len(message.attempts)
        if attempt.outcome == GIVEN_UP:
            if tried_again or waited_us(attempt) >= LEAST_WAIT_US:
                found.append(attempt)
        elif came_late(attempt) and attempt.certain:
            found.append(attempt)
    return found


def came_late(attempt: ObservedAttempt) -> bool:
    """Return whether an answer came too late: nobody gives up as soon as an inner hop follows."""
    send = attempt.send
    waited = 0 if send.end is None else send.end - send.begin
    return attempt.outcome == LATE and waited >= LEAST_WAIT_US


def how(attempt: ObservedAttempt) -> str:
    """Return what became of an attempt, as a line of evidence."""
    send = attempt.send
    name = f"send to {send.broker}"
    if attempt.inferred:
        return f"{name}: {attempt.outcome}"
    if attempt.outcome == LATE and send.end is not None:
        return f"{name}: answered after {length_us(send.end - send.begin)}, too late"
    if attempt.outcome in WITHOUT_ANSWER:
        return f"{name}: {attempt.outcome} after {length_us(waited_us(attempt))}"
    answer = send.response_name or attempt.outcome
    return f"{name}: {answer}"


def length_us(us: int) -> str:
    """Return a length of time for people."""
    return seconds(us * 1000)


class MessageFold(Fold):
    """Messages of one key, counted: by topic, group, broker, client."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()
        self.keys: set[str] = set()
        self.topics: Counter[str] = Counter()
        self.groups: Counter[str] = Counter()
        self.brokers: Counter[str] = Counter()
        self.clients: Counter[str] = Counter()
        """by `address:port`"""
        self.languages: Counter[str] = Counter()
        self.versions: Counter[str] = Counter()

    def count(self, message: ObservedMessage, attempt: ObservedAttempt) -> None:
        """Count an attempt of a message."""
        send = attempt.send
        if len(self.keys) < MAX_KEYS:
            self.keys.add(message.key)
        self.tally.add(evidence_of(attempt, how(attempt)))
        for counter, name in (
            (self.topics, send.topic),
            (self.groups, send.group),
            (self.brokers, send.broker),
            (self.clients, send.requester),
            (self.languages, send.language),
            (self.versions, send.version_name),
        ):
            if name and (name in counter or len(counter) < MAX_NAMED):
                counter[name] += 1

    def who(self, context: Context) -> list[str]:
        """Return sentences that say whose messages they are, and which."""
        clients = Counter[str]()
        for endpoint, number in self.clients.items():
            clients[context.client(endpoint)] += number
        said = []
        if clients:
            said.append(f"clients: {counted_names(clients)}")
        if self.groups:
            said.append(f"groups: {counted_names(self.groups)}")
        if self.keys:
            said.append(f"messages: {', '.join(sorted(self.keys)[:3])}")
        return said


def by_broker_and_topic(attempts: Sequence[ObservedAttempt]) -> str | None:
    """Return the broker and topic of the first attempt as a key; None: there is no attempt."""
    return joined_key(attempts[0].send.broker, attempts[0].send.topic) if attempts else None
