"""A broker does not have a topic, and does not create it."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.outcome import is_send
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import says, user_topic
from ...names import listed, only
from ...problem import ProblemSeverity, Subject
from ...refusals import CALL_REFUSALS, Refusals, whole_of_sends
from ...rule import COVERED, DiagnosisRule, Exchanges

_REQUESTS: Final = (
    SENDS
    | FETCHES
    | {
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.NOTIFICATION,
        RequestCode.PEEK_MESSAGE,
    }
)
"""client requests for a topic; administrators see the response themselves"""
_MARK: Final = "not exist, apply first please"
"""AbstractSendMessageProcessor.msgCheck; a proxy passes it on"""


class _Fold(Refusals):
    def subject(self, context: Context) -> Subject:
        return Subject(
            broker=only(map(context.broker, self.brokers)),
            topic=self.key,
            group=only(self.groups),
        )

    def title(self, context: Context) -> str:
        brokers = listed(map(context.refuser, self.brokers))
        many = len({context.broker(address) for address in self.brokers}) > 1
        if self._sends:
            make = f", and {brokers} {'do' if many else 'does'} not create it"
        else:
            make = f" on {brokers}"
        return f"topic {self.key} does not exist{make}: {self.what} refused"

    def details(self, context: Context) -> list[str]:
        pointless = ", and refused each time: retries are pointless, only creating the topic helps"
        lines = [*super().details(context), *self.again_lines(context, "sent", pointless)]
        routed = {broker.name for broker in context.brokers_of(self.key)}
        stale = routed & {context.broker(address) for address in self.brokers}
        if stale:
            lines.append(
                f"the route of the topic names {listed(stale)}: the topic was deleted there, or the"
                " route is old"
            )
        return lines

    @property
    def _sends(self) -> bool:
        return any(map(is_send, self.requests))


def _key_of_call(row: ExchangeRecord) -> str | None:
    refused = says(row, _MARK) and whole_of_sends(row) is not None
    return user_topic(row) if refused else None


RULE = DiagnosisRule(
    id="topic-missing-on-broker",
    severity=ProblemSeverity.ERROR,
    title="A broker does not have the topic that a client uses",
    searched=("topic[X] not exist, apply first please!", "CODE: 17 DESC: topic not exist"),
    proof="Response code 17 (TOPIC_NOT_EXIST) to a send, pull, or acknowledgement.",
    explanation=(
        "A producer that finds no route for a topic uses the route of TBW102, the template for new"
        " topics. It sends to one of its brokers, which should then create the topic. This broker"
        " does not (autoCreateTopicEnable is off), so it refuses. Or the topic was deleted while"
        " clients still had its route. Producers retry after code 17 at any broker of that route,"
        " and get the same response."
    ),
    advice=(
        "Create the topic: mqadmin updateTopic -n NAMESRV -c CLUSTER -t TOPIC. Check the spelling"
        " and the namespace. autoCreateTopicEnable (broker, default true) lets producers create"
        " topics; it is usually off in production."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        # System topics are created when they are first needed.
        Exchanges(key=user_topic, requests=_REQUESTS, responses={ResponseCode.TOPIC_NOT_EXIST}),
        Exchanges(key=_key_of_call, responses=CALL_REFUSALS),
    ),
    references=("apache/rocketmq#2042", "apache/rocketmq#2090"),
    consequence_of={"inconsistent-route", "broker-name-twice", "topic-deleted"},
    lasts=None,
)
