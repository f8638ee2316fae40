"""Clients use the VIP channel, two ports below the broker's, and cannot reach it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import endpoint_text, host_of, split_endpoint
from dissectors.ports import VIP_BELOW
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context, Need
from ...names import first_of
from ...outages import failed_connects, surely_unanswered
from ...problem import Case, ProblemSeverity, Subject
from ...rule import BEHIND_PROXY, DiagnosisRule, Fold

MAX_EVENTS: Final = 4096
NEAR: Final = 60_000_000_000
"""ns: the broker's main port must work at a failed connect, or within this time"""


class _Fold(Fold):
    """Connections to one host."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._failed: dict[int, list[ConversationRecord]] = {}
        self._worked: dict[int, list[tuple[int, int]]] = {}
        self._events = 0

    def add_connection(self, row: ConversationRecord) -> None:
        place = split_endpoint(row.server_address)
        if place is None or self._events >= MAX_EVENTS:
            return
        self._events += 1
        if row.end in tcp.NEVER_OPENED:
            self._failed.setdefault(place[1], []).append(row)
        elif row.server_bytes:
            self._worked.setdefault(place[1], []).append((row.start_time, row.end_time))

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case per broker of the host whose VIP port does not work."""
        worked = dict(self._worked)
        for row in self.unended:
            place = split_endpoint(row.server_address)
            if place is not None and row.server_bytes:
                span = row.start_time, row.end_time
                worked[place[1]] = [*worked.get(place[1], []), span]
        for port, failed in sorted(self._failed.items()):
            main = endpoint_text(self.key, port + VIP_BELOW)
            name = context.names.get(main)
            # Only two below a known broker, and not where another broker itself listens.
            if name is None or endpoint_text(self.key, port) in context.names:
                continue
            if port in worked:
                continue  # the VIP port works at times: the broker was gone
            works = worked.get(port + VIP_BELOW, [])
            proven = [
                row
                for row in failed
                if _near(row.start_time, works) and surely_unanswered(row, context)
            ]
            if not proven:
                continue
            tally = failed_connects(proven)
            case = tally.case(
                f"port {port} of {name} cannot be reached, while its port {port + VIP_BELOW} works:"
                " clients with vipChannelEnabled send there",
                Subject(broker=name),
            )
            hosts = first_of(host_of(row.client_address) for row in proven)
            case.details = [f"failed connection attempts from: {hosts}"]
            yield case


def _near(time: int, spans: list[tuple[int, int]]) -> bool:
    return any(begin - NEAR <= time <= end for begin, end in spans)


def _key(row: ConversationRecord) -> str | None:
    failed = row.end in tcp.NEVER_OPENED
    return host_of(row.server_address) if failed or (row.commands and row.server_bytes) else None


RULE = DiagnosisRule(
    id="vip-port-unreachable",
    severity=ProblemSeverity.ERROR,
    title="Clients cannot reach the VIP channel, two ports below the broker's port",
    searched=("connect to 10909 failed", "RemotingConnectException 10909", "vipChannelEnabled"),
    proof=(
        "All connection attempts to the port two below a broker's port are refused or get no"
        " response, while the broker's own port works."
    ),
    explanation=(
        "A broker listens on a second port, two below its own (10909 for 10911), for requests that"
        " must not wait behind others. Clients with vipChannelEnabled send most requests there."
        " Firewalls and container port lists often include only the main port."
    ),
    advice=(
        "Open the port, or turn the VIP channel off: producer.setVipChannelEnabled(false), or"
        " -Dcom.rocketmq.sendMessageWithVIPChannel=false. The default is true in clients up to"
        " 4.5.0 and false later. The port itself is fastListenPort = listenPort - 2."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    connections=_key,
    takes_pending=True,
    references=("apache/rocketmq#568", "apache/rocketmq#1510", "apache/rocketmq#3889"),
    limits="A route, a registration, or a request must name the broker's address.",
    needs={Need.CONNECTIONS, Need.HANDSHAKES},
    consequence_of={"broker-gone"},
    lasts=None,
)
