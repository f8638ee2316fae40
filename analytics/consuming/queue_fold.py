"""One queue in the order of its offsets: what was covered, passed over, delivered out of order.

The commits of each group come first, so that a record is judged when it is seen. One record is kept
at a time.
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
"""groups of one queue"""


class _Group(msgspec.Struct, gc=False):
    """Where a group is in the queue."""

    lowest: int
    """the first offset that is known of it"""
    highest: int
    """all before was committed"""
    latest: dict[str, int] = {}
    """member, of broadcasting, else empty -> time of the latest first delivery so far, ns"""


class QueueFold:
    """Takes the rows of one queue: commits, then records by offset."""

    def __init__(self, topic: str, known: Known, sums: Sums) -> None:
        self._topic = topic
        self._known = known
        self._sums = sums
        self._groups: dict[str, _Group] = {}
        self._offset = -1
        self._rows: list[SeenMessage] = []

    def add(self, row: SeenMessage) -> None:
        """Take a row."""
        offset = row.queue_offset
        group = row.consumer_group
        if offset is None:
            return
        if row.covers == BEFORE:
            if group is not None:
                self._place(group, offset, 0 if row.event == ASKED else offset)
                if row.event != ASKED and not is_own(self._topic):
                    self._sums.group(row.origin, group).commits += 1
            return
        if offset != self._offset:
            self.finish()
            self._offset = offset
        self._rows.append(row)

    def finish(self) -> None:
        """Judge the record that was seen last."""
        rows, self._rows = without_inner_hops(self._rows), []
        if not rows:
            return
        origin = next((row.origin for row in rows if not is_own(row.origin)), rows[0].origin)
        for group in dict.fromkeys(row.consumer_group for row in rows):
            if group is not None:
                mine = [row for row in rows if row.consumer_group == group]
                self._delivered(group, origin, mine)
        if not is_own(self._topic):
            self._passed(origin, rows)

    def _place(self, group: str, offset: int, committed: int) -> None:
        found = self._groups.get(group)
        if found is not None:
            found.lowest = min(found.lowest, offset)
            found.highest = max(found.highest, committed)
        elif len(self._groups) < MAX_GROUPS:
            self._groups[group] = _Group(offset, committed)

    def _delivered(self, group: str, origin: str, rows: Iterable[SeenMessage]) -> None:
        sums = self._sums.group(origin, group)
        place = self._groups.get(group)
        if place is None and len(self._groups) < MAX_GROUPS:
            place = self._groups[group] = _Group(self._offset, 0)
        firsts: dict[str, int] = {}
        acknowledged = False
        for row in rows:
            if row.event == DELIVERED:
                member = ""
                if group in self._known.broadcasting:
                    member = row.client_id or row.client_address
                firsts.setdefault(member, row.time)
            elif row.covers == THIS:
                acknowledged = True
                sums.commits += 1
        sums.records += len(firsts)
        if place is None:
            return
        place.lowest = min(place.lowest, self._offset)
        sums.commits += place.highest > 0
        if acknowledged or self._offset < place.highest:
            sums.covered += len(firsts)
        if is_own(self._topic):
            return
        for member, time in firsts.items():
            latest = place.latest.get(member, 0)
            if time < latest:
                sums.out_of_order += 1
            elif member in place.latest or len(place.latest) < MAX_GROUPS:
                place.latest[member] = time

    def _passed(self, origin: str, rows: list[SeenMessage]) -> None:
        """Count a record that a group's commits passed and that it was not seen to get."""
        tags = next((row.tags for row in rows if row.event in (STORED, DELIVERED)), None)
        got = {row.consumer_group for row in rows if row.event == DELIVERED}
        for group, place in self._groups.items():
            if group in got or not place.lowest <= self._offset < place.highest:
                continue
            sums = self._sums.group(origin, group)
            wanted = self._known.is_wanted(group, self._topic, tags)
            if wanted is None:
                sums.unsure += 1
            elif wanted:
                sums.skipped += 1
            else:
                sums.filtered += 1
