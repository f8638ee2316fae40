"""A NameServer cannot be reached: clients and brokers fail to connect to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...context import Context
from ...need import Need
from ...outages import LOSSES, HostLosses, Outage, host_of_server, merged
from ...problem import Case, ProblemSeverity, ProblemState, Subject
from ...refusals import times
from ...rule import BEHIND_PROXY, DiagnosisRule
from .broker_gone import (
    doubt_end,
    doubt_untried,
    how_gone,
    leads_within,
    outage_details,
    outages_by_cause,
    state_of,
    was,
    what_happened,
)

_OVER_ADVICE: Final = (
    "Find out why it was not listening at that time: OOM kill, crash, restart. With one NameServer"
    " alone, add a second: they need no synchronisation. (A NameServer that was still starting or"
    " was restarted on purpose needs no action.)"
)


class _Fold(HostLosses):
    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the times in which a NameServer was gone, for each spell of each."""
        for server in self.servers(context):
            if context.servers.get(server.key) == "namesrv":
                for outages in outages_by_cause(server.outages(context), self.lasts):
                    yield _case(server.key, outages, context)


def _case(address: str, outages: list[Outage], context: Context) -> Case:
    tally = merged(outages)
    again = f", and {times(len(outages) - 1)} more" if len(outages) > 1 else ""
    others = sorted(
        other for other, role in context.servers.items() if role == "namesrv" and other != address
    )
    case = tally.case(
        f"NameServer {address} {was(how_gone(outages), outages, context)}"
        f" {outages[0].said(context)}{again}: {what_happened(outages)}",
        Subject(server=address),
    )
    case.spans = [one.span() for one in outages]
    case.state = state_of(outages)
    case.leads_within = leads_within(outages)
    case.part = how_gone(outages)
    case.details = outage_details(context, outages)
    doubt_untried(case, outages)
    if others or all(one.starting for one in outages):
        case.severity = ProblemSeverity.WARNING
    if all(one.starting for one in outages):
        doubt_end(case, context)
    if case.state is ProblemState.OVER:
        case.advice = _OVER_ADVICE
    if others:
        case.details.append(f"other NameServers were asked: {', '.join(others[:3])}")
    return case


RULE = DiagnosisRule(
    id="namesrv-gone",
    severity=ProblemSeverity.ERROR,
    title="A NameServer was killed, stopped or cut off",
    searched=(
        "connect to 9876 failed",
        "No name server address",
        "Can not connect to NameServer",
        "name server connect failed",
    ),
    proof=(
        "Connects to a NameServer that was used before, by the same hosts, are refused or not"
        " answered."
    ),
    explanation=(
        "Clients ask one NameServer at a time for routes, and the next one in their list when it"
        " cannot be reached. Meanwhile they use the routes that they have, so sends and pulls go"
        " on. Brokers register with every NameServer of their list and note each failure. Only with"
        " all of them gone do new topics, new clients and changes of routes fail."
    ),
    advice=(
        "Restart it, or take it out of namesrvAddr of clients and brokers. With one NameServer"
        " alone, add a second: they need no synchronisation."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=LOSSES,
    connections=host_of_server,
    takes_pending=True,
    quiet_ends=False,
    limits="A NameServer of which only failed connects are in the capture is not known as one.",
    needs=frozenset((Need.CONNECTIONS,)),
)
