"""A NameServer is unreachable: clients and brokers fail to connect to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...context import Context, Need
from ...names import and_again
from ...outages import LOSSES, HostLosses, Outage, host_of_server
from ...problem import Case, ProblemSeverity, ProblemState, Subject
from ...rule import BEHIND_PROXY, DiagnosisRule
from ...spells import joined
from .broker_gone import (
    describe,
    doubt_end,
    how_gone,
    outages_by_cause,
    symptoms_of,
    was,
)

_OVER_ADVICE: Final = (
    "Find out why the NameServer was not listening at that time: OOM kill, crash, restart. If there"
    " is only one NameServer, add a second one: NameServers need no synchronization. (A NameServer"
    " that was still starting or was restarted on purpose needs no action.)"
)


class _Fold(HostLosses):
    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the periods in which a NameServer was gone, per spell and NameServer."""
        for server in self.servers(context):
            if context.servers.get(server.key) == "namesrv":
                for outages in outages_by_cause(server.outages(context), self.lasts):
                    yield _case(server.key, outages, context)


def _case(address: str, outages: list[Outage], context: Context) -> Case:
    tally = joined(outage.tally() for outage in outages)
    others = sorted(
        other for other, role in context.servers.items() if role == "namesrv" and other != address
    )
    case = tally.case(
        f"NameServer {address} {was(how_gone(outages), outages, context)}"
        f" {outages[0].said(context)}{and_again(outages)}: {symptoms_of(outages)}",
        Subject(server=address),
    )
    describe(case, outages, context)
    # Clients go on to the next NameServer.
    if others or all(outage.starting for outage in outages):
        case.severity = ProblemSeverity.WARNING
    if all(outage.starting for outage in outages):
        doubt_end(case, context)
    if case.state is ProblemState.OVER:
        case.advice = _OVER_ADVICE
    if others:
        case.details.append(f"other NameServers were asked: {', '.join(others[:3])}")
    return case


RULE = DiagnosisRule(
    id="namesrv-gone",
    severity=ProblemSeverity.ERROR,
    title="A NameServer was killed, stopped, or cut off",
    searched=(
        "connect to 9876 failed",
        "Can not connect to NameServer",
        "name server connect failed",
    ),
    proof=(
        "Connection attempts to a NameServer that the same hosts used before are refused or get no"
        " response."
    ),
    explanation=(
        "Clients ask one NameServer at a time for routes, and the next one in their list if it is"
        " unreachable. Meanwhile, they use the routes they have, so sends and pulls continue."
        " Brokers register with every NameServer in their list and log each failure. Only if all of"
        " them are gone do new topics, new clients, and route changes fail."
    ),
    advice=(
        "Restart the NameServer, or remove it from namesrvAddr of clients and brokers. If there is"
        " only one NameServer, add a second one: NameServers need no synchronization."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=LOSSES,
    connections=host_of_server,
    takes_pending=True,
    quiet_ends=False,
    limits=(
        "A NameServer for which only failed connection attempts are captured is not recognized as"
        " one."
    ),
    needs={Need.CONNECTIONS},
)
