"""A proxy refuses gRPC calls because it cannot reach the broker, or gets no response from it."""

from __future__ import annotations

import re
from typing import Final

from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...names import counted_names, listed, only
from ...problem import Case, ProblemSeverity, Subject, first_line
from ...refusals import CALL_REFUSALS, Refusals
from ...rule import COVERED, DiagnosisRule, Exchanges

_CONNECT: Final = "the connection attempt failed"
_LOST: Final = "the connection was lost"
_TIMEOUT: Final = "no response in time"
_REASONS: Final = (
    (re.compile(r"connect to <?/?([^\s<>]{1,255})>? failed"), _CONNECT),
    (re.compile(r"send request to <?/?([^\s<>]{1,255})>? failed"), _LOST),
    (re.compile(r"wait response on the channel <?/?([^\s<>]{1,255})>? timeout"), _TIMEOUT),
)
"""RemotingConnectException, RemotingSendRequestException, RemotingTimeoutException"""
_REASON: Final = "reason"
_REMARK: Final = "remark"


def _unreached(row: ExchangeRecord) -> tuple[str, str] | None:
    """Return the address that the proxy did not reach, and the reason; None for other remarks."""
    for pattern, reason in _REASONS:
        match = pattern.search(row.remark or "")
        if match is not None:
            return match[1], reason
    return None


class _Fold(Refusals):
    """Calls that failed because of the broker at one address."""

    def take(self, row: ExchangeRecord) -> None:
        unreached = _unreached(row)
        self.note_name(_REASON, unreached[1] if unreached is not None else None)
        self.note_name(_REMARK, first_line(row.remark or ""))

    def subject(self, context: Context) -> Subject:
        broker = context.broker(self.key)
        return Subject(broker=broker, topic=only(self.topics), group=only(self.groups))

    def title(self, context: Context) -> str:
        name = context.broker(self.key)
        broker = f"{name} ({self.key})" if name != self.key else f"broker {name}"
        proxies = "proxies" if len(self.brokers) > 1 else "proxy"
        why = "; ".join(sorted(self.named(_REASON)))
        return (
            f"{proxies} {listed(self.brokers)} did not reach {broker}: {self.what}{self.of_groups}"
            f" failed ({why})"
        )

    def details(self, context: Context) -> list[str]:
        reasons = counted_names(self.named(_REASON))
        remark = min(self.named(_REMARK), default="")
        return [f"reasons: {reasons}", f"response: {remark}", *super().details(context)]

    def judge(self, case: Case, context: Context) -> None:
        if set(self.named(_REASON)) == {_TIMEOUT}:
            case.advice = _TIMEOUT_ADVICE


def _key(row: ExchangeRecord) -> str | None:
    unreached = _unreached(row)
    return None if unreached is None else unreached[0]


_TIMEOUT_ADVICE: Final = (
    "Find out why the broker did not respond to the proxy in time: look at its load, disk, and"
    " garbage collection at that time, and capture between proxy and broker."
)

RULE = DiagnosisRule(
    id="proxy-cannot-reach-broker",
    severity=ProblemSeverity.ERROR,
    title="A proxy cannot reach a broker",
    searched=(
        "InternalErrorException connect to failed",
        "InternalErrorException RemotingConnectException",
        "InternalErrorException RemotingTimeoutException",
        "ProxyTimeoutException wait response on the channel",
        "cannot find broker",
    ),
    proof=(
        "A gRPC call gets an error whose remark is `connect to … failed`, `send request to …"
        " failed`, or `wait response on the channel … timeout`."
    ),
    explanation=(
        "A proxy forwards each call to a broker over remoting. The broker is down, hangs, or is"
        " unreachable from the proxy, and the proxy returns the exception of its own client."
        " Producers retry; consumers get no messages from this broker until it is back. Later, the"
        " NameServer removes the broker from the routes, and calls fail with TOPIC_NOT_FOUND if no"
        " other broker has the topic."
    ),
    advice=(
        "Start the broker, or find out why the proxy cannot reach it: its address in the route"
        " (brokerIP1), network policy, firewall. A topic with queues on two brokers keeps sends"
        " working meanwhile. (A planned restart needs no action.)"
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses=CALL_REFUSALS),),
    limits="If a send got no response, it is unknown whether its message was stored.",
    consequence_of={"broker-gone", "broker-hung", "packets-unacknowledged"},
)
