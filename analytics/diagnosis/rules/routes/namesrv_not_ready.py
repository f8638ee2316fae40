"""A NameServer that was just started gives no routes yet."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode

from ...context import Context
from ...keys import by_responder, with_remark
from ...need import Need
from ...problem import ProblemSeverity, Subject
from ...refusals import Refusals
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges

MARK: Final = "name server not ready"
"""ClientRequestProcessor.getRouteInfoByTopic"""


class _Fold(Refusals):
    def subject(self, context: Context) -> Subject:
        return Subject(server=self.key)

    def title(self, context: Context) -> str:
        lasted = (self.tally.last - self.tally.first) / 1_000_000_000
        over = f" over {lasted:.1f} s" if lasted >= 1 else ""
        return f"NameServer {self.key} gave no routes yet: {self.what} refused{over}"


RULE = DiagnosisRule(
    id="namesrv-not-ready",
    severity=ProblemSeverity.WARNING,
    title="A NameServer that was just started gives no routes yet",
    searched=("name server not ready",),
    proof="A request for a route (105) is answered with code 1 and `name server not ready`.",
    explanation=(
        "After its start a NameServer knows no brokers until they register again, which takes up"
        " to 30 s. One that is set to wait refuses to give routes in that time, so that no client"
        " takes a part of the brokers for all."
    ),
    advice=(
        "Wait until the NameServer is ready: waitSecondsForService (default 45) after its start."
        " Name several NameServers in namesrvAddr, so that clients can use another one."
        " needWaitForService (default false) turns the waiting on."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=with_remark(MARK, key=by_responder),
            requests=frozenset((int(RequestCode.GET_ROUTEINFO_BY_TOPIC),)),
            responses=frozenset((int(ResponseCode.SYSTEM_ERROR),)),
        ),
    ),
    needs=frozenset((Need.ROUTES,)),
)
