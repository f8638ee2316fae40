"""What a capture cannot show of a message, said instead of guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dissectors.remoting.topic_names import DLQ_PREFIX
from dissectors.replication.progress import Replication
from dissectors.rows.message_record import (
    ACKNOWLEDGED,
    COMMITTED,
    DEAD,
    DELIVERED,
    PREPARED,
    RECALLED,
    REFUSED,
    RETURNED,
    ROLLED_BACK,
    SENT,
    STORED,
    MessageRecord,
)
from dissectors.rows.outcome import is_send

from .search import Fetches, Found

_MOST_NAMED = 5


class Covered(NamedTuple):
    """An offset commit that covers a message."""

    group: str | None
    row: MessageRecord


class Surroundings(NamedTuple):
    """What the input shows beside the message."""

    fetches: Mapping[tuple[str, str], Fetches]
    """topic and group → that somebody fetched"""
    senders_seen: int
    """requests to send that were seen"""
    client_ids: Mapping[tuple[int, str], str]
    """conversation and address → client id"""
    gap_bytes: int
    """bytes that the captures do not have"""
    not_decoded: int
    """connections of another protocol: TLS, for one"""
    replications: Sequence[Replication] = ()
    """what slaves fetched"""


def unseen_of(found: Found, topic: str | None, around: Surroundings) -> list[str]:
    """Return what cannot be known, a sentence each."""
    rows = found.rows
    lines = [
        *_of_sending(rows, around),
        *_of_transaction(rows),
        *_of_delivery(found, topic, around),
    ]
    lines += _of_acknowledgement(found)
    lines += _of_return(rows)
    if around.gap_bytes:
        lines.append(f"{around.gap_bytes} bytes are missing from the captures")
    return lines


def _events(rows: Iterable[MessageRecord]) -> set[str]:
    return {row.event for row in rows}


def _sends(rows: Sequence[MessageRecord]) -> list[MessageRecord]:
    return [row for row in rows if is_send(row.request_name)]


def _of_sending(rows: Sequence[MessageRecord], around: Surroundings) -> list[str]:
    sends = _sends(rows)
    if not sends:
        where = "other sends were" if around.senders_seen else "no other send was either"
        return [f"the send was not captured; {where}"]
    open_ = [row for row in sends if row.event == SENT]
    stored = [row for row in sends if row.event in (STORED, PREPARED)]
    known = {row.offset_msg_id for row in stored}
    lines = []
    if open_ and not stored:
        seen = [row for row in rows if row.event == DELIVERED]
        lines.append(
            "no attempt got a response, but one was stored: it was delivered"
            if seen
            else "no attempt got a response: unknown whether it was stored"
        )
    elif open_:
        others = {
            row.offset_msg_id
            for row in rows
            if row.event == DELIVERED and not row.reconsume_times and row.offset_msg_id not in known
        }
        lines.append(
            "an attempt without a response was stored as well: it was delivered from another offset"
            if others
            else f"unknown whether {_count(len(open_), 'attempt')} without a response stored it"
        )
    if sends and all(row.event == REFUSED for row in sends):
        lines.append("every attempt was refused: not stored, as far as the capture shows")
    return lines


def _count(number: int, noun: str) -> str:
    return f"the {noun}" if number == 1 else f"the {number} {noun}s"


def _of_transaction(rows: Sequence[MessageRecord]) -> list[str]:
    events = _events(rows)
    if PREPARED not in events or events & {COMMITTED, ROLLED_BACK}:
        return []
    return ["no commit or rollback captured: unknown whether it becomes visible"]


def _of_delivery(found: Found, topic: str | None, around: Surroundings) -> list[str]:
    events = _events(found.rows)
    if DELIVERED in events or not events & {STORED, PREPARED, SENT, RETURNED}:
        return []
    if ROLLED_BACK in events or RECALLED in events:
        return []
    groups = sorted(group for (of, group) in around.fetches if of == topic)
    if groups:
        passed = sorted({group or "?" for group, _ in found.covered})
        lines = [
            f"no delivery captured, although {_named(groups)} fetched from {topic}:"
            " possible reasons are a filter, another queue, or another time"
        ]
        if passed:
            lines.append(f"the offset of {_named(passed)} passed it without a captured delivery")
        return lines
    if around.fetches:
        return [f"no delivery captured; no client fetches from {topic}"]
    closed = (
        f"; {around.not_decoded} connections could not be decoded" if around.not_decoded else ""
    )
    return [f"no delivery captured; no consumer connection captured{closed}"]


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def _of_acknowledgement(found: Found) -> list[str]:
    groups = {row.consumer_group for row in found.rows if row.event == DELIVERED}
    done = {group for group, _ in found.covered}
    done |= {
        row.consumer_group for row in found.rows if row.event in (ACKNOWLEDGED, RETURNED, DEAD)
    }
    missing = sorted(group for group in groups - done if group is not None)
    if not missing:
        return []
    return [f"no acknowledgement or offset commit of {_named(missing)} captured"]


def _of_return(rows: Sequence[MessageRecord]) -> list[str]:
    """Return what became of the last return of each group, where no delivery followed."""
    lines = []
    ordered = sorted(rows, key=lambda row: row.time or 0)
    for group in dict.fromkeys(row.consumer_group for row in ordered if row.event == RETURNED):
        mine = [row for row in ordered if row.consumer_group == group]
        last = next(row for row in reversed(mine) if row.event == RETURNED)
        if any(row.event == DELIVERED and (row.time or 0) > (last.time or 0) for row in mine):
            continue
        if any(row.topic == f"{DLQ_PREFIX}{group}" for row in ordered):
            continue
        given = [row for row in mine if row.event == DELIVERED and row.reconsume_times is not None]
        times = given[-1].reconsume_times if given else None
        most = last.max_reconsume_times
        if times is not None and most is not None and 0 <= most <= times:
            lines.append(
                f"{group} returned it {times} of {most} times: the broker then moves it to the"
                " dead-letter queue, which was not captured"
            )
        else:
            lines.append(f"not redelivered to {group} within the capture")
    return lines
