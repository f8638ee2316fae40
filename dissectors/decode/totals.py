"""The totals of a run: declared once for the run, its processes, the manifest and the summary.

What only the run itself knows (findings by kind) and what is written in another form (the files'
times) stands beside them where it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from ..expert import ExpertKind
from ..replication.progress import Replication, first_of


class CaptureStats(msgspec.Struct):
    """What was read of one capture file."""

    name: str
    """as the user named it"""
    format: str = ""
    """pcap or pcapng; empty: it is not a capture"""
    compression: str | None = None
    packets: int = 0
    bytes: int = 0
    """bytes of the file as it is stored"""
    first_ts: int | None = None
    """time of the first packet, nanoseconds since the epoch"""
    last_ts: int | None = None
    skipped: dict[str, int] = {}
    """why packets gave no TCP segment, and how many"""


class RunTotals(msgspec.Struct, kw_only=True):
    """What was found in all captures of a run."""

    conversations: int = 0
    """TCP connections seen"""
    rocketmq_conversations: int = 0
    """those that were decoded"""
    not_decoded: dict[str, int] = {}
    """those that were not, by protocol"""
    replication_conversations: int = 0
    """those between a slave and its master, of which the commit log is not decoded"""
    replications: list[Replication] = []
    """what they transferred, times in nanoseconds since the epoch; at most 4096 are listed"""
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
_SUMS: Final = tuple(
    name for name, kind in RunTotals.__annotations__.items() if kind == "int" and name != _OF_ALL
)


class DecodeStats(RunTotals, kw_only=True):
    """What was found so far."""

    captures: list[CaptureStats] = []
    expert_counts: dict[ExpertKind, int] = {}
    packets_told: int = 0
    """packets that other processes have read, until they tell of which captures"""

    @property
    def packets(self) -> int:
        """Packets that were read."""
        return max(self.packets_told, sum(one.packets for one in self.captures))

    @property
    def first_time(self) -> int:
        """Time of the first packet of the first capture that has one, nanoseconds since the epoch;
        0: no packet was seen."""
        return next((one.first_ts for one in self.captures if one.first_ts is not None), 0)


def totals_of(stats: RunTotals) -> RunTotals:
    """Return the totals alone, of whatever has them among other things."""
    return RunTotals(**{name: getattr(stats, name) for name in TOTALS})


def set_sums(stats: RunTotals, parts: Sequence[RunTotals]) -> None:
    """Set the totals of a run to those of its processes together; `parts` has at least one."""
    for name in _SUMS:
        setattr(stats, name, sum(getattr(part, name) for part in parts))
    stats.conversations = parts[0].conversations
    not_decoded: Counter[str] = Counter()
    for part in parts:
        not_decoded.update(part.not_decoded)
    stats.not_decoded = dict(sorted(not_decoded.items()))
    stats.replications = first_of([found for part in parts for found in part.replications])


def increase(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return by how much counts have grown."""
    return {why: n - before.get(why, 0) for why, n in after.items() if n > before.get(why, 0)}
