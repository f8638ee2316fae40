"""A broker holds back no further pops: too many wait already."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode

from ...context import Context
from ...keys import by_responder
from ...need import Need
from ...problem import ProblemSeverity
from ...refusals import Refusals, only, times
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges

POLLS: Final = frozenset(
    (int(RequestCode.POP_MESSAGE), int(RequestCode.POP_LITE_MESSAGE), int(RequestCode.NOTIFICATION))
)
"""requests for which 209 means so; for ACL requests of older releases it means something else"""


class _Fold(Refusals):
    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        group, topic = only(self.groups), only(self.topics)
        of = f" of {group} for {topic}" if group and topic else ""
        return (
            f"{broker} sent pops{of} away {times(self.tally.count)}: too many wait for messages"
            " already"
        )


RULE = DiagnosisRule(
    id="pop-polling-full",
    severity=ProblemSeverity.WARNING,
    title="The broker holds no further pops because too many wait already",
    searched=("POLLING_FULL", "pop consumer polling full"),
    proof="Response code 209 (POLLING_FULL) to a pop (200050, 200070) or a NOTIFICATION (200054).",
    explanation=(
        "A pop that finds no message waits at the broker until one comes. The broker keeps only so"
        " many waiting ones for a group, topic and queue, and in all. Further ones are answered at"
        " once, and the client asks again at once: the broker and the network are busy with"
        " nothing. Messages are not lost."
    ),
    advice=(
        "Pop with fewer clients or threads at a time, or with longer waits between empty pops."
        " popPollingSize has the default 1024 for a group, topic and queue, maxPopPollingSize"
        " 100000 in all."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=by_responder,
            requests=POLLS,
            responses=frozenset((int(ResponseCode.POLLING_FULL),)),
        ),
    ),
    references=(
        "apache/rocketmq#3787",
        "apache/rocketmq#4153",
        "apache/rocketmq#8332",
        "apache/rocketmq#4815",
    ),
    limits="A NOTIFICATION may say so in a field of a good answer, which is not looked at.",
    needs=frozenset((Need.PULLS,)),
)
