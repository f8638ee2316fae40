"""Message traces are on, and no broker stores them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.code_sets import SENDS, STORED
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.topic_names import DEFAULT_TOPIC, TRACE_TOPIC, is_trace_topic
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import ROUTE
from ...names import Names, by_client, counted_names
from ...problem import Case, ProblemSeverity, Subject, Tally, shown
from ...rule import DiagnosisRule, Exchanges, Fold
from ..refused.acl_signature import reason_of

FEWEST: Final = 2
"""minimum refused route requests: a client requests twice for one send"""
LONGEST: Final = 60_000_000_000
"""ns after which a topic that is created on demand exists: the first trace is sent in seconds"""
SETTLED: Final = 1_000_000_000
"""ns within which the client asks for TBW102 and sends, if the topic is created on demand"""
_RIGHTS_ADVICE: Final = (
    "Give the account of these clients the right to send to the trace topic (mqadmin updateAcl; PUB"
    " in conf/plain_acl.yml of 4.x), or turn traces off in the clients."
)
_MISSING: Final = int(ResponseCode.TOPIC_NOT_EXIST)


class _Fold(Fold):
    """Route requests and sends for one trace topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.routed = False
        """a client got the route of the topic"""
        self.stored = False
        """a trace was stored, or may have been: it has no response"""
        self.unrouted, self.refused = Tally(), Tally()
        self.without_right = False
        self.clients = Names()

    def add_exchange(self, row: ExchangeRecord) -> None:
        code = row.response_code
        if row.request_code != ROUTE and (code is None or code in STORED):
            self.stored = True
            return
        if row.request_code == ROUTE and code != _MISSING:
            self.routed = self.routed or code is not None
            return
        tally = self.unrouted if row.request_code == ROUTE else self.refused
        tally.add(shown(row))
        self.without_right = self.without_right or reason_of(row.remark) is not None
        self.clients.note(row.client_address)

    def cases(self, context: Context) -> Iterable[Case]:
        if self.stored:
            return
        if self.refused.count:
            tally, why = self.refused, f"{counted(self.refused.count, 'trace')} refused"
        # With a route of TBW102, the first trace creates the topic: it may come after the capture.
        elif (
            self.unrouted.count >= FEWEST
            and not self.routed
            and (
                not context.brokers_of(DEFAULT_TOPIC)
                or self.unrouted.last - self.unrouted.first >= LONGEST
            )
        ):
            requests = counted(self.unrouted.count, "route request")
            tally, why = self.unrouted, f"the topic has no route ({requests} refused)"
        else:
            return
        case = tally.case(
            f"message traces to {self.key} are lost: {why}; messages are not affected",
            Subject(topic=self.key),
        )
        case.details.append(f"clients: {counted_names(by_client(self.clients, context))}")
        if tally is self.unrouted and (context.last_time or 0) - tally.first < SETTLED:
            case.doubt("the capture ends before a trace could have created the topic")
        if self.without_right:
            case.advice = _RIGHTS_ADVICE
        yield case


def _key(row: ExchangeRecord) -> str | None:
    topic = row.topic
    return topic if topic is not None and is_trace_topic(topic) else None


RULE = DiagnosisRule(
    id="trace-lost",
    severity=ProblemSeverity.WARNING,
    title="Message traces are on, but no broker stores them",
    searched=(
        f"No route info of this topic: {TRACE_TOPIC}",
        "traceTopicEnable",
        "send trace data failed",
        "message trace not found in dashboard",
    ),
    proof=(
        "Two or more route requests for the trace topic (105) get code 17 (TOPIC_NOT_EXIST), or"
        " sends to it are refused, and no trace is stored."
    ),
    explanation=(
        "With message trace on, clients send a record of each message to a trace topic in the"
        " background. No broker has that topic, or the account lacks the permission, so each record"
        " is dropped after a few attempts. Messages themselves are sent and consumed as usual; the"
        " dashboard shows no trace, and the clients log errors and request the route repeatedly."
    ),
    advice=(
        "Set traceTopicEnable=true (default false) on at least one broker and restart it (brokers"
        " refuse to create this topic by mqadmin). If nobody uses traces, turn them off in the"
        " clients (enableTrace, default false; the constructor's enableMsgTrace before 5.3.0)."
    ),
    grpc="Not covered: gRPC clients send no message traces.",
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests={ROUTE}),
        Exchanges(key=_key, requests=SENDS),
    ),
    references=("apache/rocketmq-externals#563", "alibaba/spring-cloud-alibaba#1513"),
    limits="A trace topic with a custom name is not recognized.",
    needs={Need.ROUTES},
    rests_on_absence=True,
    lasts=None,
    consequence_of={"acl-signature", "no-permission", "topic-missing-on-broker"},
)
