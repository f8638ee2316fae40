"""Totals of a run, declared once for the run, its processes, the manifest, and the summary.

Values that only the run has (findings by kind), or that take another form (file times), are
declared where they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from ..findings import FindingKind
from ..replication.progress import Replication, first_of

COMMIT_LOG: Final = "commit log"
"""format of a commit log file from a broker's store"""


class CaptureStats(msgspec.Struct):
    """Statistics of one capture file."""

    name: str
    """name as given by the user"""
    format: str = ""
    """pcap, pcapng, or `COMMIT_LOG`; empty: none of these"""
    compression: str | None = None
    packets: int = 0
    bytes: int = 0
    """stored bytes of the file"""
    first_ts: int | None = None
    """time of the first packet, nanoseconds since the epoch"""
    last_ts: int | None = None
    skipped: dict[str, int] = {}
    """packets without a TCP segment, by reason"""


class RunTotals(msgspec.Struct, kw_only=True):
    """Totals over all captures of a run."""

    conversations: int = 0
    """TCP connections seen"""
    rocketmq_conversations: int = 0
    """TCP connections that were decoded"""
    not_decoded: dict[str, int] = {}
    """TCP connections that were not decoded, by protocol"""
    replication_conversations: int = 0
    """TCP connections between a slave and its master; their commit log data is not decoded"""
    replications: list[Replication] = []
    """transfers of these connections, times in nanoseconds since the epoch; at most 4096 entries"""
    frames: int = 0
    """frames found"""
    commands: int = 0
    """commands decoded"""
    gaps: int = 0
    """holes in the streams"""
    gap_bytes: int = 0
    """bytes that the captures do not have"""


TOTALS: Final = RunTotals.__struct_fields__
"""names of the totals"""
_OF_ALL: Final = "conversations"
"""the total that each of several processes counts in full"""
# Annotations are texts here, because of `from __future__ import annotations`.
_SUMS: Final = tuple(
    name for name, kind in RunTotals.__annotations__.items() if kind == "int" and name != _OF_ALL
)


class DecodeStats(RunTotals, kw_only=True):
    """Totals so far."""

    captures: list[CaptureStats] = []
    finding_counts: dict[FindingKind, int] = {}
    packets_reported: int = 0
    """packets read by other processes, until their captures are known"""

    @property
    def packets(self) -> int:
        """Packets read."""
        return max(self.packets_reported, sum(capture.packets for capture in self.captures))

    @property
    def first_time(self) -> int:
        """Time of the first packet in the first non-empty capture, ns since the epoch; 0: no
        packet.
        """
        return next(
            (capture.first_ts for capture in self.captures if capture.first_ts is not None), 0
        )


def totals_of(stats: RunTotals) -> RunTotals:
    """Return only the totals of a larger structure."""
    return RunTotals(**{name: getattr(stats, name) for name in TOTALS})


def set_sums(stats: RunTotals, parts: Sequence[RunTotals]) -> None:
    """Set the totals of a run to the sum over its processes; `parts` must not be empty."""
    for name in _SUMS:
        setattr(stats, name, sum(getattr(part, name) for part in parts))
    stats.conversations = parts[0].conversations
    not_decoded: Counter[str] = Counter()
    for part in parts:
        not_decoded.update(part.not_decoded)
    stats.not_decoded = dict(sorted(not_decoded.items()))
    stats.replications = first_of(
        [replication for part in parts for replication in part.replications]
    )


def increase(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return the increase of each count."""
    return {why: n - before.get(why, 0) for why, n in after.items() if n > before.get(why, 0)}
