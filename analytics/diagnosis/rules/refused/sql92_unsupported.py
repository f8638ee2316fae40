"""A broker does not filter by properties, but a consumer requests it."""

from __future__ import annotations

import re
from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...names import listed
from ...problem import ProblemSeverity
from ...refusals import Refusals, refused_with
from ...rule import REFUSED_CALL, DiagnosisRule

MARK: Final = "does not support consumer to filter message by"
"""ClientManageProcessor.checkClientConfig, PullMessageProcessor"""
_TYPE: Final = re.compile(MARK + r"\s*(\w{1,40})")
_KIND: Final = "type"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        match = _TYPE.search(row.remark or "")
        self.note_name(_KIND, match[1] if match is not None else None)

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        kind = listed(self.named(_KIND)) or "properties"
        return f"{broker} does not filter by {kind}: it refused {self.what}{self.of_groups}"


RULE = DiagnosisRule(
    id="sql92-unsupported",
    severity=ProblemSeverity.ERROR,
    title="The broker does not filter messages by SQL92",
    searched=("The broker does not support consumer to filter message by SQL92", "CODE: 1"),
    proof=(
        "Response code 1 with that remark to a check of the client's configuration (46) or to a"
        " pull."
    ),
    explanation=(
        "A consumer can select messages by their properties, in SQL92. A broker supports this only"
        " if it is turned on. A push consumer checks this before it starts, and fails to start."
    ),
    advice=(
        "Set enablePropertyFilter=true (default false) on all brokers of the topic and restart"
        " them, or subscribe by tags."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=refused_with(MARK, codes=(ResponseCode.SYSTEM_ERROR,)),
    references=(
        "apache/rocketmq#455",
        "apache/rocketmq#310",
        "alibaba/spring-cloud-alibaba#3612",
    ),
    lasts=None,
)
