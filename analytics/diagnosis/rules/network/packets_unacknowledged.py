"""One end of a connection retransmits the same packet, as it is not acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import (
    IDLE_MS,
    Stall,
    conversation_number_in,
    stalls_in,
)
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ANSWERED, ExchangeRecord

from ...context import Context, Need
from ...keys import by_server, response_times, state_in
from ...names import and_again, first_of, times
from ...outages import LONG_IDLE_MS, is_remoting_server, named, server_of, subject_at
from ...problem import (
    Case,
    ProblemSeverity,
    ProblemState,
    Tally,
    clock,
    connected,
    duration,
    period,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...silences import ResponseTimes
from ...spells import spells
from .idle_close import FORGOTTEN_ADVICE

MAX_STALLS: Final = 4096
FAILS_NS: Final = 3_000_000_000
"""time without packets after which a send fails: the default of sendMsgTimeout"""


FULL: Final = 1_200
"""minimum payload bytes of a segment that may fill the path MTU"""
LEAST_SHORT: Final = 3
"""single-segment requests or responses that arrived, beside those that did not"""
MAX_HOSTS: Final = 1_024
_LARGE_ADVICE: Final = (
    "Compare the MTU of both hosts with that of the path between them (ping -M do -s 1472 HOST),"
    " and lower the MTU of the interface or clamp the MSS (iptables -j TCPMSS --clamp-mss-to-pmtu)."
    " Overlay networks, VPNs, and tunnels take 50 bytes or more of each packet. Let ICMP"
    " 'fragmentation needed' pass, or set net.ipv4.tcp_mtu_probing=1."
)
_PATH_ADVICE: Final = (
    "Capture at both hosts at once: if the packet is missing at the other host, the path between"
    " them is at fault. Check firewalls and NAT (idle timeouts, full tables), links, and routes at"
    " that time. The server's host is not the cause: it responded to others meanwhile."
)


class _Sizes:
    """Bytes of the requests and responses of one client host that arrived."""

    __slots__ = ("largest", "sizes")

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()
        """payloads, rounded up to `_STEP`"""
        self.largest = 0

    def add(self, sizes: Iterable[int]) -> None:
        """Add sizes that arrived."""
        for size, count in Counter(sizes).items():
            self.largest = max(self.largest, size)
            self.sizes[min(size // _STEP + 1, _MOST_STEPS)] += count

    def shorter(self, size: int) -> int:
        """Return how many were certainly shorter than this."""
        return sum(count for steps, count in self.sizes.items() if steps * _STEP <= size)


_STEP: Final = 64
_MOST_STEPS: Final = 1_024


class _Stalled(NamedTuple):
    """A stall, and its connection."""

    row: ConversationRecord
    stall: Stall

    def span(self) -> tuple[int, int]:
        """Return the first and the last retransmission."""
        return self.stall.first, self.stall.last

    @property
    def idle_ms(self) -> int:
        """Idle time before the stall, if long enough for the connection to be dropped."""
        idle = conversation_number_in(self.row.facts, IDLE_MS) or 0
        return idle if idle >= LONG_IDLE_MS else 0


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._stalled: list[_Stalled] = []
        self._response_times = ResponseTimes()
        self._requests: dict[str, _Sizes] = {}
        self._responses: dict[str, _Sizes] = {}

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        self._response_times.add([time for time in response_times(rows) if time is not None])
        host = host_of(rows[0].client_address)
        for kept, sizes in (
            (self._requests, [row.request_bytes or 0 for row in rows]),
            (self._responses, [row.response_bytes or 0 for row in rows]),
        ):
            of_host = state_in(kept, host, _Sizes, MAX_HOSTS)
            if of_host is None:
                continue
            of_host.add(sizes)

    def add_connection(self, row: ConversationRecord) -> None:
        self._stalled += [_Stalled(row, stall) for stall in stalls_in(row)]
        # The earliest stay, whatever the order of rows.
        if len(self._stalled) > MAX_STALLS:
            self._stalled.sort(key=_order)
            del self._stalled[MAX_STALLS:]

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the periods in which packets were not acknowledged, per spell."""
        if is_remoting_server(self.key, context):
            now = [_Stalled(row, stall) for row in self.unended for stall in stalls_in(row)]
            every = [*self._stalled, *now]
            forgotten: list[_Stalled] = []
            others: list[_Stalled] = []
            for stalled in every:
                idle = stalled.idle_ms and self._answered_since([stalled])
                (forgotten if idle else others).append(stalled)
            for found in spells(forgotten, _Stalled.span, self.lasts):
                yield self._forgotten(found, context)
            for found in spells(others, _Stalled.span, self.lasts):
                yield self._case(found, context)

    def _answered_since(self, stalls: list[_Stalled]) -> bool:
        """Return whether the server responded during the wait or later."""
        return self._response_times.after(min(stalled.stall.first for stalled in stalls))

    def _forgotten(self, stalls: list[_Stalled], context: Context) -> Case:
        """Return the case of idle connections that a middlebox dropped silently.

        New connections to the server work.
        """
        case = self._case(stalls, context)
        longest = max(stalled.idle_ms for stalled in stalls) // 1000
        connections = counted(len(stalls), "connection")
        case.rule = "idle-close"
        case.part = "silent"
        case.title = (
            f"packets on {connections} to {named(context, self.key)} are silently lost after"
            f" {longest} s without traffic, although it responds on other connections"
        )
        case.severity = ProblemSeverity.WARNING
        case.doubt("the capture does not show which device forgot the connection")
        case.advice = FORGOTTEN_ADVICE
        return case

    def _case(self, stalls: list[_Stalled], context: Context) -> Case:
        tally = Tally()
        for row, stall in stalls:
            sender = row.client_address if stall.sender == tcp.CLIENT else row.server_address
            what = f"{sender} retransmitted one segment {times(stall.repeats)}, until"
            tally.add(connected(row, f"{what} {clock(stall.last)} UTC"), last=stall.last)
        case = tally.case(self._title(stalls, context), subject_at(context, self.key))
        case.cover([stalled.span() for stalled in stalls])
        # Packets came later on the same connections, if only a FIN or RST.
        if all(row.end_time > stall.last for row, stall in stalls):
            case.state = ProblemState.OVER
        if all(stall.last - stall.first < FAILS_NS for _, stall in stalls):
            case.severity = ProblemSeverity.WARNING
        if self._only_large(stalls):
            case.advice = _LARGE_ADVICE
            case.part = "large"
            if len(stalls) == 1:
                case.doubt("only one segment was lost")
        elif self._answered_meanwhile(stalls):
            case.advice = _PATH_ADVICE
        clients = first_of(context.client(stalled.row.client_address) for stalled in stalls)
        case.details = [f"clients: {clients}"]
        if context.is_proxy(self.key):
            case.details.append("gRPC clients notice a dead connection only by its keepalive")
        if self._answered_meanwhile(stalls):
            case.details.append("it responded to other requests meanwhile: its host did not stall")
        return case

    def _only_large(self, stalls: list[_Stalled]) -> bool:
        """Return whether only full segments were lost: shorter ones of the hosts arrived."""
        sizes = {stall.size for _, stall in stalls}
        # A path MTU cuts one size in one direction; a path that fails loses any size.
        if len({stall.sender for _, stall in stalls}) > 1 or len(sizes) != 1 or min(sizes) < FULL:
            return False
        (size,) = sizes
        for row, stall in stalls:
            kept = self._requests if stall.sender == tcp.CLIENT else self._responses
            arrived = kept.get(host_of(row.client_address))
            # If a larger one arrived, the MTU is not the cause.
            if arrived is None or arrived.largest > size or arrived.shorter(size) < LEAST_SHORT:
                return False
        return True

    def _answered_meanwhile(self, stalls: list[_Stalled]) -> bool:
        """Return whether the server responded to something during each stall."""
        return all(self._response_times.between(stall.first, stall.last) for _, stall in stalls)

    def _title(self, stalls: list[_Stalled], context: Context) -> str:
        longest = max(
            stalls, key=lambda stalled: (stalled.stall.last - stalled.stall.first, _order(stalled))
        )
        first, last = longest.span()
        server = named(context, self.key)
        # If the server's packets are lost, so are its acknowledgements, and clients retransmit.
        of_server = any(stalled.stall.sender == tcp.SERVER for stalled in stalls)
        what = (
            f"clients did not acknowledge data from {server}"
            if of_server
            else f"{server} did not acknowledge data from clients"
        )
        connections = len({(stalled.row.capture, stalled.row.conversation) for stalled in stalls})
        repetitions = and_again(stalls)
        if self._only_large(stalls):
            sender, receiver = (server, "clients") if of_server else ("clients", server)
            return (
                f"full segments ({longest.stall.size:,} bytes) from {sender} do not reach"
                f" {receiver}, shorter ones do: the path MTU is smaller; on"
                f" {counted(connections, 'connection')}, from {period(first, last)} UTC"
                f" ({duration(last - first)}){repetitions}"
            )
        return (
            f"{what}, on {counted(connections, 'connection')}, from {period(first, last)}"
            f" UTC ({duration(last - first)}){repetitions}: one segment was retransmitted"
            f" {times(longest.stall.repeats)}"
        )


def _order(stalled: _Stalled) -> tuple[int, int, str, int]:
    return *stalled.span(), stalled.row.capture, stalled.row.conversation


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
        "One segment is retransmitted at least three times, with growing pauses, and nothing"
        " acknowledges it. If all such segments are full-sized, and only shorter requests and"
        " responses get through, the path MTU is too small."
    ),
    explanation=(
        "TCP resends a segment until the other host acknowledges it. The operating system"
        " acknowledges, not the program: a hung broker, for example during garbage collection,"
        " still acknowledges. So the packets or their acknowledgements were lost on the way: a"
        " firewall or NAT forgot the connection, a route or link failed, or network rules changed."
        " Or the whole host stopped (no power, or a virtual machine that was paused or migrated),"
        " unless it responded to others meanwhile. If only full-sized segments are lost, a device"
        " on the path accepts only smaller packets and does not report it (an overlay network, a"
        " VPN). Requests wait meanwhile and time out. A request that arrived is still stored, and"
        " its retry stores it twice."
    ),
    advice=(
        "Capture at both hosts at once: if the packet is missing at the other host, the path"
        " between them is at fault; otherwise, find out why that host does not acknowledge. Check"
        " firewalls and NAT (idle timeouts, full tables), links and routes, and pauses or"
        " migrations of virtual machines at that time. The broker's garbage collection is not the"
        " cause."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=by_server, statuses={ANSWERED}, of_flow=True),),
    connections=_key,
    takes_pending=True,
    quiet_ends=False,
    limits=(
        "The capture does not show where on the path packets are lost. The time starts with the"
        " first retransmission, 200 ms or more after the packet itself. An unused connection shows"
        " nothing."
    ),
    needs={Need.CONNECTIONS},
    consequence_of={"broker-gone", "namesrv-gone"},
)
