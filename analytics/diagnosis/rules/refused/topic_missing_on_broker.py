"""A broker does not have a topic, and does not make it."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...problem import ProblemSeverity, Subject
from ...refusals import Refusals, counted, listed, only, times
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges
from ...topics import is_own_topic

_REQUESTS: Final = (
    SENDS
    | FETCHES
    | frozenset(
        (
            int(RequestCode.ACK_MESSAGE),
            int(RequestCode.BATCH_ACK_MESSAGE),
            int(RequestCode.CHANGE_MESSAGE_INVISIBLETIME),
            int(RequestCode.NOTIFICATION),
            int(RequestCode.PEEK_MESSAGE),
        )
    )
)
"""What clients ask of a topic; administrators are told themselves."""


class _Fold(Refusals):
    def subject(self, context: Context) -> Subject:
        return Subject(
            broker=only(context.broker(one) for one in self.brokers),
            topic=self.key,
            group=only(self.groups),
        )

    def title(self, context: Context) -> str:
        brokers = listed(context.broker(one) for one in self.brokers)
        many = len({context.broker(one) for one in self.brokers}) > 1
        if self._sends:
            make = f"and {brokers} {'do' if many else 'does'} not make it"
        else:
            make = f"on {brokers}"
        return f"topic {self.key} does not exist {make}: {self.what} refused"

    def details(self, context: Context) -> list[str]:
        said = super().details(context)
        messages, most = self.sent_again()
        if messages:
            said.append(
                f"{counted(messages, 'message')} sent up to {times(most)}, and refused each time:"
                " retries are pointless, only making the topic helps"
            )
        routed = {one.name for one in context.brokers_of(self.key)}
        stale = routed & {context.broker(one) for one in self.brokers}
        if stale:
            said.append(
                f"the route of the topic names {listed(stale)}: the topic was deleted there, or the"
                " route is old"
            )
        return said

    @property
    def _sends(self) -> bool:
        names = {RequestCode(code).name for code in SENDS}
        return any(name in names for name in self.requests)


def _key(row: ExchangeRecord) -> str | None:
    return None if is_own_topic(row.topic) else row.topic


RULE = DiagnosisRule(
    id="topic-missing-on-broker",
    severity=ProblemSeverity.ERROR,
    title="A topic does not exist on the broker that is asked for it",
    searched=("topic[X] not exist, apply first please!", "CODE: 17 DESC: topic not exist"),
    proof="A send, pull or acknowledgement is answered with code 17 (TOPIC_NOT_EXIST).",
    explanation=(
        "A producer that finds no route of a topic takes the route of TBW102 and sends to one of"
        " its brokers, which is expected to make the topic. This broker may not"
        " (autoCreateTopicEnable is off there), so it refuses. Or the topic was deleted while"
        " clients still have its route. Producers try again after code 17, at any broker of that"
        " route, and get the same response."
    ),
    advice=(
        "Create the topic: mqadmin updateTopic -n NAMESRV -c CLUSTER -t TOPIC. Check the spelling"
        " and the namespace. autoCreateTopicEnable (broker, default true) lets producers make"
        " topics; production mostly has it off."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key,
            requests=_REQUESTS,
            responses=frozenset((int(ResponseCode.TOPIC_NOT_EXIST),)),
        ),
    ),
    references=("apache/rocketmq#2042", "apache/rocketmq#2090"),
    consequence_of=frozenset(("inconsistent-route", "broker-name-twice", "topic-deleted")),
    lasts=None,
)
