"""One end of a connection sends the same packet again and again, as nobody acknowledges it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import Stall, stalls_in
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context
from ...need import Need
from ...outages import named, server_of, speaks_remoting
from ...problem import (
    Case,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    clock,
    connected,
    period,
    seconds,
)
from ...refusals import counted, times
from ...rule import DiagnosisRule, Fold
from ...spells import spells

MAX_STALLS: Final = 4096
FAILS_NS: Final = 3_000_000_000
"""time without packets after which a send fails: the default of sendMsgTimeout"""


class _Stalled(NamedTuple):
    """A stall, and the connection that it was seen on."""

    row: ConversationRecord
    stall: Stall

    def span(self) -> tuple[int, int]:
        """Return the first and the last repetition."""
        return self.stall.first, self.stall.last


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._stalled: list[_Stalled] = []

    def add_connection(self, row: ConversationRecord) -> None:
        self._stalled += [_Stalled(row, one) for one in stalls_in(row)]
        if len(self._stalled) > MAX_STALLS:
            self._stalled.sort(key=_order)
            del self._stalled[MAX_STALLS:]

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the times in which packets were not acknowledged, for each spell."""
        if speaks_remoting(self.key, context):
            now = [_Stalled(row, one) for row in self.unended for one in stalls_in(row)]
            for found in spells([*self._stalled, *now], _Stalled.span, self.lasts):
                yield self._case(found, context)

    def _case(self, found: list[_Stalled], context: Context) -> Case:
        tally = Tally()
        for row, stall in found:
            sender = row.client if stall.sender == tcp.CLIENT else row.server
            what = f"{sender} sent one segment again {times(stall.repeats)}, until"
            tally.add(connected(row, f"{what} {clock(stall.last)} UTC"), last=stall.last)
        known = context.broker(self.key) != self.key
        subject = Subject(broker=context.broker(self.key)) if known else Subject(server=self.key)
        case = tally.case(self._title(found, context), subject)
        case.first_time = min(one.stall.first for one in found)
        case.last_time = max(one.stall.last for one in found)
        case.spans = [one.span() for one in found]
        if all(row.end_time > stall.last for row, stall in found):
            case.state = ProblemState.OVER
        if all(stall.last - stall.first < FAILS_NS for _, stall in found):
            case.severity = ProblemSeverity.WARNING
        clients = sorted({context.client(one.row.client) for one in found})
        case.details = [f"clients: {', '.join(clients[:5])}"]
        return case

    def _title(self, found: list[_Stalled], context: Context) -> str:
        longest = max(found, key=lambda one: (one.stall.last - one.stall.first, _order(one)))
        first, last = longest.span()
        server = named(context, self.key)
        # Where the server's packets are lost its acknowledgements are, and clients repeat theirs.
        of_server = any(one.stall.sender == tcp.SERVER for one in found)
        what = (
            f"what {server} sent to its clients was not acknowledged"
            if of_server
            else f"{server} did not acknowledge what clients sent"
        )
        connections = len({(one.row.capture, one.row.conversation) for one in found})
        again = f", and {times(len(found) - 1)} more" if len(found) > 1 else ""
        return (
            f"{what}, on {counted(connections, 'connection')}, from {period(first, last)}"
            f" UTC ({seconds(last - first)}){again}: one segment was sent again"
            f" {times(longest.stall.repeats)}"
        )


def _order(one: _Stalled) -> tuple[int, int, str, int]:
    return *one.span(), one.row.capture, one.row.conversation


def _key(row: ConversationRecord) -> str | None:
    return server_of(row) if stalls_in(row) else None


RULE = DiagnosisRule(
    id="packets-unacknowledged",
    severity=ProblemSeverity.ERROR,
    title="Packets between clients and a server do not arrive for a while",
    searched=(
        "TCP retransmission timeout rocketmq",
        "RemotingTimeoutException one host only",
        "firewall drops established connection",
        "connection stuck without RST",
    ),
    proof=(
        "One segment of a connection is sent again at least three times, with pauses that grow, and"
        " nothing acknowledges it meanwhile."
    ),
    explanation=(
        "TCP sends a segment again until the other host acknowledges it. The operating system does"
        " that, not the program: a broker that hangs, in a garbage collection for example, still"
        " acknowledges. So the packets, or what acknowledged them, were lost on the way: a firewall"
        " or NAT forgot the connection, a route or a link failed, rules of a network changed. Or"
        " the whole host stood still: without power, or a virtual machine that was paused or moved."
        " Requests wait meanwhile and time out. One that arrived is stored all the same, and its"
        " retry stores it twice."
    ),
    advice=(
        "Capture at both hosts at once: where the packet is missing, the way between is at fault;"
        " where it is there, see why that host does not answer. Look at firewalls and NAT (limits"
        " for idle connections, full tables), links and routes, and at pauses or moves of virtual"
        " machines at that time. The broker's garbage collection is not the cause."
    ),
    fold=_Fold,
    connections=_key,
    takes_pending=True,
    quiet_ends=False,
    limits=(
        "On which part of the way packets are lost is not in the capture. The time begins with the"
        " first repetition, which is 200 ms or more after the packet itself. A connection that"
        " nobody uses meanwhile shows nothing."
    ),
    needs=frozenset((Need.CONNECTIONS,)),
    consequence_of=frozenset(("broker-gone", "namesrv-gone")),
)
