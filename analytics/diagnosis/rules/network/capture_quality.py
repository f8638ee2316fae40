"""The capture is incomplete, so verdicts that rely on missing traffic are less certain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.quantities import counted
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context
from ...problem import Case, ProblemSeverity, Subject, Tally, connected
from ...rule import COVERED, DiagnosisRule, Fold

TWICE_SHARE: Final = 0.4
"""share of repeated segments above which the cause is the capture, not the network"""
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
        self._every.add(connected(row, f"{row.client_address} to {row.server_address}"))
        if not row.commands:
            return
        self.rocketmq += 1
        self.midstream += row.start == tcp.MIDSTREAM
        defects = []
        if row.gaps:
            self.gap_bytes += row.gap_bytes
            defects.append(f"{counted(row.gaps, 'gap')}, {counted(row.gap_bytes, 'byte')}")
        if row.directions != tcp.BOTH:
            defects.append(f"only the {row.directions} was captured")
        if defects:
            self.tally.add(
                connected(
                    row, f"{row.client_address} to {row.server_address}: {', '.join(defects)}"
                )
            )

    def cases(self, context: Context) -> Iterable[Case]:
        """Return one case for the whole capture."""
        reasons = context.quality.reasons()
        # Few packets prove nothing: one retransmission would be a large share of them.
        share = self._repeated / self._packets if self._packets >= LEAST_PACKETS else 0.0
        if share > TWICE_SHARE:
            reasons.append("packets were captured twice")
        if not reasons:
            return
        tally = self.tally if self.tally.count else self._every
        case = tally.case(f"the capture is incomplete: {'; '.join(reasons)}", Subject())
        if self.gap_bytes:
            case.details.append(f"missing bytes: {self.gap_bytes:,}")
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
    title="The capture is incomplete",
    searched=("tcpdump packets dropped by kernel", "TCP previous segment not captured"),
    proof=(
        "Gaps in the streams, connections with only one captured direction, and packets that were"
        " cut or captured twice."
    ),
    explanation=(
        "If packets are missing, a response may have been sent that is not in the capture. Rules"
        " that rely on missing packets lower their confidence, or are skipped."
    ),
    advice=(
        "Capture with `tcpdump -s 0 -B 65536 -w FILE tcp`, on an interface that sees both"
        ' directions, and check "packets dropped by kernel" at its end. Start the capture'
        " before the clients, so that it contains the start of each connection. Filter by host or"
        " port if tcpdump cannot keep up."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=_key,
    lasts=None,
)
