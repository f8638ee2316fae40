"""Fold of one queue in order of offsets: covered, skipped, and out-of-order records.

Commits of all groups come first, so each record can be judged at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dissectors.rows.message_record import BEFORE, DELIVERED, STORED, THIS

from .items import ASKED, SeenMessage, is_own
from .known import Known
from .message_fold import without_inner_hops
from .sums import Sums

MAX_GROUPS: Final = 1024
"""most groups of one queue"""


class _Group(msgspec.Struct, gc=False):
    """Position of a group in the queue."""

    lowest: int
    """lowest known offset"""
    highest: int
    """committed offset: all records before it are covered"""
    latest: dict[str, int] = {}
    """member (empty unless broadcasting) -> time of its latest first delivery, ns"""


class QueueFold:
    """Folds the rows of one queue: commits, then records by offset."""

    def __init__(self, topic: str, known: Known, sums: Sums) -> None:
        self._topic = topic
        self._known = known
        self._sums = sums
        self._groups: dict[str, _Group] = {}
        self._offset = -1
        self._rows: list[SeenMessage] = []

    def add(self, row: SeenMessage) -> None:
        """Add a row."""
        offset = row.queue_offset
        group = row.consumer_group
        if offset is None:
            return
        if row.covers == BEFORE:
            if group is not None:
                # a fetch shows where the group began, but commits nothing
                self._place(group, offset, 0 if row.event == ASKED else offset)
                if row.event != ASKED and not is_own(self._topic):
                    self._sums.group(row.origin, group).commits += 1
            return
        if offset != self._offset:  # rows come by offset: the record before is complete
            self.finish()
            self._offset = offset
        self._rows.append(row)

    def finish(self) -> None:
        """Judge the last record."""
        rows, self._rows = without_inner_hops(self._rows, self._known), []
        if not rows:
            return
        # a delivery from a retry topic may know the original topic, another row may not
        origin = next((row.origin for row in rows if not is_own(row.origin)), rows[0].origin)
        for group in dict.fromkeys(row.consumer_group for row in rows):
            if group is not None:
                group_rows = [row for row in rows if row.consumer_group == group]
                self._delivered(group, origin, group_rows)
        if not is_own(self._topic):
            self._passed(origin, rows)

    def _place(self, group: str, offset: int, committed: int) -> None:
        position = self._groups.get(group)
        if position is not None:
            position.lowest = min(position.lowest, offset)
            position.highest = max(position.highest, committed)
        elif len(self._groups) < MAX_GROUPS:
            self._groups[group] = _Group(offset, committed)

    def _delivered(self, group: str, origin: str, rows: Iterable[SeenMessage]) -> None:
        sums = self._sums.group(origin, group)
        position = self._groups.get(group)
        if position is None and len(self._groups) < MAX_GROUPS:
            position = self._groups[group] = _Group(self._offset, 0)
        firsts: dict[str, int] = {}
        acknowledged = False
        for row in rows:
            if row.event == DELIVERED:
                member = ""
                if group in self._known.context.broadcasting:  # each member gets each record
                    member = row.client_id or row.client_address
                firsts.setdefault(member, row.time)
            elif row.covers == THIS:
                acknowledged = True
                sums.commits += 1
        sums.records += len(firsts)
        # Beyond MAX_GROUPS, its records are counted, but nothing tells whether they are covered.
        if position is None:
            return
        position.lowest = min(position.lowest, self._offset)
        sums.commits += position.highest > 0  # it says of each record whether it is covered
        if acknowledged or self._offset < position.highest:
            sums.covered += len(firsts)
        if is_own(self._topic):
            return
        for member, time in firsts.items():
            # rows come by offset, so first deliveries must not go back in time
            latest = position.latest.get(member, 0)
            if time < latest:
                sums.out_of_order += 1
            elif member in position.latest or len(position.latest) < MAX_GROUPS:
                position.latest[member] = time

    def _passed(self, origin: str, rows: list[SeenMessage]) -> None:
        """Count a record that a group's commits passed without a captured delivery."""
        tags = next((row.tags for row in rows if row.event in (STORED, DELIVERED)), None)
        receivers = {row.consumer_group for row in rows if row.event == DELIVERED}
        for group, position in self._groups.items():
            # below, the group may not have begun; above, it has not come there yet
            if group in receivers or not position.lowest <= self._offset < position.highest:
                continue
            sums = self._sums.group(origin, group)
            wanted = self._known.is_wanted(group, self._topic, tags)
            if wanted is None:
                sums.unsure += 1
            elif wanted:
                sums.skipped += 1
            else:
                sums.filtered += 1
