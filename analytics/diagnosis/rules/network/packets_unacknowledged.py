"""One end of a connection sends the same packet again and again, as nobody acknowledges it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import Stall, stalls_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ANSWERED, ExchangeRecord

from ...context import Context
from ...keys import answer_times, by_responder
from ...need import Need
from ...outages import named, server_of, speaks_remoting
from ...problem import (
    Case,
    Confidence,
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
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...silences import AnswerTimes
from ...spells import spells

MAX_STALLS: Final = 4096
FAILS_NS: Final = 3_000_000_000
"""time without packets after which a send fails: the default of sendMsgTimeout"""


FULL: Final = 1_200
"""payload bytes of a segment that may be as long as the path's MTU allows, at the least"""
LEAST_SHORT: Final = 3
"""requests or responses that fit in one segment and arrived, beside those that did not"""
MAX_HOSTS: Final = 1_024
_LARGE_ADVICE: Final = (
    "Compare the MTU of both hosts with that of the way between them (ping -M do -s 1472 HOST), and"
    " lower the MTU of the interface or clamp the MSS (iptables -j TCPMSS --clamp-mss-to-pmtu)."
    " Overlay networks, VPNs and tunnels take 50 bytes or more of each packet. Let ICMP"
    " 'fragmentation needed' pass, or set net.ipv4.tcp_mtu_probing=1."
)
_PATH_ADVICE: Final = (
    "Capture at both hosts at once: where the packet is missing, the way between is at fault. Look"
    " at firewalls and NAT (limits for idle connections, full tables), links and routes at that"
    " time. The server's host is not the cause: it answered others meanwhile."
)


class _Sizes:
    """Bytes of the requests and responses of one client host that arrived."""

    __slots__ = ("largest", "sizes")

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()
        """payloads, rounded up to `_STEP`"""
        self.largest = 0

    def add(self, sizes: Iterable[int]) -> None:
        """Note what arrived."""
        for size, count in Counter(sizes).items():
            self.largest = max(self.largest, size)
            self.sizes[min(size // _STEP + 1, _MOST_STEPS)] += count

    def shorter(self, size: int) -> int:
        """Return how many were shorter than this, surely."""
        return sum(count for steps, count in self.sizes.items() if steps * _STEP <= size)


_STEP: Final = 64
_MOST_STEPS: Final = 1_024


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
        self._answers = AnswerTimes()
        self._requests: dict[str, _Sizes] = {}
        self._responses: dict[str, _Sizes] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.add_exchanges((row,))

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        self._answers.add([time for time in answer_times(rows) if time is not None])
        host = host_of(rows[0].requester)
        for kept, sizes in (
            (self._requests, [row.request_bytes or 0 for row in rows]),
            (self._responses, [row.response_bytes or 0 for row in rows]),
        ):
            of_host = kept.get(host)
            if of_host is None:
                if len(kept) >= MAX_HOSTS:
                    continue
                of_host = kept[host] = _Sizes()
            of_host.add(sizes)

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
        if self._only_large(found):
            case.advice = _LARGE_ADVICE
            case.part = "large"
            if len(found) == 1:
                case.confidence = Confidence.LIKELY
                case.reason = "one segment only was lost"
        elif self._answered_meanwhile(found):
            case.advice = _PATH_ADVICE
        clients = sorted({context.client(one.row.client) for one in found})
        case.details = [f"clients: {', '.join(clients[:5])}"]
        if context.is_proxy(self.key):
            case.details.append("clients of gRPC notice a dead connection by its keepalive only")
        if self._answered_meanwhile(found):
            case.details.append("it answered other requests meanwhile: its host did not stall")
        return case

    def _only_large(self, found: list[_Stalled]) -> bool:
        """Return whether full segments only were lost: shorter ones of the hosts arrived."""
        sizes = {stall.size for _, stall in found}
        if len({stall.sender for _, stall in found}) > 1 or len(sizes) != 1 or min(sizes) < FULL:
            return False
        (size,) = sizes
        for row, stall in found:
            kept = self._requests if stall.sender == tcp.CLIENT else self._responses
            arrived = kept.get(host_of(row.client))
            if arrived is None or arrived.largest > size or arrived.shorter(size) < LEAST_SHORT:
                return False
        return True

    def _answered_meanwhile(self, found: list[_Stalled]) -> bool:
        """Return whether the server answered something during each stall."""
        return all(self._answers.between(stall.first, stall.last) for _, stall in found)

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
        if self._only_large(found):
            sender, receiver = (server, "clients") if of_server else ("clients", server)
            return (
                f"full segments ({longest.stall.size:,} bytes) of {sender} do not reach {receiver},"
                f" shorter ones do: the path MTU is smaller; on"
                f" {counted(connections, 'connection')}, from {period(first, last)} UTC"
                f" ({seconds(last - first)}){again}"
            )
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
        " nothing acknowledges it meanwhile. Where all of them are full segments of one size, and"
        " shorter requests or responses of the same hosts arrive but none that is longer, the path"
        " MTU is too small."
    ),
    explanation=(
        "TCP sends a segment again until the other host acknowledges it. The operating system does"
        " that, not the program: a broker that hangs, in a garbage collection for example, still"
        " acknowledges. So the packets, or what acknowledged them, were lost on the way: a firewall"
        " or NAT forgot the connection, a route or a link failed, rules of a network changed. Or"
        " the whole host stood still, unless it answered others meanwhile: without power, or a"
        " virtual machine that was paused or moved. Where full segments only are lost, something on"
        " the way takes smaller packets only and does not say so (an overlay network, a VPN)."
        " Requests wait meanwhile and time out. One that arrived is stored anyway, and its retry"
        " stores it twice."
    ),
    advice=(
        "Capture at both hosts at once: where the packet is missing, the way between is at fault;"
        " where it is there, see why that host does not answer. Look at firewalls and NAT (limits"
        " for idle connections, full tables), links and routes, and at pauses or moves of virtual"
        " machines at that time. The broker's garbage collection is not the cause."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=by_responder, statuses=frozenset((ANSWERED,)), of_flow=True),),
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
