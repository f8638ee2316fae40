"""Attempts of one message, in order, each with its outcome.

Attempts share the UNIQ_KEY and topic of their message, on any connection, broker, or capture. What
the packets do not show is `unknown`. Pure logic over rows; gRPC calls are judged by `calls`.

RocketMQ: DefaultMQProducerImpl.sendDefaultImpl, MQClientAPIImpl.onExceptionImpl.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from dissectors.remoting import code_sets
from dissectors.remoting.versions import V5_1_3

DEFAULT_TIMEOUT_US = 3_000_000
"""Default sendMsgTimeout of the Java client."""
_SEES_FIN = V5_1_3
"""First version that fails pending requests when the broker closes the connection by FIN."""
SOON_US = 1_000_000
"""Maximum time a client needs to log and connect before it tries the next broker."""
WITHIN_US = 3_000_000
"""Maximum time before an inner hop starts if the outer hop has no response."""
_AT_ONCE_US = 50_000
"""Maximum time from the start of a message to its connect."""
GRACE_US = 20_000
"""Tolerance for responses after the timeout, because clocks differ."""
ALIKE_US = 200_000
"""Maximum time from the timeout to the FIN, when the client loads classes or is busy."""
_CLOCK_STEP_US = 1000
"""A UNIQ_KEY has its creation time in whole milliseconds, rounded down."""

STORED = "stored"
REFUSED = "refused"
LATE = "stored too late"
RESET = "connection reset"
CLOSED = "connection closed"
TIMED_OUT = "timeout"
CONNECT_REFUSED = "connect refused"
CONNECT_UNANSWERED = "connect not answered"
NOT_SENT = "not sent"
CALL_RESET = "call reset"
UNSURE = "error, may be stored"
STORED_UNCONFIRMED = "stored, client not told"
ONEWAY = "oneway"
UNKNOWN = "unknown"
OUTCOMES = (
    STORED,
    REFUSED,
    LATE,
    RESET,
    CLOSED,
    TIMED_OUT,
    CONNECT_REFUSED,
    CONNECT_UNANSWERED,
    NOT_SENT,
    CALL_RESET,
    UNSURE,
    STORED_UNCONFIRMED,
    ONEWAY,
    UNKNOWN,
)
"""Outcomes of an attempt; `CALL_RESET` and `UNSURE` only apply to gRPC calls."""

FAILURES = frozenset(
    (
        REFUSED,
        RESET,
        CLOSED,
        TIMED_OUT,
        CONNECT_REFUSED,
        CONNECT_UNANSWERED,
        NOT_SENT,
        CALL_RESET,
        UNSURE,
    )
)
"""Outcomes that the client correctly took for a failure."""
MAY_BE_STORED = frozenset((RESET, CLOSED, TIMED_OUT, UNKNOWN, ONEWAY, CALL_RESET, UNSURE))
"""Outcomes after which the broker may have stored the message anyway."""


def long_us(timeout_us: int) -> int:
    """Return the latency above which a send may have timed out at a client with that timeout."""
    return timeout_us * 9 // 10


class Send(NamedTuple):
    """One send, from its exchange and connection; times in µs since the epoch."""

    unique_key: str
    """empty: missing in the header, so no other attempt of the message is known"""
    host: str
    group: str | None
    topic: str | None
    client_address: str
    server_address: str
    broker: str
    """broker name, or the server address if unknown"""
    asked_broker: str | None
    """broker name in the request"""
    queue_id: int | None
    opaque: int
    begin: int
    """time of the request"""
    end: int | None
    """time of the response"""
    status: str
    response_code: int | None
    response_name: str | None
    remark: str | None
    how_ended: str | None
    """column `end` of the exchange"""
    language: str | None
    version: int | None
    version_name: str | None
    source: str
    capture: str | None
    conversation: int | None
    request_packet: int | None
    response_packet: int | None
    offset_msg_id: str | None
    lead: int | None
    """µs from the creation time of the UNIQ_KEY to the request; None: unknown"""
    connected: int | None
    """time of the connection's first packet, if it was a SYN"""
    closed: int | None
    """time when the connection ended"""
    ended_by: str | None
    """client or server"""
    whole: bool | None
    """both directions of the connection were captured without gaps; None: unknown"""
    call: bool = False
    """a gRPC call"""
    reset: str | None = None
    """why the stream was reset, and by which side: client or server"""
    said: str | None = None
    """response of a broker behind the proxy, STORED or REFUSED; None: not captured"""
    messages: int = 1
    """number of messages; more than one: a batch"""


class ConnectFailure(NamedTuple):
    """A connection that was never established."""

    host: str
    server: str
    broker: str
    begin: int
    end: int
    refused: bool
    source: str
    capture: str | None
    conversation: int | None


@dataclass(frozen=True, slots=True)
class ObservedAttempt:
    """One attempt to send a message; times in µs since the epoch."""

    send: Send
    """the captured send; for an inferred attempt the next send, with adjusted begin and end"""
    number: int
    """1 for the first known attempt"""
    outcome: str
    """one of OUTCOMES"""
    begin: int
    """start of the attempt: its connect if there was one, else the request"""
    end: int | None
    """when the client knew the outcome, estimated from packets; None: unknown"""
    certain: bool
    """false: the capture is incomplete there"""
    inferred: bool = False
    """only a failed connect was captured, no request"""
    views: int = 1
    """number of captures with this attempt"""

    @property
    def stored(self) -> bool:
        """Whether the broker confirmed that it stored the message."""
        return self.outcome in (STORED, LATE, STORED_UNCONFIRMED)

    def is_after_budget(self, first_begin: int, timeout_us: int) -> bool:
        """Return whether the attempt started after the total timeout; False for gRPC calls."""
        return not self.send.call and self.begin - first_begin > timeout_us

    @property
    def stale_queue(self) -> bool:
        """Whether the request names another broker: the header of an asynchronous retry."""
        asked = self.send.asked_broker
        return (
            not self.inferred
            and bool(asked)
            and ":" not in self.send.broker
            and (asked != self.send.broker)
        )


def attempts_of(
    sends: Iterable[Send],
    failures: Sequence[ConnectFailure] = (),
    timeout_us: int = DEFAULT_TIMEOUT_US,
    timeout_known: bool = True,
) -> list[ObservedAttempt]:
    """Return the attempts of one message, in order; `sends` share its UNIQ_KEY and are not empty.

    `failures` are failed connects of the same host, by `begin`; `timeout_us` is its sendMsgTimeout,
    which is an assumption unless `timeout_known`.
    """
    requests = merged(sends)  # an attempt in two captures counts once
    attempts: list[ObservedAttempt] = []
    for place, (send, views) in enumerate(requests):
        following = requests[place + 1][0] if place + 1 < len(requests) else None
        since = requests[place - 1][0].begin if place else creation_of(send, timeout_us)
        before = requests[place - 1][0] if place else None
        inferred = _inferred(send, since, before, failures)
        attempts.extend(inferred)
        begin = _begin_of(send, since, first=not place and not inferred)
        deadline = _deadline(attempts[0].begin if attempts else begin, begin, timeout_us)
        attempts.append(_attempt(send, views, begin, following, deadline, timeout_known))
    return _numbered(attempts, timeout_us)


def _deadline(created: int, begin: int, timeout_us: int) -> int:
    """Return the deadline of an attempt: shared by all attempts, or one each for 3.x."""
    # an attempt beyond the shared deadline shows that its client has none: it is that of 3.x
    return (created if begin <= created + timeout_us else begin) + timeout_us


def _begin_of(send: Send, since: int | None, first: bool) -> int:
    """Return when the client started: message creation, a connect, or the request."""
    if since is None:
        return send.begin
    if first and send.lead is not None:
        return since  # the UNIQ_KEY is made right before the first attempt
    connected = send.connected
    return connected if connected is not None and since <= connected <= send.begin else send.begin


def creation_of(send: Send, timeout_us: int) -> int | None:
    """Return the creation time of the UNIQ_KEY, at which the first attempt starts.

    None if the key has no time, or one longer ago than a call of `send` can last.
    """
    if send.lead is None or send.lead > timeout_us:
        return None
    # Negative: the client's clock is ahead of that of the capture.
    return send.begin - max(send.lead, 0)


def merged(sends: Iterable[Send]) -> list[tuple[Send, int]]:
    """Return each request once, by time, with the number of its views."""
    seen: dict[tuple[object, ...], list[Send]] = {}
    for send in sends:
        request = (send.client_address, send.server_address, send.opaque)
        # a logged attempt may have no connection, and so no opaque of its own
        seen.setdefault((*request, send.begin) if logged(send) else request, []).append(send)
    best = [(max(same, key=_knows), len(same)) for same in seen.values()]
    return sorted(best, key=lambda view: (view[0].begin, view[0].opaque))


def _knows(send: Send) -> tuple[bool, bool, bool, int, int, int, str, str, int]:
    """Return a sort key that is largest for the most complete view of a request."""
    return (
        send.status == "answered",
        bool(send.whole),
        send.how_ended in ("reset", "closed"),
        # From here on only so that the choice does not depend on the order of the rows.
        -send.begin,
        -(send.end or 0),
        -(send.response_code or 0),
        send.how_ended or "",
        send.capture or "",
        send.request_packet or 0,
    )


def _attempt(
    send: Send, views: int, begin: int, following: Send | None, deadline: int, known: bool
) -> ObservedAttempt:
    outcome = _outcome(send, following)
    seen = bool(send.whole) or send.end is not None or logged(send)
    certain = outcome != UNKNOWN and seen
    # Older clients keep the connection after a timeout, so a late response looks like any other.
    past = send.end is not None and send.end > deadline + GRACE_US and not logged(send)
    if outcome == STORED and past:
        outcome, certain = LATE, known  # the default timeout proves nothing
    return ObservedAttempt(send, 0, outcome, begin, send.end, certain, views=views)


def logged(send: Send) -> bool:
    """Return whether the send was logged by the sender itself: nothing is captured or uncertain.

    See `replay.sending.attempt`: the end of the connection is `open` after a timeout, and
    missing if the request could not be sent.
    """
    return send.request_packet is None and send.response_packet is None


_LOGGED = {"open": TIMED_OUT, "closed": CLOSED, "reset": RESET}


def _outcome(send: Send, following: Send | None) -> str:
    if send.status == "oneway":
        return ONEWAY
    if send.end is not None:
        # a client that retries, or closes the connection, no longer waits for the response
        late = following is not None and send.end > following.begin
        gone = send.ended_by == "client" and send.closed is not None and send.end > send.closed
        if send.response_code not in code_sets.STORED:
            return REFUSED
        return LATE if late or gone else STORED
    if logged(send):
        return _LOGGED.get(send.how_ended or "", NOT_SENT)
    if send.whole is False or send.how_ended not in ("reset", "closed"):
        return UNKNOWN  # the response may be in a gap, or after the capture
    if send.ended_by == "client":
        return TIMED_OUT  # NettyRemotingClient closes the channel then
    return RESET if send.how_ended == "reset" else CLOSED


def _inferred(
    send: Send, since: int | None, before: Send | None, failures: Sequence[ConnectFailure]
) -> list[ObservedAttempt]:
    """Return the failed connects that must have preceded a request.

    Each starts right after the client's previous step: message creation, the end of the last
    attempt, or the previous connect.
    """
    if since is None:
        return []
    inferred: list[ObservedAttempt] = []
    first, last = since - _CLOCK_STEP_US, since + _AT_ONCE_US
    if before is not None:
        # a retry starts when the client knew that the attempt before had failed
        knew = before.end if before.end is not None else before.closed
        last = send.begin if knew is None else max(since, knew) + _AT_ONCE_US
        first = since if knew is None else max(since, knew - ALIKE_US)
    for failure in failures:
        # Other programs of the host connect at any time, so all three conditions are needed.
        fits = first <= failure.begin <= last
        soon = failure.end <= send.begin <= failure.end + SOON_US
        if fits and soon and failure.broker != send.broker:  # a retry avoids the failed broker
            inferred.append(_without_request(send, failure))
            first, last = failure.end, failure.end + _AT_ONCE_US
    return inferred


def _without_request(send: Send, failure: ConnectFailure) -> ObservedAttempt:
    seen = send._replace(
        server_address=failure.server,
        broker=failure.broker,
        begin=failure.begin,
        end=None,
        status="unanswered",
        source=failure.source,
        capture=failure.capture,
        conversation=failure.conversation,
        queue_id=None,
        response_code=None,
        response_name=None,
        remark=None,
        request_packet=None,
        response_packet=None,
        offset_msg_id=None,
    )
    outcome = CONNECT_REFUSED if failure.refused else CONNECT_UNANSWERED
    return ObservedAttempt(
        seen, 0, outcome, failure.begin, failure.end, certain=True, inferred=True
    )


def _numbered(attempts: list[ObservedAttempt], timeout_us: int) -> list[ObservedAttempt]:
    numbered = []
    for place, attempt in enumerate(attempts):
        following = attempts[place + 1] if place + 1 < len(attempts) else None
        deadline = _deadline(attempts[0].begin, attempt.begin, timeout_us)
        end = _known_at(attempt, following, timeout_us, deadline)
        numbered.append(replace(attempt, number=place + 1, end=end))
    return numbered


def _known_at(
    attempt: ObservedAttempt, following: ObservedAttempt | None, timeout_us: int, deadline: int
) -> int | None:
    """Return when the client knew the outcome of an attempt, by its response or else estimated."""
    send = attempt.send
    waited = max(deadline, attempt.begin)
    if attempt.outcome == REFUSED and send.end is not None and not logged(send):
        return min(send.end, waited) if send.end > waited + GRACE_US else send.end
    if attempt.outcome in (STORED, REFUSED, ONEWAY):
        return send.end
    if attempt.inferred:
        return attempt.end
    # A client detects the failure right before it chooses the next queue.
    if following is not None and following.begin - attempt.begin <= timeout_us:
        return following.begin
    # A FIN of the broker: these clients wait for the response until the timeout anyway.
    deaf = attempt.outcome == CLOSED and (send.version or 0) < _SEES_FIN
    if send.closed is not None and attempt.outcome != UNKNOWN and not deaf:
        # The client's own FIN comes after its timeout.
        return min(send.closed, waited)
    return send.begin + timeout_us if following is not None else waited


_LEAST_TIMEOUT_US = 300_000
_ROUND_US = 100_000


def timeout_learnt(messages: Iterable[Sequence[Send]]) -> int | None:
    """Return sendMsgTimeout in µs learned from a client's messages, or None if unknown."""
    waited = sorted(
        send.closed - created
        for send in (same[0] for same in messages if len(same) == 1 and not same[0].call)
        # NettyRemotingClient closes the channel of a synchronous send that timed out.
        if send.status == "unanswered" and send.ended_by == "client" and not logged(send)
        if send.closed is not None
        and (created := creation_of(send, 100 * DEFAULT_TIMEOUT_US)) is not None
        if send.closed - created >= _LEAST_TIMEOUT_US
    )
    # Clients close at the timeout or slightly later: the smallest of several similar times is best.
    for least, following in pairwise(waited):
        if following - least <= ALIKE_US:  # a single time may be that of the client's end
            # people set round timeouts: half seconds first, then tenths
            whole = least // (5 * _ROUND_US) * 5 * _ROUND_US
            if least - whole <= ALIKE_US and whole >= _LEAST_TIMEOUT_US:
                return whole
            return least // _ROUND_US * _ROUND_US if least % _ROUND_US <= GRACE_US else least
    return None
