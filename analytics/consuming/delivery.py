"""Items to sums, sums to the rows of the tables about delivery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dissectors.rows.tables import encodable_value

from ..diagnosis.keys import parts_of
from .items import LAG, MESSAGE, QUEUE, Item, SeenFetch, SeenMessage
from .known import Known
from .lag_fold import LagFold
from .message_fold import MAX_ROWS, fold_messages
from .queue_fold import QueueFold
from .sums import OTHERS, GroupSums, Spread, Sums, TopicSums

_MESSAGE: Final = msgspec.json.Decoder(SeenMessage)
_FETCH: Final = msgspec.json.Decoder(SeenFetch)
NANO_TO_MICRO: Final = 1000
Rows = list[dict[str, object]]


def fold_items(items: Iterable[Item], known: Known) -> Sums:
    """Return the sums of items that are sorted by key, `at`, `then` and text."""
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
    """Return the rows of each table, by its name."""
    found = {
        "delivery_groups": _groups(sums),
        "delivery_times": _times(sums),
        "delivery_duplicates": _duplicates(sums),
        "delivery_lag": _lag(sums, known),
    }
    return {name: [_encodable(row) for row in rows] for name, rows in found.items()}


def _encodable(row: dict[str, object]) -> dict[str, object]:
    return {name: encodable_value(value) for name, value in row.items()}


def _groups(sums: Sums) -> Rows:
    rows = []
    consumed = set()
    for key, found in sums.groups.items():
        topic, group = parts_of(key)
        consumed.add(topic)
        if topic == OTHERS:
            found.to_fetch = found.to_commit = None  # no group was so far behind
        rows.append(_of_topic(topic, sums.topics.get(topic)) | _of_group(group, found))
    for topic, sent in sums.topics.items():
        if topic not in consumed:
            rows.append(_of_topic(topic, sent))
    return rows


def _of_topic(topic: str, found: TopicSums | None) -> dict[str, object]:
    row: dict[str, object] = {"topic": topic or None}
    if found is not None:
        row |= {"sent": found.sent, "stored": found.stored, "stored_again": found.stored_again}
    return row


def _of_group(group: str, found: GroupSums) -> dict[str, object]:
    known = found.commits > 0
    return {
        "group": group,
        "delivered": found.delivered,
        "deliveries": found.deliveries,
        "again": found.again,
        "returned": found.returned,
        "dead": found.dead,
        "acknowledged": found.covered if known else None,
        "unacknowledged": found.records - found.covered if known else None,
        "skipped": found.skipped if known else None,
        "filtered": found.filtered if known else None,
        "unsure": found.unsure if known else None,
        "out_of_order": found.out_of_order,
        "to_fetch": found.to_fetch,
        "to_commit": found.to_commit,
        "clients": len(found.clients),
        "first_time": _micros(found.first_time),
        "last_time": _micros(found.last_time),
    }


def _micros(time: int | None) -> int | None:
    return None if time is None else time // NANO_TO_MICRO


def _times(sums: Sums) -> Rows:
    rows = []
    for key, found in sums.times.items():
        topic, group, stage, clocks = parts_of(key)
        about: dict[str, object] = {"topic": topic, "group": group or None, "stage": stage}
        rows.append(about | {"clocks": clocks} | _percentiles(found))
    return rows


def _percentiles(found: Spread) -> dict[str, object]:
    histogram = found.histogram()
    row: dict[str, object] = {
        f"p{name}_us": histogram.percentile(percent)
        for name, percent in (("50", 50), ("90", 90), ("99", 99), ("999", 99.9))
    }
    return {"messages": found.count, "min_us": found.smallest, "max_us": found.largest} | row


def _duplicates(sums: Sums) -> Rows:
    rows = []
    for key, found in sums.duplicates.items():
        topic, group, cause = parts_of(key)
        assert found.first is not None
        time, capture, packet, message = found.first
        rows.append(
            {
                "topic": topic,
                "group": group,
                "cause": cause,
                "deliveries": found.count,
                "messages": found.messages,
                "first_time": _micros(time),
                "last_time": _micros(found.last_time),
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
