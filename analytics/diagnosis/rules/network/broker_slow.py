"""Single sends take far longer than is normal for this broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.quantities import plain_duration
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import stalls_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import by_server, latencies_of
from ...names import counted_names
from ...outages import named, server_of
from ...problem import Case, ProblemSeverity, Subject, Tally, shown, span_of_exchange
from ...rule import DiagnosisRule, Exchanges, Fold
from ...spells import spells
from .broker_gone import is_broker

SLOW_US: Final = 250_000
"""minimum latency of a slow send; healthy ones take milliseconds"""
ISOLATES_US: Final = 550_000
"""latency from which a producer's fault strategy avoids the broker (MQFaultStrategy.latencyMax)"""
TIMES_NORMAL: Final = 10
"""ratio of a slow send to the quick ones of its broker"""
QUICK_SHARE: Final = 10
"""one in so many sends counts as quick: even a broker that is slow for long has some"""
FEW: Final = 3
"""fewer slow sends count only if one is slow enough to isolate the broker"""
LEAST_SENDS: Final = 8
"""minimum sends to estimate the quick latency"""
WARM_UP: Final = 1_000_000_000
"""ns after the start of a connection in which a first request loads classes"""
MAX_SLOW: Final = 4096
MAX_CONNECTIONS: Final = 4096
NETWORK_SHARE: Final = 20
"""a round trip below this share of the latency explains nothing"""


class SlowSends(Fold):
    """The sends to which one server responded, and the slow ones among them."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._latencies: Counter[int] = Counter()
        self._slow: list[ExchangeRecord] = []
        self._connections: dict[tuple[str, int], ConversationRecord] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.add_exchanges((row,))

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        latencies = [latency for latency in latencies_of(rows) if latency is not None]
        # Powers of two: a few counters per broker, whatever the number of sends.
        self._latencies.update([latency.bit_length() for latency in latencies])
        if max(latencies, default=0) >= SLOW_US:
            slow = [row for row in rows if (row.latency_us or 0) >= SLOW_US]
            self._slow += slow[: MAX_SLOW - len(self._slow)]

    def add_connection(self, row: ConversationRecord) -> None:
        if row.commands and len(self._connections) < MAX_CONNECTIONS:
            self._connections[row.capture, row.conversation] = row

    def cases(self, context: Context) -> Iterable[Case]:
        if not self._slow or not self.is_judged(context):
            return
        normal = self._quick_us()
        if normal is None:
            return
        every = [row for row in self._slow if self._counts(row, normal)]
        for slow in spells(every, span_of_exchange, self.lasts):
            yield from self._cases_of(slow, normal, context)

    def _cases_of(
        self, slow: list[ExchangeRecord], normal: int, context: Context
    ) -> Iterable[Case]:
        worst = max((row.latency_us or 0 for row in slow), default=0)
        # One or two slow sends matter only if the fault strategy avoids the broker for them.
        if len(slow) < FEW and worst < ISOLATES_US:
            return
        tally = Tally.of(
            shown(row, f"{row.request_name} took {plain_duration(row.latency_us or 0)}")
            for row in slow
        )
        case = tally.case(self._title(context, slow, worst, normal), self.subject(context))
        if len(slow) == 1:
            case.severity = ProblemSeverity.INFO
        case.details = self._details(context, slow, worst)
        yield case

    def is_judged(self, context: Context) -> bool:
        """Return whether the rule covers this server."""
        return is_broker(self.key, context)

    def name(self, context: Context) -> str:
        """Return the server's name for a title."""
        return named(context, self.key)

    def subject(self, context: Context) -> Subject:
        """Return the subject of the problem."""
        return Subject(broker=context.broker(self.key))

    def comes_of(self, slow: Sequence[ExchangeRecord]) -> list[str]:
        """Return the effects of these sends on clients."""
        isolating = sum((row.latency_us or 0) >= ISOLATES_US for row in slow)
        if not isolating:
            return []
        verb = "is" if isolating == 1 else "are"
        return [
            f"{isolating:,} of these sends {verb} slow enough to isolate the broker (550 ms or"
            " longer)"
        ]

    def _title(self, context: Context, slow: list[ExchangeRecord], worst: int, normal: int) -> str:
        name, usual = self.name(context), plain_duration(normal)
        if len(slow) == 1:
            longest = plain_duration(worst)
            return f"{name} took {longest} for one send; the fastest tenth took less than {usual}"
        least = min(row.latency_us or 0 for row in slow)
        return (
            f"{name} took up to {plain_duration(worst)} for a send: {len(slow):,} sends took"
            f" {plain_duration(least)} or longer; the fastest tenth took less than {usual}"
        )

    def _details(self, context: Context, slow: list[ExchangeRecord], worst: int) -> list[str]:
        clients = Counter(context.client(row.client_address) for row in slow)
        lines = [
            f"topics: {counted_names(Counter(row.topic or '-' for row in slow))}",
            f"clients: {counted_names(clients)}",
            *self.comes_of(slow),
        ]
        trips = [
            connection.rtt_us
            for connection in self._their_connections(slow)
            if connection.rtt_us is not None
        ]
        repeated = sum(
            connection.client_retransmissions + connection.server_retransmissions
            for connection in self._their_connections(slow)
        )
        # A retransmission alone costs 200 ms or more, which would explain a slow send.
        if trips and not repeated and max(trips) * NETWORK_SHARE < worst:
            lines.append(
                f"the network is not the cause: its round trip is {plain_duration(max(trips))}, and"
                " no segment was retransmitted"
            )
        return lines

    def _their_connections(self, slow: list[ExchangeRecord]) -> list[ConversationRecord]:
        keys = {(row.capture, row.conversation) for row in slow}
        return [self._connections[key] for key in keys if key in self._connections]

    def _quick_us(self) -> int | None:
        """Return the least power of two in µs that the quickest tenth does not exceed."""
        total = sum(self._latencies.values())
        if total < LEAST_SENDS:
            return None
        seen = 0
        for bits in sorted(self._latencies):
            seen += self._latencies[bits]
            if seen * QUICK_SHARE >= total:
                # A latency with so many bits is below this power of two.
                return int(2**bits)
        return None

    def _counts(self, row: ExchangeRecord, normal: int) -> bool:
        connection = self._connections.get((row.capture, row.conversation))
        fresh = (
            connection is not None
            and connection.start != tcp.MIDSTREAM
            and (row.request_time or 0) - connection.start_time < WARM_UP
        )
        if fresh or (row.latency_us or 0) < TIMES_NORMAL * normal:
            return False
        begin, end = span_of_exchange(row)
        lost = stalls_in(connection) if connection is not None else ()
        # Lost packets delay a send as well: `packets-unacknowledged` reports them.
        return all(stall.last < begin or end < stall.first for stall in lost)


RULE = DiagnosisRule(
    id="broker-slow",
    severity=ProblemSeverity.WARNING,
    title="Some sends take the broker far longer than usual",
    searched=("send slow", "send message latency", "putMessage in lock cost time", "RT jitter"),
    proof=(
        "Three successful sends take 250 ms or longer, or one takes 550 ms or longer. Each takes at"
        " least ten times as long as the fastest tenth of the broker's sends."
    ),
    explanation=(
        "Without obstacles, the broker stores a message in a fraction of a millisecond. Disk"
        " writes, the page cache, a lock of the commit log, or garbage collection slow it down. A"
        " producer with sendLatencyFaultEnable avoids a broker that took 550 ms: for 2 s since"
        " 5.1.4, for 30 s before."
    ),
    advice=(
        "Check the broker's store.log and garbage collection log at those times. Check disk latency"
        " and vm.dirty_* settings. flushDiskType=ASYNC_FLUSH (default) does not wait for the disk;"
        " SYNC_FLUSH does, and brokerRole=SYNC_MASTER waits for a slave (5.x: only if"
        " inSyncReplicas is above 1)."
    ),
    grpc="`call-slow` is this rule for proxies.",
    fold=SlowSends,
    exchanges=(
        Exchanges(key=by_server, requests=SENDS, responses={ResponseCode.SUCCESS}, of_flow=True),
    ),
    connections=server_of,
    limits=(
        "Sends in the first second of a connection are ignored, because client and broker load code"
        " at that time. So is a send during which packets were lost on its connection. A broker"
        " that is always slow counts as normal."
    ),
    needs={Need.SENDS},
    consequence_of={
        "broker-hung",
        "fault-injected",
        "packets-unacknowledged",
        "broker-gone",
        "broker-slow-vs-network",
        "send-queue-timeout",
        "page-cache-busy",
    },
)
