"""A consumer group does not exist on the broker."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...problem import ProblemSeverity, Subject
from ...refusals import Refusals, listed, only
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges

_REQUESTS: Final = (
    FETCHES
    | SENDS
    | frozenset(
        (
            int(RequestCode.CONSUMER_SEND_MSG_BACK),
            int(RequestCode.UPDATE_CONSUMER_OFFSET),
            int(RequestCode.NOTIFICATION),
            int(RequestCode.PEEK_MESSAGE),
        )
    )
)
"""What consumers ask; administrators are told themselves."""
_NAMED: Final = re.compile(
    r"subscription group not exist, (\S{1,255})|subscription group \[([^\]]{1,255})\]"
    r"|Group (\S{1,255}) not exist"
)
"""PullMessageProcessor, AbstractSendMessageProcessor, ConsumerManageProcessor"""


def _group(row: ExchangeRecord) -> str:
    found = _NAMED.search(row.remark or "")
    if found is not None:
        return next(name for name in found.groups() if name)
    return row.group or ""


class _Fold(Refusals):
    def subject(self, context: Context) -> Subject:
        return Subject(
            broker=only(context.broker(one) for one in self.brokers),
            topic=only(self.topics),
            group=self.key,
        )

    def title(self, context: Context) -> str:
        brokers = listed(context.broker(one) for one in self.brokers)
        return f"consumer group {self.key} does not exist on {brokers}: {self.what} refused"


RULE = DiagnosisRule(
    id="group-missing",
    severity=ProblemSeverity.ERROR,
    title="A consumer group does not exist on the broker",
    searched=("subscription group not exist", "SUBSCRIPTION_GROUP_NOT_EXIST", "CODE: 26"),
    proof="A consumer's request is answered with code 26 (SUBSCRIPTION_GROUP_NOT_EXIST).",
    explanation=(
        "A broker keeps settings of each consumer group. It makes them when a consumer of a new"
        " group comes, unless it was told not to. Without them it gives the group no messages, and"
        " takes none back."
    ),
    advice=(
        "Create the group on all brokers: mqadmin updateSubGroup -n NAMESRV -c CLUSTER -g GROUP."
        " Check the spelling. autoCreateSubscriptionGroup (broker, default true) lets consumers"
        " make groups."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_group,
            requests=_REQUESTS,
            responses=frozenset((int(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),)),
        ),
    ),
    lasts=None,
)
