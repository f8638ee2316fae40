"""A proxy refuses calls of gRPC for a reason that no other rule knows."""

from __future__ import annotations

from typing import Final

from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...problem import Case, ProblemSeverity, Subject
from ...refusals import CALL_REFUSALS, only
from ...rule import DiagnosisRule, Exchanges
from .refused_otherwise import CALLS, RefusedOtherwise, key_of_other

_REFUSALS: Final = CALL_REFUSALS | frozenset(range(1, 17))
"""gRPC's own status codes, too"""
_HEARTBEAT: Final = "Heartbeat"


class _Fold(RefusedOtherwise):
    def subject(self, context: Context) -> Subject:
        proxy, topic, group = only(self.brokers), only(self.topics), only(self.groups)
        if self.requests.keys() == {_HEARTBEAT}:
            # As a broker, the proxy: it follows from the problems of no other one.
            return Subject(broker=proxy, topic=topic, group=group)
        return Subject(server=proxy, topic=topic, group=group)

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
