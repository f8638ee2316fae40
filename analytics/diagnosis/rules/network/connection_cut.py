"""A server or a middlebox closes connections on which requests wait, and new ones work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.quantities import counted
from dissectors.rows.outcome import LONG_POLLS

from ...context import Context, Need
from ...names import counted_names, first_of, subject_of
from ...outages import (
    LOSSES,
    HostLosses,
    Loss,
    ServerLosses,
    host_of_server,
    named,
    tally_of_losses,
    waiting_of,
)
from ...problem import Case, ProblemSeverity
from ...rule import COVERED, DiagnosisRule
from ...spells import spells
from .broker_gone import is_broker

_WAITING: Final = LONG_POLLS | {"Telemetry"}
"""requests that wait all the time"""


class _Fold(HostLosses):
    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the cut connections, per spell and broker."""
        for server in self.servers(context):
            cuts = [loss for loss in server.cuts(context) if _is_significant(loss, context)]
            if is_broker(server.key, context) or context.is_proxy(server.key):
                for spell in spells(cuts, _span, self.lasts):
                    yield _case(server, spell, context)


def _span(loss: Loss) -> tuple[int, int]:
    return loss.time, loss.time


def _case(server: ServerLosses, cuts: list[Loss], context: Context) -> Case:
    waiting = waiting_of(cuts)
    count = sum(waiting.values())
    case = tally_of_losses(cuts).case(
        f"{named(context, server.key)} closed {counted(len(cuts), 'connection')} while requests"
        f" were pending ({counted(count, 'request')} in total), then accepted new ones",
        subject_of([server.key], context, None, None),
    )
    case.details = [
        f"unanswered requests: {counted_names(waiting)}",
        f"clients: {first_of(context.client(loss.client) for loss in cuts)}",
    ]
    return case


def _is_significant(loss: Loss, context: Context) -> bool:
    """Return whether a connection was certainly cut."""
    # A server that closes in order sends FIN: an RST is a cut, even under a long poll.
    if loss.reset:
        return True
    # A consumer that stops leaves its long polls. If its FIN was not captured, that of the broker
    # seems to be the first one.
    asked_for = any(row.request_name not in _WAITING for row in loss.waiting)
    return asked_for and not context.quality.with_gaps


RULE = DiagnosisRule(
    id="connection-cut",
    severity=ProblemSeverity.WARNING,
    title="Connections to a broker or proxy are cut while requests wait",
    searched=(
        "Connection reset by peer",
        "channel not active",
        "RemotingSendRequestException",
        "the channel is closed",
        "send request to failed",
    ),
    proof=(
        "The broker's or proxy's side sends FIN or RST on a connection with pending requests, and"
        " accepts another connection afterwards."
    ),
    explanation=(
        "Only single connections ended: the server kept running, or was down only briefly. Possible"
        " causes are a firewall, load balancer, or relay that drops connections, a broker that"
        " closes a connection with data it cannot decode, or a very short restart. Clients fail the"
        " pending requests immediately and reconnect; sends among them may be stored."
    ),
    advice=(
        "Capture on both sides of the devices in between: the first one to send RST or FIN is the"
        " cause. Look in the broker's log for decoder exceptions at that time."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=LOSSES,
    connections=host_of_server,
    takes_pending=True,
    needs={Need.CONNECTIONS},
    rests_on_absence=True,
    consequence_of={"idle-close"},
)
