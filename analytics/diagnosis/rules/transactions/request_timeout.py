"""A request-reply message gets no reply within its time to live."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.code_sets import REPLIES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import CORRELATION, TTL_MS, fact_in
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import WHOLE, keep_least, keep_most
from ...names import listed, only
from ...problem import (
    MS,
    Case,
    Evidence,
    Impact,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    duration,
    time_of,
)
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_REQUESTS: Final = 20_000
_PUSH: Final = int(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)


class _Request(NamedTuple):
    """A message that requests a reply."""

    evidence: Evidence
    """with the time of the last attempt"""
    ttl: int
    """ns that its producer waits"""
    topic: str
    group: str
    client_address: str


class _Fold(Fold):
    """Requests and replies, by their correlation id."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._requests: dict[str, _Request] = {}
        self._pushed: dict[str, int] = {}
        """times at which replies were delivered to the client, ns"""
        self._replied: dict[str, int] = {}
        """times at which consumers sent replies that no broker refused, ns"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        name = fact_in(row.facts, CORRELATION)
        if name is None:
            return
        if row.request_code in REPLIES and row.response_code not in (None, ResponseCode.SUCCESS):
            return  # the broker did not deliver it
        if row.request_code == _PUSH or row.request_code in REPLIES:
            times = self._pushed if row.request_code == _PUSH else self._replied
            keep_least(times, name, time_of(row), MAX_REQUESTS)
            return
        ttl = number_in(row.facts, TTL_MS)
        # No consumer gets a request that is not stored.
        if ttl is None or row.response_code != ResponseCode.SUCCESS:
            return
        request = _Request(
            asked(row, f"request with a TTL of {duration(ttl * MS)}"),
            ttl * MS,
            row.topic or "",
            row.group or "",
            row.client_address,
        )
        # The last attempt: its producer waits from then on.
        keep_most(self._requests, name, request, MAX_REQUESTS)

    def cases(self, context: Context) -> Iterable[Case]:
        by_topic: dict[str, list[tuple[_Request, int | None]]] = {}
        for name, request in self._requests.items():
            deadline = request.evidence.time + request.ttl
            replied = self._pushed.get(name, self._replied.get(name))
            # Until then, the reply may still come.
            if replied is None and deadline <= (context.last_time or 0):
                by_topic.setdefault(request.topic, []).append((request, None))
            elif replied is not None and replied > deadline:
                by_topic.setdefault(request.topic, []).append((request, replied - deadline))
        for topic, found in sorted(by_topic.items()):
            yield _case(topic, found, context)


def _case(topic: str, requests: list[tuple[_Request, int | None]], context: Context) -> Case:
    tally = Tally()
    for request, _ in requests:
        tally.add(request.evidence, last=request.evidence.time + request.ttl)
    late = [request for _, request in requests if request is not None]
    longest = max(request.ttl for request, _ in requests)
    what = (
        f"{counted(len(late), 'reply was', 'replies were')} up to {duration(max(late))} late"
        if late
        else "no reply came at all"
    )
    if late and len(late) < len(requests):
        what += f", {len(requests) - len(late):,} never"
    clients = {context.client(request.client_address) for request, _ in requests}
    case = tally.case(
        f"{counted(len(requests), 'request')} to {topic} got no reply within"
        f" {'its' if len(requests) == 1 else 'their'} TTL ({duration(longest)}): {what}",
        Subject(
            topic=topic, group=only(request.group for request, _ in requests), client=only(clients)
        ),
    )
    case.details = [f"requesters: {listed(clients)}"]
    if not late:
        case.advice = _NEVER
    return case


def _key(row: ExchangeRecord) -> str | None:
    return WHOLE if fact_in(row.facts, CORRELATION) is not None else None


_NEVER: Final = (
    "Check that a consumer of the topic is running, and that it replies with the message that"
    " MessageUtil.createReplyMessage creates from the request. Look for exceptions in its log."
)

RULE = DiagnosisRule(
    id="request-timeout",
    severity=ProblemSeverity.ERROR,
    title="Requests get no reply before their TTL expires",
    searched=(
        "RequestTimeoutException",
        "send request message to <topic> OK, but wait reply message timeout",
        "receive reply message, but not matched any request",
        "request timeout, no reply message",
    ),
    proof=(
        "A message with the properties CORRELATION_ID and TTL is stored, but no reply (326) with"
        " that id reaches the requester before the TTL expires."
    ),
    explanation=(
        "Request-reply uses two messages. The producer sends the request and waits for its TTL. A"
        " consumer of the topic handles it and sends a reply, which the broker pushes to the"
        " producer. Time in the consumer's backlog counts, too. A reply after the TTL is discarded:"
        " the work was done, and the requester got an exception."
    ),
    advice=(
        "Compare the TTL (the timeout argument of request()) with the time that the consumer takes,"
        " including its backlog, and raise the TTL or speed up the consumer. Make the work"
        " idempotent: the requester may ask again."
    ),
    grpc="Not covered: gRPC has no request-reply.",
    impact=Impact.NO_REPLY,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, requests=SENDS | {_PUSH}, with_facts=True),),
    limits=(
        "If the connection of the requester was not captured, a reply that a broker accepted counts"
        " as delivered."
    ),
    rests_on_absence=True,
    consequence_of={
        "reply-undeliverable",
        "client-hung",
        "consumer-lag",
        "consumer-not-pulling",
        "broker-gone",
        "broker-hung",
        "packets-unacknowledged",
    },
)
