"""A proxy refuses gRPC calls for a reason that no other rule knows."""

from __future__ import annotations

from typing import Final

from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...names import only
from ...problem import Case, ProblemSeverity, Subject
from ...refusals import CALL_REFUSALS
from ...rule import COVERED, GRPC_FAILURES, DiagnosisRule, Exchanges
from .refused_otherwise import CALLS, REMARK, RefusedOtherwise, key_of_other

_REFUSALS: Final = CALL_REFUSALS | GRPC_FAILURES
_NO_GROUP: Final = "group not found"
"""GroupNotFoundException of a proxy"""
_HEARTBEAT: Final = "Heartbeat"
_TOO_LARGE: Final = (
    "Send smaller messages, or raise maxMessageSize (default 4194304 bytes) in rmq-proxy.json and"
    " in broker.conf."
)
_OTHER_GENERATION: Final = (
    "Use a proxy and brokers of the client's generation, or avoid features that they do not"
    " support."
)
ADVICE: Final = {
    "TOPIC_NOT_FOUND": (
        "Create the topic (mqadmin updateTopic -c CLUSTER -t TOPIC), or correct its name in the"
        " client. A proxy creates no topics."
    ),
    "CONSUMER_GROUP_NOT_FOUND": (
        "Create the group (mqadmin updateSubGroup -c CLUSTER -g GROUP), or correct its name in the"
        " client."
    ),
    "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE": (
        "Give the topic the type of its messages (mqadmin updateTopic -a +message.type=NORMAL,"
        " FIFO, DELAY, or TRANSACTION; repeat the topic's -r, -w, and -p, or they are reset), or"
        " send messages of another type to another topic."
    ),
    "MESSAGE_BODY_TOO_LARGE": _TOO_LARGE,
    "PAYLOAD_TOO_LARGE": _TOO_LARGE,
    "MESSAGE_PROPERTIES_TOO_LARGE": (
        "Use fewer and shorter properties, or raise maxUserPropertySize (default 16384 bytes) and"
        " userPropertyMaxNum (default 128) in rmq-proxy.json."
    ),
    "ILLEGAL_DELIVERY_TIME": (
        "Use an earlier delivery time, or raise maxDelayTimeMills (default 1 day) in"
        " rmq-proxy.json and timerMaxDelaySec (default 3 days) in broker.conf."
    ),
    "ILLEGAL_INVISIBLE_TIME": (
        "Use an invisible duration between minInvisibleTimeMillsForRecv (default 10 s) and"
        " maxInvisibleTimeMills (default 12 h) of rmq-proxy.json."
    ),
    "PROXY_TIMEOUT": (
        "Find out why the broker did not respond to the proxy in time: check the broker's log for"
        " that time, and capture between proxy and broker."
    ),
    "NOT_IMPLEMENTED": _OTHER_GENERATION,
    "UNSUPPORTED": _OTHER_GENERATION,
    "VERSION_UNSUPPORTED": _OTHER_GENERATION,
}
"""code name -> advice"""


class _Fold(RefusedOtherwise):
    def subject(self, context: Context) -> Subject:
        proxy, topic, group = only(self.brokers), only(self.topics), only(self.groups)
        if self.requests.keys() == {_HEARTBEAT}:
            # The proxy as broker: it is not a consequence of any other problem.
            return Subject(broker=proxy, topic=topic, group=group)
        return Subject(server=proxy, topic=topic, group=group)

    def judge(self, case: Case, context: Context) -> None:
        super().judge(case, context)
        # One per key, as `NAME (number)`.
        (code, _, _) = min(self.named("code"), default="").partition(" ")
        # A proxy since 5.5 ends the telemetry stream with a status of gRPC.
        if any(_NO_GROUP in remark for remark in self.named(REMARK)):
            code = "CONSUMER_GROUP_NOT_FOUND"
        case.advice = ADVICE.get(code)
        if self.requests.keys() == {_HEARTBEAT}:
            case.severity = ProblemSeverity.INFO
            case.advice = (
                "Check whether the telemetry streams of these clients stay open: the proxy does not"
                " know their settings. (One refusal per client after it unregistered, or after a"
                " proxy restart, needs no action.)"
            )


def _key(row: ExchangeRecord) -> str | None:
    return key_of_other(row) if is_call(row.request_name) else None


RULE = DiagnosisRule(
    id=CALLS,
    severity=ProblemSeverity.ERROR,
    title="A proxy refuses gRPC calls for a reason that no other rule covers",
    searched=(
        "response-code=",
        "ClientException",
        "StatusRuntimeException",
        "BadRequestException",
        "ForbiddenException",
        "InternalErrorException",
        "NotFoundException",
        "PayloadTooLargeException",
        "ProxyTimeoutException",
        "TooManyRequestsException",
        "UnauthorizedException",
        "UnsupportedException",
        "Failed to send heartbeat",
        "too many unacked messages",
        "cannot find client settings for this client",
        "group not found",
        "the invisibleTime is too small",
        "TopicMessageType validate failed, the expected type is",
        "Current message type not match with topic accept message types",
        "cannot access system topic",
        "the total size of user property is too large",
        "ack failed: status is abnormal",
    ),
    proof="A gRPC call gets a status that means failure.",
    explanation=(
        "The code and remark say what the proxy objects to. If a broker refused the proxy's request"
        " for the call, the remark is the broker's, and so is the cause."
    ),
    advice=(
        "Look for the remark in the proxy's log (logs/rocketmqlogs/proxy.log) at that time. rmqtool"
        " codes CODE explains the code. (If a broker refused the request, fix that problem"
        " instead.)"
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses=_REFUSALS),),
    limits=(
        "Responses that another rule covers are left to that rule, even if it reports no problem."
    ),
    consequence_of={
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
        "proxy-cannot-reach-broker",
        "refused-otherwise",
        "send-queue-timeout",
        "sql92-unsupported",
        "thread-pool-overload",
        "timer-illegal",
        "topic-missing-on-broker",
    },
)
