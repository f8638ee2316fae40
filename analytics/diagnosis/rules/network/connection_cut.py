"""A server, or something before it, ends connections on which requests wait, and takes new ones."""

from __future__ import annotations

from collections.abc import Iterable

from dissectors.rows.outcome import LONG_POLLS

from ...context import Context
from ...need import Need
from ...outages import LOSSES, HostLosses, Loss, ServerLosses, host_of_server, named, waiting_of
from ...problem import Case, ProblemSeverity, Subject, Tally, asked
from ...refusals import counted_names, times
from ...rule import DiagnosisRule
from ...spells import spells
from .broker_gone import is_broker


class _Fold(HostLosses):
    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the connections that were cut, for each spell of each broker."""
        for server in self.servers(context):
            cuts = [loss for loss in server.cuts(context) if _tells(loss, context)]
            if is_broker(server.key, context):
                for spell in spells(cuts, _span, self.lasts):
                    yield _case(server, spell, context)


def _span(loss: Loss) -> tuple[int, int]:
    return loss.time, loss.time


def _case(server: ServerLosses, cuts: list[Loss], context: Context) -> Case:
    tally = Tally()
    for loss in cuts:
        tally.add(loss.evidence)
        for row in loss.waiting:
            tally.add(asked(row), count=0)
    waiting = waiting_of(cuts)
    count = sum(waiting.values())
    case = tally.case(
        f"{named(context, server.key)} ended connections {times(len(cuts))} while requests"
        f" waited on them ({count:,} in all), and took new ones afterwards",
        Subject(broker=context.broker(server.key)),
    )
    clients = sorted({context.client(loss.client) for loss in cuts})
    case.details = [
        f"requests without answer: {counted_names(waiting)}",
        f"clients: {', '.join(clients[:5])}",
    ]
    return case


def _tells(loss: Loss, context: Context) -> bool:
    """Return whether a connection was cut for certain.

    A consumer that stops leaves its long polls; where its FIN was not captured, that of the broker
    seems to be the first one.
    """
    if loss.reset:
        return True
    asked_for = any(row.request_name not in LONG_POLLS for row in loss.waiting)
    return asked_for and not context.quality.with_gaps


RULE = DiagnosisRule(
    id="connection-cut",
    severity=ProblemSeverity.WARNING,
    title="Connections to a broker are cut while requests wait",
    searched=(
        "Connection reset by peer",
        "channel not active",
        "RemotingSendRequestException",
        "the channel is closed",
    ),
    proof=(
        "The broker's side sends FIN or RST on a connection with requests that have no response,"
        " and the broker takes another connection afterwards."
    ),
    explanation=(
        "The broker did not die, or not for long: something ended single connections. That is a"
        " firewall, load balancer or relay between the two that gives connections up, a broker that"
        " closes one on which it read something that it cannot decode, or a very short restart."
        " Clients fail the waiting requests at once and connect again; sends among them may be"
        " stored."
    ),
    advice=(
        "Capture on both sides of what is in between: whoever sends the first RST or FIN is the"
        " cause. Look in the broker's log for exceptions of its decoder at that time."
    ),
    grpc="Calls without a response: `call-given-up`. Idle connections to a proxy: `idle-close`.",
    fold=_Fold,
    exchanges=LOSSES,
    connections=host_of_server,
    takes_pending=True,
    needs=frozenset((Need.CONNECTIONS,)),
    rests_on_absence=True,
    consequence_of=frozenset(("idle-close",)),
)
