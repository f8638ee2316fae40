"""The network, or an end that does not read, makes requests slow: not the broker's work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.rows.conversation_facts import late_in
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context
from ...need import Need
from ...outages import named, server_of
from ...problem import Case, ProblemSeverity, Subject, Tally, connected, seconds
from ...refusals import MAX_NAMED, counted_names
from ...rule import COVERED, DiagnosisRule, Fold
from .broker_gone import is_broker

LEAST_REPEATED: Final = 10
LEAST_SHARE: Final = 0.01
"""least number, and least share of all, of segments sent again that are felt: each costs 200 ms or
more"""
MOST_SHARE: Final = 0.4
"""more are the same packets captured twice"""
LEAST_ZERO: Final = 3
"""packets that say that there is no room left"""

LEAST_LATE: Final = 3
"""segments of one connection that arrived late; a host that is paused delays one of each"""
TIMES_NORMAL: Final = 5
"""times the round trip of a connection that they took at least"""
_NARROW_ADVICE: Final = (
    "Find the bottleneck between clients and broker: a link or VPN with too little bandwidth, a"
    " traffic limit of a cloud instance or container, other transfers on the same link. Send less:"
    " Java clients compress bodies above compressMsgBodyOverHowmuch (default 4096 bytes)."
)
_SERVER_FULL_ADVICE: Final = (
    "Look in the broker's log of that time why it did not read: threads that are all occupied, a"
    " long garbage collection, a disk that is too slow."
)
_CLIENTS_FULL_ADVICE: Final = (
    "Look for what keeps these clients from reading: a busy processor, garbage collection, or"
    " callbacks that block Netty's threads."
)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._packets = 0
        self._repeated = 0
        self._lossy = Tally()
        self._clients_full = Tally()
        self._server_full = Tally()
        self._clients: Counter[str] = Counter()
        self._late = Tally()
        self._slowest = 0
        """ns that a segment took, at the least"""
        self._trip: int | None = None
        """longest round trip of the handshakes of these connections, µs"""

    def add_connection(self, row: ConversationRecord) -> None:
        self._packets += row.client_packets + row.server_packets
        repeated = row.client_retransmissions + row.server_retransmissions
        self._repeated += repeated
        if repeated:
            what = f"{row.client} to {row.server}: {repeated} segments sent again"
            self._lossy.add(connected(row, what), count=repeated, last=row.end_time)
        self._take_late(row)
        if row.client_zero_windows:
            number = row.client_zero_windows
            what = f"{row.client} says {number} times that it has no room left"
            self._clients_full.add(connected(row, what), count=number, last=row.end_time)
            if row.client in self._clients or len(self._clients) < MAX_NAMED:
                self._clients[row.client] += number
        if row.server_zero_windows:
            number = row.server_zero_windows
            what = f"{row.server} says {number} times that it has no room left"
            self._server_full.add(connected(row, what), count=number, last=row.end_time)

    def _take_late(self, row: ConversationRecord) -> None:
        """Take segments that arrived late though the handshake was quick, or not seen."""
        found = late_in(row)
        count, most = sum(one.number for one in found), max((one.most for one in found), default=0)
        trip = row.rtt_us
        if count < LEAST_LATE or (trip is not None and most < TIMES_NORMAL * trip * 1000):
            return
        moved = f"{(row.client_bytes + row.server_bytes) / 1000:,.0f} kB"
        what = (
            f"{row.client} and {row.server}: {count} segments took up to {seconds(most)} or longer;"
            f" {moved} in {seconds(row.end_time - row.start_time)}"
        )
        self._late.add(connected(row, what), count=count, last=row.end_time)
        self._slowest = max(self._slowest, most)
        if trip is not None:
            self._trip = max(self._trip or 0, trip)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return what is wrong between the ends of a broker's connections; one case."""
        if not is_broker(self.key, context):
            return
        subject = Subject(broker=context.broker(self.key))
        server = named(context, self.key)
        share = self._repeated / self._packets if self._packets else 0.0
        if self._repeated >= LEAST_REPEATED and LEAST_SHARE <= share <= MOST_SHARE:
            yield self._lossy.case(
                f"the network between clients and {server} loses packets: {self._repeated:,} of"
                f" {self._packets:,} segments ({share:.1%}) were sent again",
                subject,
            )
        elif self._late.count:
            quick = f", their round trip was {_ms(self._trip)} at first" if self._trip else ""
            case = self._late.case(
                f"the network between clients and {server} is slow: {self._late.count:,} segments"
                f" took up to {seconds(self._slowest)} or longer to arrive{quick}",
                subject,
            )
            case.advice = _NARROW_ADVICE
            yield case
        elif self._server_full.count >= LEAST_ZERO:
            case = self._server_full.case(
                f"{server} does not read what it is sent: its window was 0 in"
                f" {self._server_full.count:,} packets",
                subject,
            )
            case.advice = _SERVER_FULL_ADVICE
            yield case
        elif self._clients_full.count >= LEAST_ZERO:
            clients = Counter[str]()
            for endpoint, number in self._clients.items():
                clients[context.client(endpoint)] += number
            case = self._clients_full.case(
                f"clients of {server} do not read what it sends: their windows were 0 in"
                f" {self._clients_full.count:,} packets, {counted_names(clients)}",
                subject,
            )
            case.advice = _CLIENTS_FULL_ADVICE
            yield case


def _ms(us: int) -> str:
    return f"{us / 1000:.0f} ms" if us >= 1000 else f"{us} µs"


def _key(row: ConversationRecord) -> str | None:
    odd = (
        row.client_retransmissions
        + row.server_retransmissions
        + row.client_zero_windows
        + row.server_zero_windows
    )
    return server_of(row) if row.commands or odd else None


RULE = DiagnosisRule(
    id="broker-slow-vs-network",
    severity=ProblemSeverity.WARNING,
    title="The network or a slow reader delays requests",
    searched=("send slow network", "TCP retransmission rocketmq", "TCP ZeroWindow rocketmq"),
    proof=(
        "At least one segment in a hundred on a broker's connections is sent again. Or segments"
        " take 50 ms or more to reach the other end, as its acknowledgements show, though the"
        " handshake was quick. Or one end says that it has no room left (window 0)."
    ),
    explanation=(
        "A segment that is lost is sent again after 200 ms or more, and everything behind it on"
        " that connection waits: all requests of a client process share one. Where a link is too"
        " narrow for what is sent, segments wait in a queue before it: the operating system of the"
        " other host acknowledges them late, however quick its program is. A window of 0 says"
        " that a program does not take the bytes: a client that is busy or stopped, or a broker"
        " whose threads are all occupied."
    ),
    advice=(
        "Check the network between clients and broker: links, overload of network interfaces,"
        " limits of cloud instances."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=_key,
    limits=(
        "Which request was held up is not said: rows do not have the times at which its segments"
        " were acknowledged. A network that is only far loses nothing and delays the handshake,"
        " too, so it is not seen here. Packets that were captured twice are not counted."
    ),
    needs=frozenset((Need.CONNECTIONS,)),
    lasts=None,
    consequence_of=frozenset(("broker-hung",)),
)
