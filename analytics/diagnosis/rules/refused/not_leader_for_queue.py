"""A queue of a static topic has moved to another broker."""

from __future__ import annotations

from dissectors.remoting.codes import ResponseCode

from ...context import Context
from ...keys import by_topic
from ...names import listed, only
from ...problem import ProblemSeverity, Subject
from ...refusals import Refusals
from ...rule import PROXY_CHOOSES, DiagnosisRule, Exchanges


class _Fold(Refusals):
    def subject(self, context: Context) -> Subject:
        return Subject(
            broker=only(map(context.broker, self.brokers)),
            topic=self.key or None,
            group=only(self.groups),
        )

    def title(self, context: Context) -> str:
        brokers = listed(map(context.broker, self.brokers))
        of = f" of topic {self.key}" if self.key else ""
        return f"{brokers} refused {self.what}{of}: the queue is at another broker now"


RULE = DiagnosisRule(
    id="not-leader-for-queue",
    severity=ProblemSeverity.WARNING,
    title="A queue of a static topic has moved to another broker",
    searched=("NOT_LEADER_FOR_QUEUE", "does not exit in request process of current broker"),
    proof="Response code 501 (NOT_LEADER_FOR_QUEUE).",
    explanation=(
        "The queues of a static topic have their own ids and can move between brokers. The client"
        " sent the request to the previous broker of the queue. It finds the new one with its next"
        " route."
    ),
    advice=(
        "Check that clients get new routes (pollNameServerInterval, default 30 s) and that the"
        " mapping is the same on all brokers (mqadmin remappingStaticTopic). (A few refusals right"
        " after queues were moved are normal.)"
    ),
    grpc=PROXY_CHOOSES,
    fold=_Fold,
    exchanges=(Exchanges(key=by_topic, responses={ResponseCode.NOT_LEADER_FOR_QUEUE}),),
)
