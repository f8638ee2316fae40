"""The capture is not whole, so that verdicts that rest on what is absent are less sure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context
from ...problem import Case, ProblemSeverity, Subject, Tally, connected
from ...rule import COVERED, DiagnosisRule, Fold

TWICE_SHARE: Final = 0.4
"""share of segments that were seen before from which on it is not the network's"""
LEAST_PACKETS: Final = 20


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.tally = Tally()
        self.rocketmq = 0
        self.midstream = 0
        self.gap_bytes = 0
        self._packets = 0
        self._repeated = 0
        self._every = Tally()

    def add_connection(self, row: ConversationRecord) -> None:
        self._packets += row.client_packets + row.server_packets
        self._repeated += row.client_retransmissions + row.server_retransmissions
        self._every.add(connected(row, f"{row.client} to {row.server}"))
        if not row.commands:
            return
        self.rocketmq += 1
        self.midstream += row.start == tcp.MIDSTREAM
        what = []
        if row.gaps:
            self.gap_bytes += row.gap_bytes
            what.append(f"{row.gaps} holes, {row.gap_bytes:,} bytes")
        if row.directions != tcp.BOTH:
            what.append(f"only the {row.directions} was captured")
        if what:
            self.tally.add(connected(row, f"{row.client} to {row.server}: {', '.join(what)}"))

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case of the whole capture."""
        reasons = context.quality.reasons()
        share = self._repeated / self._packets if self._packets >= LEAST_PACKETS else 0.0
        if share > TWICE_SHARE:
            reasons.append("packets were captured twice")
        if not reasons:
            return
        tally = self.tally if self.tally.count else self._every
        case = tally.case(f"the capture is not whole: {'; '.join(reasons)}", Subject())
        if self.gap_bytes:
            case.details.append(f"bytes that are missing: {self.gap_bytes:,}")
        if self.midstream:
            case.details.append(
                f"{self.midstream:,} of {self.rocketmq:,} connections began before the capture"
            )
        yield case


def _key(row: ConversationRecord) -> str | None:
    return "*" if row.commands or row.gaps or row.protocol != "no payload" else None


RULE = DiagnosisRule(
    id="capture-quality",
    severity=ProblemSeverity.INFO,
    title="The capture is not whole",
    searched=("tcpdump packets dropped by kernel", "TCP previous segment not captured"),
    proof=(
        "Holes in the streams, connections of which one direction is missing, packets that were cut"
        " or captured twice."
    ),
    explanation=(
        "Where packets are missing, a response that is not seen may have been given. Rules that"
        " conclude from what is absent lower their confidence, or say nothing."
    ),
    advice=(
        "Capture with `tcpdump -s 0 -B 65536 -w FILE tcp`, on an interface that sees both"
        ' directions, and watch "packets dropped by kernel" at its end. Start it before the'
        " clients, so that connections are there from their beginning. Filter by host or port"
        " where it cannot keep up."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=_key,
    lasts=None,
)
