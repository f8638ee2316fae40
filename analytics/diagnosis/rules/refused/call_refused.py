"""A proxy refuses calls of gRPC for a reason that no other rule knows."""

from __future__ import annotations

from typing import Final

from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...problem import Case, ProblemSeverity, Subject
from ...refusals import only
from ...rule import DiagnosisRule, Exchanges
from .refused_otherwise import CALLS, RefusedOtherwise, key_of_other

_NO_REFUSALS: Final = frozenset((40401, 40404))
"""MESSAGE_NOT_FOUND, OFFSET_NOT_FOUND: answers that say how things stand."""
_REFUSALS: Final = frozenset((*range(1, 17), *range(40000, 60001))) - _NO_REFUSALS
"""gRPC's own status codes, and those of RocketMQ in gRPC"""
_HEARTBEAT: Final = "Heartbeat"


class _Fold(RefusedOtherwise):
    def subject(self, context: Context) -> Subject:
        if self.requests.keys() == {_HEARTBEAT}:
            return super().subject(context)  # with a broker, the proxy: it follows from no other's
        return Subject(server=only(self.brokers), topic=only(self.topics), group=only(self.groups))

    def judge(self, case: Case, context: Context) -> None:
        super().judge(case, context)
        if self.requests.keys() == {_HEARTBEAT}:
            case.severity = ProblemSeverity.INFO
            case.advice = (
                "Check whether the telemetry streams of these clients hold: the proxy does not know"
                " their settings. (One refusal for a client, after it has signed off or after the"
                " proxy has restarted, needs no action.)"
            )


def _key(row: ExchangeRecord) -> str | None:
    return key_of_other(row) if is_call(row.request_name) else None


RULE = DiagnosisRule(
    id=CALLS,
    severity=ProblemSeverity.ERROR,
    title="A proxy refuses calls of gRPC for a reason that no other rule knows",
    searched=("response-code=", "ClientException", "StatusRuntimeException"),
    proof="A call of gRPC is answered with a status that says that it failed.",
    explanation=(
        "The proxy says by code and remark what it does not like. Where a broker refused what the"
        " proxy asked it for the call, the remark is the broker's, and the cause is its."
    ),
    advice=(
        "Look for the remark in the proxy's log (logs/rocketmqlogs/proxy.log) at that time. rmqtool"
        " codes CODE explains the code. (Where a broker refused the request, fix that problem"
        " instead.)"
    ),
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses=_REFUSALS),),
    limits="What other rules take is theirs, also where they find nothing wrong in it.",
    consequence_of=frozenset(
        (
            "broker-gone",
            "broker-hung",
            "broker-rejects-request",
            "disk-full",
            "group-missing",
            "isr-not-enough",
            "mapped-file-failed",
            "namesrv-gone",
            "no-permission",
            "no-route",
            "not-leader-for-queue",
            "oversize-message",
            "page-cache-busy",
            "page-cache-synchronized",
            "refused-otherwise",
            "send-queue-timeout",
            "sql92-unsupported",
            "thread-pool-overload",
            "timer-illegal",
            "topic-missing-on-broker",
        )
    ),
)
