"""A NameServer that has just started returns no routes yet."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode

from ...context import Context, Need
from ...keys import by_server, with_remark
from ...problem import ProblemSeverity, Subject, duration
from ...refusals import Refusals
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges

MARK: Final = "name server not ready"
"""ClientRequestProcessor.getRouteInfoByTopic"""


class _Fold(Refusals):
    def subject(self, context: Context) -> Subject:
        return Subject(server=self.key)

    def title(self, context: Context) -> str:
        lasted = self.tally.last - self.tally.first
        over = f" over {duration(lasted)}" if lasted >= 1_000_000_000 else ""
        return f"NameServer {self.key} returned no routes yet: {self.what} refused{over}"


RULE = DiagnosisRule(
    id="namesrv-not-ready",
    severity=ProblemSeverity.WARNING,
    title="A NameServer that was just started returns no routes yet",
    searched=("name server not ready",),
    proof="Response code 1 with `name server not ready` to a route request (105).",
    explanation=(
        "After its start, a NameServer knows no brokers until they register again, which takes up"
        " to 30 s. If configured to wait, it refuses route requests during that time, so that no"
        " client takes an incomplete route for a complete one."
    ),
    advice=(
        "Wait until the NameServer is ready: waitSecondsForService (default 45) after its start."
        " List several NameServers in namesrvAddr, so that clients can use another one."
        " needWaitForService (default false) turns the waiting on."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=with_remark(MARK, key=by_server),
            requests={RequestCode.GET_ROUTEINFO_BY_TOPIC},
            responses={ResponseCode.SYSTEM_ERROR},
        ),
    ),
    needs={Need.ROUTES},
)
