"""A broker accepts no further waiting pops: too many wait already."""

from __future__ import annotations

from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode

from ...context import Context, Need
from ...keys import by_server
from ...names import only
from ...problem import ProblemSeverity
from ...refusals import Refusals
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges

POLLS: Final = frozenset(
    (int(RequestCode.POP_MESSAGE), int(RequestCode.POP_LITE_MESSAGE), int(RequestCode.NOTIFICATION))
)
"""requests for which 209 has this meaning; for ACL requests of older releases it has another one"""


class _Fold(Refusals):
    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        group, topic = only(self.groups), only(self.topics)
        of = f" of {group} for {topic}" if group and topic else ""
        return (
            f"{broker} rejected {counted(self.tally.count, 'pop')}{of}: too many already wait for"
            " messages"
        )


RULE = DiagnosisRule(
    id="pop-polling-full",
    severity=ProblemSeverity.WARNING,
    title="The broker rejects pops because too many already wait",
    searched=("POLLING_FULL", "pop consumer polling full"),
    proof="Response code 209 (POLLING_FULL) to a pop (200050, 200070) or a NOTIFICATION (200054).",
    explanation=(
        "A pop that finds no message waits at the broker until one arrives. The broker limits the"
        " waiting pops, per group, topic, and queue, and in total. It responds to further ones"
        " immediately. A Java consumer asks again after pullTimeDelayMillsWhenException (default"
        " 1 s), so messages arrive later. Messages are not lost."
    ),
    advice=(
        "Pop with fewer clients or threads at a time, or with longer waits between empty pops."
        " popPollingSize defaults to 1024 per group, topic, and queue, maxPopPollingSize to 100000"
        " in total."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(Exchanges(key=by_server, requests=POLLS, responses={ResponseCode.POLLING_FULL}),),
    references=(
        "apache/rocketmq#3787",
        "apache/rocketmq#4153",
        "apache/rocketmq#8332",
        "apache/rocketmq#4815",
    ),
    limits=(
        "A successful response to NOTIFICATION may report it in a field that the"
        " rule does not read."
    ),
    needs={Need.PULLS},
)
