"""Fold items to sums, and sums to the rows of the delivery tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ..diagnosis.keys import parts_of
from .group_items import MICRO, Rows
from .items import LAG, MESSAGE, QUEUE, Item, SeenFetch, SeenMessage
from .known import Known
from .lag_fold import LagFold
from .message_fold import MAX_ROWS, fold_messages
from .queue_fold import QueueFold
from .sums import OTHERS, GroupSums, Spread, Sums, TopicSums

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
