"""What a capture cannot show about a message, stated instead of guessed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dissectors.grpc.names import OK
from dissectors.quantities import counted
from dissectors.remoting.topic_names import DLQ_PREFIX
from dissectors.replication.progress import Replication
from dissectors.rows.message_record import (
    ACKNOWLEDGED,
    COMMITTED,
    DEAD,
    DELIVERED,
    ON_DISK,
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
from dissectors.rows.relays import Relay

from ..diagnosis.rules.consumers.returns import is_spent
from .search import Found
from .words import times_text

if TYPE_CHECKING:
    from dissectors.broker_store.store_folder import StoreFolder

_MOST_NAMED = 5


class Covered(NamedTuple):
    """An offset commit that covers a message."""

    group: str | None
    row: MessageRecord


class Surroundings(NamedTuple):
    """Properties of the input besides the message."""

    relays: Collection[Relay]
    """relays proved by sends captured on both sides"""
    fetches: Collection[tuple[str, str]]
    """topics and groups that fetched from them"""
    orderly: Collection[str]
    """consumer groups that lock queues"""
    senders_seen: int
    """number of send requests"""
    client_ids: Mapping[tuple[int, str], str]
    """conversation and address → client id"""
    gap_bytes: int
    """bytes missing in the captures"""
    not_decoded: int
    """connections of other protocols, such as TLS"""
    replications: Sequence[Replication] = ()
    """fetches of slaves"""
    stores: Sequence[StoreFolder] = ()
    """copies of broker stores"""


def unseen_of(found: Found, topic: str | None, around: Surroundings) -> list[str]:
    """Return what cannot be known, one sentence each."""
    rows = found.rows
    lines = [
        *_of_sending(rows, around),
        *_of_transaction(rows),
        *_of_delivery(found, topic, around),
    ]
    lines += _of_acknowledgement(found)
    lines += _of_return(rows, around.orderly)
    if around.gap_bytes:
        lines.append(f"{around.gap_bytes} bytes missing from the captures")
    return lines


def copies_on_disk(rows: Sequence[MessageRecord]) -> list[MessageRecord]:
    """Return the copies of a message in broker stores: in its own topic, or waiting elsewhere."""
    copies = [row for row in rows if row.event == ON_DISK]
    sent_to = {row.original_topic for row in rows if row.original_topic is not None}
    # Elsewhere, such as in the half topic, there may be several records of a single copy.
    return [row for row in copies if row.topic in sent_to] or copies[:1]


def _events(rows: Iterable[MessageRecord]) -> set[str]:
    return {row.event for row in rows}


def _sends(rows: Sequence[MessageRecord]) -> list[MessageRecord]:
    return [row for row in rows if is_send(row.request_name)]


def _of_sending(rows: Sequence[MessageRecord], around: Surroundings) -> list[str]:
    sends = _sends(rows)
    if not sends:
        also = (
            "although other sends were captured"
            if around.senders_seen
            else "and sends of other messages"
        )
        return [f"the send, {also}"]
    open_ = [row for row in sends if row.event == SENT]
    stored = [row for row in sends if row.event in (STORED, PREPARED)]
    lines = []
    if open_ and not stored_anyway(rows):
        lines.append(_of_no_response(around) if not stored else _of_some(len(open_), around))
    if sends and all(row.event == REFUSED for row in sends):
        lines.append("every attempt was refused: not stored, as far as the capture shows")
    return lines


def stored_anyway(rows: Sequence[MessageRecord]) -> list[str]:
    """Return a note if later steps, or a store, show that an unanswered attempt was stored."""
    sends = _sends(rows)
    open_ = sum(row.event == SENT for row in sends)
    if not open_:
        return []
    known = {row.offset_msg_id for row in sends if row.event in (STORED, PREPARED)}
    on_disk = {row.offset_msg_id for row in copies_on_disk(rows)}
    delivered = [row for row in rows if row.event == DELIVERED]
    if not known:  # so any delivered or stored copy is of an unanswered attempt
        but = "no attempt got a response, but the message was stored"
        if on_disk:
            return [f"{but}: the broker's store has it {times_text(len(on_disk))}"]
        return [f"{but}: it was delivered"] if delivered else []
    also = f"{'the' if open_ == 1 else 'an'} unanswered attempt was stored, too"
    # a redelivery has a place of its own without being another attempt's copy
    others = dict.fromkeys(
        _record(row)
        for row in delivered
        if not row.reconsume_times and row.offset_msg_id not in known
    )
    if others:
        return [f"{also}: the message was also delivered from {_named(list(others), '; ')}"]
    if any(row not in known for row in on_disk):
        return [f"{also}: the broker's store has the message at another offset"]
    return []


def _record(row: MessageRecord) -> str:
    """Return the place of a delivered message: ``broker-a, queue 0, offset 1``."""
    parts = [row.broker_name or row.server_address]
    if row.queue_id is not None:
        parts.append(f"queue {row.queue_id}")
    if row.queue_offset is not None:
        parts.append(f"offset {row.queue_offset}")
    return ", ".join(parts)


def _of_no_response(around: Surroundings) -> str:
    if around.stores:
        return "whether it was stored (no attempt got a response; the given stores do not have it)"
    return "whether it was stored (no attempt got a response)"


def _of_some(open_: int, around: Surroundings) -> str:
    """Take the number of unanswered attempts of a message of which another attempt was stored."""
    attempts = f"{_count(open_, 'attempt')} without a response"
    if around.stores:
        return f"the given stores have no copy of {attempts}"
    return f"whether {attempts} stored it"


def _count(number: int, noun: str) -> str:
    return f"the {noun}" if number == 1 else f"the {number} {noun}s"


def _of_transaction(rows: Sequence[MessageRecord]) -> list[str]:
    events = _events(rows)
    if PREPARED not in events or events & {COMMITTED, ROLLED_BACK}:
        return []
    return ["whether it becomes visible (no commit or rollback was captured)"]


def _of_delivery(found: Found, topic: str | None, around: Surroundings) -> list[str]:
    events = _events(found.rows)
    if DELIVERED in events or not events & {STORED, PREPARED, SENT, RETURNED}:
        return []
    if ROLLED_BACK in events or RECALLED in events:
        return []
    groups = sorted(group for (of, group) in around.fetches if of == topic)
    if groups:
        passed = sorted({group or "?" for group, _ in found.covered})
        they = "it" if len(groups) == 1 else "they"
        lines = [
            f"a delivery to {_named(groups)}, although {they} fetched"
            f" from {topic} (possible reasons: a filter, another queue, or another time)"
        ]
        if passed:
            lines.append(
                f"why {_named(passed)} committed past this message without a captured delivery"
            )
        return lines
    if around.fetches:
        return [f"deliveries (no client fetches from {topic})"]
    closed = (
        f"; {counted(around.not_decoded, 'connection')} could not be decoded"
        if around.not_decoded
        else ""
    )
    return [f"deliveries (no consumer connection{closed})"]


def _named(names: Sequence[str], separator: str = ", ") -> str:
    shown = separator.join(names[:_MOST_NAMED])
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
    return [f"an acknowledgement or offset commit of {_named(missing)}"]


def _of_return(rows: Sequence[MessageRecord], orderly: Collection[str]) -> list[str]:
    """Return the outcome of the last return of each group, if no delivery followed."""
    lines = []
    for last in last_returns(rows, orderly):
        if not last.spent:
            lines.append(f"a redelivery to {last.group}")
        elif not last.accepted:
            lines.append(
                f"whether it went to the DLQ (no response to the last return of {last.group} was"
                " captured)"
            )
    return lines


class LastReturn(NamedTuple):
    """The last return of a group, without a later delivery."""

    group: str | None
    row: MessageRecord
    redelivered: int | None
    """earlier redeliveries of the message; None: not captured"""
    orderly: bool
    """whether the group locks queues"""

    @property
    def is_send(self) -> bool:
        """Whether the consumer sent the message to its retry topic itself."""
        return is_send(self.row.request_name)

    @property
    def spent(self) -> bool:
        """Whether the broker moves the message to the DLQ instead of redelivering it."""
        level, most = self.row.delay_level, self.row.max_reconsume_times
        if level is not None and level < 0:  # asks for the DLQ at once
            return True
        if self.is_send:
            made, before = self.row.reconsume_times, self.redelivered
            if made is None or most is None or most < 0:
                return False
            # Only an orderly consumer retries in place, so that deliveries do not count up.
            in_place = before is not None and before != made - 1
            return is_spent(made, most, self.orderly or in_place)
        return self.redelivered is not None and most is not None and 0 <= most <= self.redelivered

    @property
    def accepted(self) -> bool:
        """Whether the broker accepted the return."""
        return self.row.response_code in (0, OK)


def last_returns(rows: Iterable[MessageRecord], orderly: Collection[str]) -> Iterator[LastReturn]:
    """Return the last return of each group, unless a delivery or a dead letter follows it.

    Takes the rows of one message, and the groups that lock queues.
    """
    ordered = sorted(rows, key=lambda row: row.time or 0)
    for group in dict.fromkeys(row.consumer_group for row in ordered if row.event == RETURNED):
        mine = [row for row in ordered if row.consumer_group == group]
        last = next(row for row in reversed(mine) if row.event == RETURNED)
        if any(row.event == DELIVERED and (row.time or 0) > (last.time or 0) for row in mine):
            continue
        if any(row.topic == f"{DLQ_PREFIX}{group}" for row in ordered):
            continue
        # a delivery says how often it was redelivered before, which the return does not
        given = [row for row in mine if row.event == DELIVERED and row.reconsume_times is not None]
        redelivered = given[-1].reconsume_times if given else None
        yield LastReturn(group, last, redelivered, group in orderly)
