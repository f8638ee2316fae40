"""A request for a reply gets none before its time to live is over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.remoting.code_sets import REPLIES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import CORRELATION, TTL_MS, fact_in
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import WHOLE
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, asked, seconds, time_of
from ...refusals import counted, listed, only
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_REQUESTS: Final = 20_000
_PUSH: Final = int(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)
_MS: Final = 1_000_000


class _Request(NamedTuple):
    """A message that asks for a reply."""

    evidence: Evidence
    """its time is that of the last attempt"""
    ttl: int
    """ns that its producer waits"""
    topic: str
    group: str
    requester: str


class _Fold(Fold):
    """Requests and replies, by the id that joins them."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._requests: dict[str, _Request] = {}
        self._pushed: dict[str, int] = {}
        """when replies were passed on to the requester, ns"""
        self._replied: dict[str, int] = {}
        """when consumers sent replies that a broker took, ns"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        name = fact_in(row.facts, CORRELATION)
        if name is None:
            return
        if row.request_code == _PUSH or row.request_code in REPLIES:
            times = self._pushed if row.request_code == _PUSH else self._replied
            before = times.get(name)
            if before is not None or len(times) < MAX_REQUESTS:
                times[name] = time_of(row) if before is None else min(before, time_of(row))
            return
        ttl = number_in(row.facts, TTL_MS)
        if ttl is None or row.response_code != ResponseCode.SUCCESS:
            return
        one = _Request(
            asked(row, f"request with a TTL of {seconds(ttl * _MS)}"),
            ttl * _MS,
            row.topic or "",
            row.group or "",
            row.requester,
        )
        known = self._requests.get(name)
        if known is not None or len(self._requests) < MAX_REQUESTS:
            self._requests[name] = one if known is None else max(known, one)

    def cases(self, context: Context) -> Iterable[Case]:
        by_topic: dict[str, list[tuple[_Request, int | None]]] = {}
        for name, request in self._requests.items():
            deadline = request.evidence.time + request.ttl
            replied = self._pushed.get(name, self._replied.get(name))
            if replied is None and deadline <= (context.last_time or 0):
                by_topic.setdefault(request.topic, []).append((request, None))
            elif replied is not None and replied > deadline:
                by_topic.setdefault(request.topic, []).append((request, replied - deadline))
        for topic, found in sorted(by_topic.items()):
            yield _case(topic, found, context)


def _case(topic: str, found: list[tuple[_Request, int | None]], context: Context) -> Case:
    tally = Tally()
    for request, _ in found:
        tally.add(request.evidence, last=request.evidence.time + request.ttl)
    late = [one for _, one in found if one is not None]
    longest = max(request.ttl for request, _ in found)
    what = (
        f"{counted(len(late), 'reply was', 'replies were')} up to {seconds(max(late))} late"
        if late
        else "no reply came at all"
    )
    if late and len(late) < len(found):
        what += f", {len(found) - len(late):,} never"
    clients = {context.client(request.requester) for request, _ in found}
    case = tally.case(
        f"{counted(len(found), 'request')} to {topic} got no reply within"
        f" {'its' if len(found) == 1 else 'their'} TTL ({seconds(longest)}): {what}",
        Subject(topic=topic, group=only(one.group for one, _ in found), client=only(clients)),
    )
    case.details = [f"clients that asked: {listed(clients)}"]
    if not late:
        case.advice = _NEVER
    return case


def _key(row: ExchangeRecord) -> str | None:
    return WHOLE if fact_in(row.facts, CORRELATION) is not None else None


_NEVER: Final = (
    "Check that a consumer of the topic runs, and that it replies: it sends what"
    " MessageUtil.createReplyMessage makes of the request. Look for exceptions in its log."
)

RULE = DiagnosisRule(
    id="request-timeout",
    severity=ProblemSeverity.ERROR,
    title="Requests get no reply before their TTL is over",
    searched=(
        "RequestTimeoutException",
        "send request message to <topic> OK, but wait reply message timeout",
        "receive reply message, but not matched any request",
    ),
    proof=(
        "A stored message with the properties CORRELATION_ID and TTL, and no reply (326) with the"
        " same id for the requester until the TTL is over."
    ),
    explanation=(
        "Request-reply uses two messages. The producer sends the request and waits for its TTL. A"
        " consumer of the topic handles it and sends a reply, which the broker pushes to the"
        " producer. The backlog of the consumer counts, too. A reply after the TTL is thrown"
        " away: the work was done, and the requester got an exception."
    ),
    advice=(
        "Compare the TTL (the timeout argument of request()) with the time that the consumer takes,"
        " backlog included, and raise the one or lower the other. Make the work idempotent: the"
        " requester may ask again."
    ),
    grpc="gRPC has no request-reply.",
    fold=_Fold,
    exchanges=(Exchanges(key=_key, requests=SENDS | frozenset((_PUSH,)), with_facts=True),),
    limits=(
        "A reply that a broker took counts as passed on, where the connection of the requester was"
        " not captured."
    ),
    rests_on_absence=True,
    consequence_of=frozenset(
        (
            "reply-undeliverable",
            "client-hung",
            "consumer-lag",
            "consumer-not-pulling",
            "broker-gone",
            "broker-hung",
            "packets-unacknowledged",
        )
    ),
)
