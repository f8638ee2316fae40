"""Single sends take far longer than this broker normally does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import stalls_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import by_responder, latencies_of
from ...need import Need
from ...outages import named, server_of
from ...problem import Case, ProblemSeverity, Subject, Tally, shown, span_of_exchange
from ...refusals import counted_names
from ...rule import DiagnosisRule, Exchanges, Fold
from ...spells import spells
from .broker_gone import is_broker

SLOW_US: Final = 250_000
"""least time of a slow send; healthy ones take milliseconds"""
ISOLATES_US: Final = 550_000
"""from here on a producer's fault strategy avoids the broker (MQFaultStrategy.latencyMax)"""
TIMES_NORMAL: Final = 10
"""times that a slow send takes longer than the quick ones of its broker"""
QUICK_SHARE: Final = 10
"""one of so many sends counts as quick: also a broker that is slow for long has some"""
FEW: Final = 3
"""fewer slow sends than these count only where one is slow enough to isolate the broker"""
LEAST_SENDS: Final = 8
"""sends from which it is known what quick ones take"""
WARM_UP: Final = 1_000_000_000
"""ns after the begin of a connection in which a first request loads classes"""
MAX_SLOW: Final = 4096
MAX_CONNECTIONS: Final = 4096
NETWORK_SHARE: Final = 20
"""a round trip below this part of the send explains nothing of it"""


class SlowSends(Fold):
    """The sends that one server answered, and which of them were slow."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._latencies: Counter[int] = Counter()
        self._slow: list[ExchangeRecord] = []
        self._connections: dict[tuple[str, int], ConversationRecord] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.add_exchanges((row,))

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        latencies = [one for one in latencies_of(rows) if one is not None]
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
        if len(slow) < FEW and worst < ISOLATES_US:
            return
        tally = Tally.of(
            shown(row, f"{row.request_name} answered after {_ms(row.latency_us or 0)}")
            for row in slow
        )
        case = tally.case(self._title(context, slow, worst, normal), self.subject(context))
        if len(slow) == 1:
            case.severity = ProblemSeverity.INFO
        case.details = self._details(context, slow, worst)
        yield case

    def is_judged(self, context: Context) -> bool:
        """Return whether the server is one of which the rule speaks."""
        return is_broker(self.key, context)

    def name(self, context: Context) -> str:
        """Return the server as a title names it."""
        return named(context, self.key)

    def subject(self, context: Context) -> Subject:
        """Return what the problem is about."""
        return Subject(broker=context.broker(self.key))

    def comes_of(self, slow: Sequence[ExchangeRecord]) -> list[str]:
        """Return what clients do because of these sends."""
        isolating = sum((row.latency_us or 0) >= ISOLATES_US for row in slow)
        if not isolating:
            return []
        return [f"{isolating:,} of them would isolate the broker (550 ms or longer)"]

    def _title(self, context: Context, slow: list[ExchangeRecord], worst: int, normal: int) -> str:
        name, usual = self.name(context), _ms(normal)
        if len(slow) == 1:
            return f"{name} took {_ms(worst)} for one send; its quick ones take less than {usual}"
        least = min(row.latency_us or 0 for row in slow)
        return (
            f"{name} took up to {_ms(worst)} for a send: {len(slow):,} sends took"
            f" {_ms(least)} or longer, its quick ones less than {usual}"
        )

    def _details(self, context: Context, slow: list[ExchangeRecord], worst: int) -> list[str]:
        said = [
            f"topics: {counted_names(Counter(row.topic or '-' for row in slow))}",
            f"clients: {counted_names(Counter(context.client(row.requester) for row in slow))}",
            *self.comes_of(slow),
        ]
        trips = [one.rtt_us for one in self._their_connections(slow) if one.rtt_us is not None]
        repeated = sum(
            one.client_retransmissions + one.server_retransmissions
            for one in self._their_connections(slow)
        )
        if trips and not repeated and max(trips) * NETWORK_SHARE < worst:
            said.append(
                f"the network is not the cause: its round trip is {_ms(max(trips))}, nothing was"
                " sent again"
            )
        return said

    def _their_connections(self, slow: list[ExchangeRecord]) -> list[ConversationRecord]:
        keys = {(row.capture, row.conversation) for row in slow}
        return [self._connections[key] for key in keys if key in self._connections]

    def _quick_us(self) -> int | None:
        """Return the least power of two that the quickest tenth does not exceed, in µs."""
        total = sum(self._latencies.values())
        if total < LEAST_SENDS:
            return None
        seen = 0
        for bits in sorted(self._latencies):
            seen += self._latencies[bits]
            if seen * QUICK_SHARE >= total:
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
        return all(stall.last < begin or end < stall.first for stall in lost)


def _ms(us: int) -> str:
    return f"{us / 1000:.0f} ms" if us >= 1000 else f"{us} µs"


RULE = DiagnosisRule(
    id="broker-slow",
    severity=ProblemSeverity.WARNING,
    title="Some sends take far longer than the broker normally does",
    searched=("send slow", "send message latency", "putMessage in lock cost time", "RT jitter"),
    proof=(
        "Sends that are answered as stored after 250 ms or longer, at least ten times what the"
        " quickest tenth of the broker's sends take: three of them, or one of 550 ms."
    ),
    explanation=(
        "The broker stores a message in a fraction of a millisecond when nothing holds it up. Disk"
        " writes, page cache, a lock of the commit log or garbage collection do. A producer with"
        " sendLatencyFaultEnable avoids a broker that took 550 ms: for 2 s since 5.1.4, for 30 s"
        " before."
    ),
    advice=(
        "Compare the broker's store.log and garbage collection log at those times. Check disk"
        " latency and vm.dirty_* settings; flushDiskType=ASYNC_FLUSH (default) does not wait for"
        " the disk, brokerRole=SYNC_MASTER and SYNC_FLUSH do."
    ),
    grpc="`call-slow` is this rule for proxies.",
    fold=SlowSends,
    exchanges=(
        Exchanges(
            key=by_responder,
            requests=SENDS,
            responses=frozenset((int(ResponseCode.SUCCESS),)),
            of_flow=True,
        ),
    ),
    connections=server_of,
    limits=(
        "A first send on a new connection is left out: the client and the broker load code then. So"
        " is one during which packets were lost on its connection."
        " A broker that is always slow is normal by this measure."
    ),
    needs=frozenset((Need.SENDS,)),
    consequence_of=frozenset(
        (
            "broker-hung",
            "packets-unacknowledged",
            "broker-gone",
            "broker-slow-vs-network",
            "send-queue-timeout",
            "page-cache-busy",
        )
    ),
)
