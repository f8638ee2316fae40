"""The network, or an end that does not read, makes requests slow: not the broker's processing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.quantities import counted, plain_duration
from dissectors.rows.conversation_facts import late_in
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context, Need
from ...names import Names, by_client, counted_names, times
from ...outages import named, server_of
from ...problem import Case, ProblemSeverity, Subject, Tally, connected, duration
from ...rule import COVERED, DiagnosisRule, Fold
from .broker_gone import is_broker

LEAST_REPEATED: Final = 10
LEAST_SHARE: Final = 0.01
"""minimum number and share of retransmitted segments that matter: each costs 200 ms or more"""
MOST_SHARE: Final = 0.4
"""a higher share means that packets were captured twice"""
LEAST_ZERO: Final = 3
"""packets that announce a zero window"""

LEAST_LATE: Final = 3
"""segments of one connection that arrived late; a paused host delays one per connection"""
TIMES_NORMAL: Final = 5
"""minimum ratio of their delay to the round trip of the connection"""
_NARROW_ADVICE: Final = (
    "Find the bottleneck between clients and broker: a link or VPN with too little bandwidth, a"
    " traffic limit of a cloud instance or container, other transfers on the same link. Send less:"
    " Java clients compress bodies above compressMsgBodyOverHowmuch (default 4096 bytes)."
)
_SERVER_FULL_ADVICE: Final = (
    "Find out from the broker's log of that time why it did not read: threads that are all"
    " occupied, a long garbage collection, a disk that is too slow."
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
        self._clients = Names()
        self._late = Tally()
        self._slowest = 0
        """minimum ns of a slow segment"""
        self._trip: int | None = None
        """longest round trip of the handshakes of these connections, µs"""

    def add_connection(self, row: ConversationRecord) -> None:
        # Of all connections, also good ones: the share of repeated segments is of their sum.
        self._packets += row.client_packets + row.server_packets
        repeated = row.client_retransmissions + row.server_retransmissions
        self._repeated += repeated
        if repeated:
            ends = f"{row.client_address} to {row.server_address}"
            what = f"{ends}: {counted(repeated, 'segment')} retransmitted"
            self._lossy.add(connected(row, what), count=repeated, last=row.end_time)
        self._take_late(row)
        if row.client_zero_windows:
            number = row.client_zero_windows
            what = f"{row.client_address} reports a full receive buffer {times(number)}"
            self._clients_full.add(connected(row, what), count=number, last=row.end_time)
            self._clients.note(row.client_address, number)
        if row.server_zero_windows:
            number = row.server_zero_windows
            what = f"{row.server_address} reports a full receive buffer {times(number)}"
            self._server_full.add(connected(row, what), count=number, last=row.end_time)

    def _take_late(self, row: ConversationRecord) -> None:
        """Add segments that arrived late although the handshake was quick or not captured."""
        late_segments = late_in(row)
        count, most = (
            sum(late.number for late in late_segments),
            max((late.most for late in late_segments), default=0),
        )
        trip = row.rtt_us
        # A long path delays the handshake as well: only what is slow beside it is a bottleneck.
        if count < LEAST_LATE or (trip is not None and most < TIMES_NORMAL * trip * 1000):
            return
        moved = f"{(row.client_bytes + row.server_bytes) / 1000:,.0f} kB"
        what = (
            f"{row.client_address} and {row.server_address}: {late_text(count, most)}; {moved} in"
            f" {duration(row.end_time - row.start_time)}"
        )
        self._late.add(connected(row, what), count=count, last=row.end_time)
        self._slowest = max(self._slowest, most)
        if trip is not None:
            self._trip = max(self._trip or 0, trip)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case for the connections of a broker."""
        if not is_broker(self.key, context):
            return
        subject = Subject(broker=context.broker(self.key))
        server = named(context, self.key)
        share = self._repeated / self._packets if self._packets else 0.0
        # One cause per broker: lost packets delay segments, too.
        if self._repeated >= LEAST_REPEATED and LEAST_SHARE <= share <= MOST_SHARE:
            yield self._lossy.case(
                f"the network between clients and {server} loses packets: {self._repeated:,} of"
                f" {self._packets:,} segments ({share:.1%}) were retransmitted",
                subject,
            )
        elif self._late.count:
            quick = (
                f"; the round trip was {plain_duration(self._trip)} at first" if self._trip else ""
            )
            case = self._late.case(
                f"the network between clients and {server} is slow:"
                f" {late_text(self._late.count, self._slowest)}{quick}",
                subject,
            )
            case.advice = _NARROW_ADVICE
            yield case
        elif self._server_full.count >= LEAST_ZERO:
            case = self._server_full.case(
                f"{server} does not read from its connections: its window was 0 in"
                f" {self._server_full.count:,} packets",
                subject,
            )
            case.advice = _SERVER_FULL_ADVICE
            yield case
        elif self._clients_full.count >= LEAST_ZERO:
            clients = by_client(self._clients, context)
            case = self._clients_full.case(
                f"clients of {server} do not read from their connections: their windows were 0 in"
                f" {self._clients_full.count:,} packets, {counted_names(clients)}",
                subject,
            )
            case.advice = _CLIENTS_FULL_ADVICE
            yield case


def late_text(count: int, slowest: int) -> str:
    """Return how late segments arrived; the slowest took `slowest` ns or longer."""
    if count == 1:
        return f"1 segment took at least {duration(slowest)} to arrive"
    return f"{count:,} segments took long to arrive, the slowest at least {duration(slowest)}"


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
        "At least one segment in a hundred on a broker's connections is retransmitted. Or segments"
        " take 50 ms or more to reach the other end, as acknowledgements show, although the"
        " handshake was fast. Or one end has no buffer space left (zero window)."
    ),
    explanation=(
        "A lost segment is retransmitted after 200 ms or more, and everything behind it on that"
        " connection waits: all requests of a client process share one connection. If a link is too"
        " slow for the traffic, segments wait in a queue in front of it: the other host"
        " acknowledges them late, however fast its program is. A zero window means that a program"
        " does not read its socket: a busy or paused client, or a broker whose threads are all"
        " occupied."
    ),
    advice=(
        "Check the network between clients and broker: links, overloaded network interfaces, limits"
        " of cloud instances."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=_key,
    limits=(
        "Rows do not have the acknowledgement times of segments, so the delayed requests are not"
        " named. A long network path loses nothing and also delays the handshake, so it is not"
        " reported. Packets that were captured twice are not counted."
    ),
    needs={Need.CONNECTIONS},
    lasts=None,
    consequence_of={"broker-hung", "packets-unacknowledged"},
)
