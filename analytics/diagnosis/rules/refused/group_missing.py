"""A consumer group does not exist on the broker."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dissectors.grpc.names import CODES, TELEMETRY
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import CLIENT_TYPE, fact_in
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import PROXY, Context
from ...names import listed, only
from ...problem import Case, ProblemSeverity, Subject
from ...refusals import Refusals
from ...rule import COVERED, DiagnosisRule, Exchanges

_REQUESTS: Final = (
    FETCHES
    | SENDS
    | {
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.NOTIFICATION,
        RequestCode.PEEK_MESSAGE,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG,
    }
)
"""requests of consumers, and of a proxy for them; administrators see the response themselves"""
_NAMED: Final = re.compile(
    r"subscription group not exist, (\S{1,255})|subscription group \[([^\]]{1,255})\]"
    r"|Group (\S{1,255}) not exist"
)
"""PullMessageProcessor, AbstractSendMessageProcessor, ConsumerManageProcessor"""


def _group(row: ExchangeRecord) -> str:
    match = _NAMED.search(row.remark or "")
    if match is not None:
        return next(name for name in match.groups() if name)
    return row.group or ""


_SETTINGS: Final = int(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG)
"""requests of a proxy before it responds to the settings of a consumer"""


class _Fold(Refusals):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._wanted = False
        """groups with consumer requests, not only settings queries"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        self._wanted = self._wanted or row.request_code != _SETTINGS
        # A settings request without a response is no refusal: it only proves a waiting consumer.
        if row.request_name != TELEMETRY:
            super().add_exchange(row)

    def cases(self, context: Context) -> Iterable[Case]:
        # administrators query settings, too
        if self._wanted or PROXY in context.servers.values():
            yield from super().cases(context)

    def subject(self, context: Context) -> Subject:
        return Subject(
            broker=only(map(context.broker, self.brokers)),
            topic=only(self.topics),
            group=self.key,
        )

    def title(self, context: Context) -> str:
        brokers = listed(map(context.refuser, self.brokers))
        return f"consumer group {self.key} does not exist on {brokers}: {self.what} refused"

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        if RequestCode(_SETTINGS).name in self.requests:
            lines.append(
                "a proxy asked for the group's settings: without them, a 5.5 proxy refuses the"
                " settings of gRPC consumers, which then cannot start"
            )
        return lines


def _registered(row: ExchangeRecord) -> str | None:
    of_client = row.request_name == TELEMETRY and fact_in(row.facts, CLIENT_TYPE) is not None
    return row.group if of_client else None


RULE = DiagnosisRule(
    id="group-missing",
    severity=ProblemSeverity.ERROR,
    title="A consumer group does not exist on the broker",
    searched=(
        "subscription group not exist",
        "SUBSCRIPTION_GROUP_NOT_EXIST",
        "CODE: 26",
        "subscription group [X] does not exist",
    ),
    proof=(
        "Response code 26 (SUBSCRIPTION_GROUP_NOT_EXIST) to a consumer's request, or to a proxy's"
        " request for the settings of its group (352); with gRPC, CONSUMER_GROUP_NOT_FOUND (40403)."
    ),
    explanation=(
        "A broker has settings for each consumer group. By default, it creates them when the first"
        " consumer of a group connects. Without them, it delivers no messages to the group and"
        " accepts no returned ones."
    ),
    advice=(
        "Create the group on all brokers: mqadmin updateSubGroup -n NAMESRV -c CLUSTER -g GROUP."
        " Check the spelling. autoCreateSubscriptionGroup (broker, default true) lets consumers"
        " create groups."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_group, requests=_REQUESTS, responses={ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST}
        ),
        Exchanges(key=_group, responses={CODES["CONSUMER_GROUP_NOT_FOUND"]}),
        Exchanges(key=_registered, statuses={UNANSWERED}, with_facts=True),
    ),
    lasts=None,
)
