"""Fold items to sums, and sums to the rows of the delivery tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dissectors.rows.message_record import BEFORE, DELIVERED, STORED, THIS

from ..diagnosis.keys import parts_of
from ..diagnosis.rules.consumers.pulled import messages_behind
from .group_items import MICRO, Rows
from .items import ASKED, LAG, MESSAGE, QUEUE, Item, SeenFetch, SeenMessage, is_own
from .known import Known
from .message_fold import MAX_ROWS, fold_messages, without_inner_hops
from .sums import OTHERS, GroupSums, LagPoint, Spread, Sums, TopicSums

MAX_QUEUES: Final = 4096
MAX_CLIENTS: Final = 1024


class _Queue(msgspec.Struct, gc=False):
    end: int | None = None
    following: int | None = None
    committed: int | None = None

    def to_fetch(self) -> int | None:
        return _behind(self.end, self.following)

    def to_commit(self) -> int | None:
        return _behind(self.end, self.committed)


def _behind(end: int | None, at: int | None) -> int | None:
    return None if end is None or at is None else messages_behind(end, at)


class LagFold:
    """Folds fetches and commits in order of time; only pull responses have the end of a queue."""

    def __init__(self, topic: str, group: str, known: Known, sums: Sums) -> None:
        self._topic = topic
        self._group = group
        self._width = known.window_us * 1000
        self._sums = sums
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._to_fetch: int | None = None
        self._to_commit: int | None = None
        self._point: LagPoint | None = None

    def add(self, row: SeenFetch) -> None:
        """Add a fetch or commit."""
        # A commit shows no fetch, and its client is not known here.
        if row.committed is None:
            sums = self._sums.group(self._topic, self._group)
            sums.seen(row.time)
            if len(sums.clients) < MAX_CLIENTS:
                sums.clients.add(row.client)
        queue = self._queues.get((row.broker, row.queue))
        if queue is None:
            if len(self._queues) >= MAX_QUEUES:
                return
            queue = self._queues[row.broker, row.queue] = _Queue()
        # the sums over all queues are kept up to date, not computed again for each row
        before = queue.to_fetch(), queue.to_commit()
        if row.committed is not None:
            queue.committed = row.committed
        if row.end is not None:
            queue.end = row.end
        if row.following is not None:
            queue.following = row.following
        self._to_fetch = _moved(self._to_fetch, before[0], queue.to_fetch())
        self._to_commit = _moved(self._to_commit, before[1], queue.to_commit())
        self._note(row.time - row.time % self._width)

    def _note(self, start: int) -> None:
        """Record the largest lag of each window."""
        if self._to_fetch is None and self._to_commit is None:
            return
        point = self._point
        if point is None or point.start != start:
            point = LagPoint(start, self._topic, self._group, None, None, 0)
            self._point = point
            self._sums.lag.append(point)
        point.to_fetch = _largest(point.to_fetch, self._to_fetch)
        point.to_commit = _largest(point.to_commit, self._to_commit)
        point.queues = len(self._queues)

    def finish(self) -> None:
        """Record the final lag of the group."""
        if self._to_fetch is None and self._to_commit is None:
            return
        sums = self._sums.group(self._topic, self._group)
        sums.to_fetch, sums.to_commit = self._to_fetch, self._to_commit


def _moved(total: int | None, before: int | None, after: int | None) -> int | None:
    """Return a sum over queues after the value of one queue changed."""
    if after is None:
        return total
    return (total or 0) + after - (before or 0)


def _largest(first: int | None, second: int | None) -> int | None:
    return max((value for value in (first, second) if value is not None), default=None)


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


_MESSAGE: Final = msgspec.json.Decoder(SeenMessage)
_FETCH: Final = msgspec.json.Decoder(SeenFetch)


def fold_items(items: Iterable[Item], known: Known) -> Sums:
    """Return the sums of items sorted by key, `at`, `then` and text."""
    sums = Sums()
    key = ""
    messages: list[SeenMessage] = []
    queue: QueueFold | None = None
    lag: LagFold | None = None
    for item in items:
        if item.key != key:
            _finish(messages, queue, lag, known, sums)
            key, messages, queue, lag = item.key, [], None, None
            kind, *names = parts_of(key)
            if kind == QUEUE:
                queue = QueueFold(names[0], known, sums)
            elif kind == LAG:
                lag = LagFold(names[0], names[1], known, sums)
            else:
                assert kind == MESSAGE
        if queue is not None:
            queue.add(_MESSAGE.decode(item.text))
        elif lag is not None:
            lag.add(_FETCH.decode(item.text))
        # A key comes from a peer, who may repeat it without end; further rows of it are not held.
        elif len(messages) < MAX_ROWS:
            messages.append(_MESSAGE.decode(item.text))
    _finish(messages, queue, lag, known, sums)
    return sums


def _finish(
    messages: list[SeenMessage],
    queue: QueueFold | None,
    lag: LagFold | None,
    known: Known,
    sums: Sums,
) -> None:
    if messages:
        fold_messages(messages, known, sums)
    if queue is not None:
        queue.finish()
    if lag is not None:
        lag.finish()


def tables_of(sums: Sums, known: Known) -> Mapping[str, Rows]:
    """Return the rows of each delivery table, by table name."""
    return {
        "delivery_groups": _groups(sums),
        "delivery_times": _times(sums),
        "delivery_duplicates": _duplicates(sums),
        "delivery_lag": _lag(sums, known),
    }


def _groups(sums: Sums) -> Rows:
    rows = []
    consumed = set()
    for key, group_sums in sums.groups.items():
        topic, group = parts_of(key)
        consumed.add(topic)
        if topic == OTHERS:
            group_sums.to_fetch = group_sums.to_commit = None  # the row covers several groups
        rows.append(_of_topic(topic, sums.topics.get(topic)) | _of_group(group, group_sums))
    for topic, sent in sums.topics.items():
        if topic not in consumed:
            rows.append(_of_topic(topic, sent))
    return rows


def _of_topic(topic: str, topic_sums: TopicSums | None) -> dict[str, object]:
    row: dict[str, object] = {"topic": topic or None}
    if topic_sums is not None:
        row |= {
            "sent": topic_sums.sent,
            "stored": topic_sums.stored,
            "stored_again": topic_sums.stored_again,
        }
    return row


def _of_group(group: str, sums: GroupSums) -> dict[str, object]:
    has_commits = sums.commits > 0  # without one, coverage is unknown and not zero
    return {
        "group": group,
        "delivered": sums.delivered,
        "deliveries": sums.deliveries,
        "again": sums.again,
        "returned": sums.returned,
        "dead": sums.dead,
        "acknowledged": sums.covered if has_commits else None,
        "unacknowledged": sums.records - sums.covered if has_commits else None,
        "skipped": sums.skipped if has_commits else None,
        "filtered": sums.filtered if has_commits else None,
        "unsure": sums.unsure if has_commits else None,
        "out_of_order": sums.out_of_order,
        "to_fetch": sums.to_fetch,
        "to_commit": sums.to_commit,
        "clients": len(sums.clients),
        "first_time": _micros(sums.first_time),
        "last_time": _micros(sums.last_time),
    }


def _micros(time: int | None) -> int | None:
    return None if time is None else time // MICRO


def _times(sums: Sums) -> Rows:
    rows = []
    for key, spread in sums.times.items():
        topic, group, stage, clocks = parts_of(key)
        row: dict[str, object] = {"topic": topic, "group": group or None, "stage": stage}
        rows.append(row | {"clocks": clocks} | _percentiles(spread))
    return rows


def _percentiles(spread: Spread) -> dict[str, object]:
    histogram = spread.histogram()
    row: dict[str, object] = {
        f"p{name}_us": histogram.percentile(percent)
        for name, percent in (("50", 50), ("90", 90), ("99", 99), ("999", 99.9))
    }
    return {"messages": spread.count, "min_us": spread.smallest, "max_us": spread.largest} | row


def _duplicates(sums: Sums) -> Rows:
    rows = []
    for key, duplicates in sums.duplicates.items():
        topic, group, cause = parts_of(key)
        assert duplicates.first is not None
        time, capture, packet, _, message = duplicates.first
        rows.append(
            {
                "topic": topic,
                "group": group,
                "cause": cause,
                "deliveries": duplicates.count,
                "messages": duplicates.messages,
                "first_time": _micros(time),
                "last_time": _micros(duplicates.last_time),
                "message": message,
                "capture": capture,
                "packet": packet,
            }
        )
    return rows


def _lag(sums: Sums, known: Known) -> Rows:
    return [
        {
            "start": _micros(point.start),
            "window_us": known.window_us,
            "consumer": f"{point.group} of {point.topic}",
            "topic": point.topic,
            "group": point.group,
            "to_fetch": point.to_fetch,
            "to_commit": point.to_commit,
            "queues": point.queues,
        }
        for point in sums.lag
    ]
