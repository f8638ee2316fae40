"""Describe rows of a message in words: the same in terminal, HTML, and JSON.

Texts from the network are passed through: the display makes them printable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dissectors.broker_store.store_folder import IN_QUEUE
from dissectors.grpc.names import OK
from dissectors.quantities import counted, duration_text
from dissectors.remoting.row_facts.names import fault_in
from dissectors.rows import conversation_record as tcp
from dissectors.rows import message_record as events
from dissectors.rows.message_record import BEFORE, MessageRecord

from .lanes import CONNECT_FAILED, REPLICATED

_ENDS: Final = {
    "reset": "the connection was reset",
    "closed": "the connection was closed",
    "open": "the connection stayed open",
}


def times_text(number: int) -> str:
    """Return a count as text."""
    return "once" if number == 1 else "twice" if number == 2 else f"{number} times"


def step_words(row: MessageRecord) -> str:
    """Return what happened, as one sentence without its end."""
    words = _WORDS.get(row.event)
    if words is None:  # a log of another release or program
        return f"{row.event or 'something'!r}, which this rmqtool does not know"
    return words(row)


def fault_words(fault: str) -> str:
    """Return the description of a fault injected into the request of a step."""
    return f"; injected fault: {fault_in(fault)}"


def _place(row: MessageRecord) -> str:
    text = row.topic or "an unknown topic"
    if row.queue_id is not None:
        text += f", queue {row.queue_id}"
    # an offset commit is about the queue up to an offset, which its sentence names
    if row.queue_offset is not None and row.covers != BEFORE:
        text += f", offset {row.queue_offset}"
    return text


def _after(row: MessageRecord) -> str:
    return f" after {duration_text(row.latency_us)}" if row.latency_us is not None else ""


def _response(row: MessageRecord) -> str:
    """Return the broker's response, unless it was a plain success."""
    if row.response_code is None:
        return "; no response captured"
    return "" if row.response_code in (0, OK) else f"; response {row.response_name}"


def _sent(row: MessageRecord) -> str:
    end = f"; {_ENDS[row.end]}" if row.end in _ENDS else ""
    return f"sent to {_place(row)}; no response captured{end}"


def _stored(row: MessageRecord) -> str:
    late = f", delay level {row.delay_level}" if row.delay_level else ""
    return f"sent to {_place(row)}{late}; stored{_after(row)}{_response(row)}"


def _refused(row: MessageRecord) -> str:
    asked = row.request_name or "the request"
    why = f" ({row.remark})" if row.remark else ""
    return f"{asked} refused{_after(row)}: {row.response_name}{why}"


def _delivered(row: MessageRecord) -> str:
    group = f" to {row.consumer_group}" if row.consumer_group else ""
    times = f", returned {times_text(row.reconsume_times)} before" if row.reconsume_times else ""
    how = "pushed" if (row.request_name or "").startswith("PUSH_") else "delivered"
    return f"{how}{group} from {_place(row)}{times}"


def _acknowledged(row: MessageRecord) -> str:
    if row.covers == BEFORE:
        group = row.consumer_group or "an unknown group"
        return f"{group} committed offset {row.queue_offset} of {_place(row)}"
    return f"acknowledged by {row.consumer_group}: {_place(row)}{_response(row)}"


def _returned(row: MessageRecord) -> str:
    level = row.delay_level
    most = row.max_reconsume_times
    terms = []
    if level is not None:
        terms.append(f"delay level {level}" if level else "delay chosen by the broker")
    if most is not None and most >= 0:
        terms.append(f"at most {counted(most, 'redelivery', 'redeliveries')}")
    how = f" ({', '.join(terms)})" if terms else ""
    group = row.consumer_group or row.producer_group
    return f"returned by {group} for redelivery{how}{_response(row)}"


def _dead(row: MessageRecord) -> str:
    group = row.consumer_group or row.producer_group
    return f"moved to the dead-letter queue by {group}{_response(row)}"


def _prepared(row: MessageRecord) -> str:
    return f"half message for {_place(row)} stored{_after(row)}"


def _replicated(row: MessageRecord) -> str:
    text = f"commit log offset {row.commit_log_offset} sent to the slave"
    if row.latency_us is None:
        return f"{text}; no report of the slave covers it"
    return f"{text}; its report covers it {duration_text(row.latency_us)} later"


def _connect_failed(row: MessageRecord) -> str:
    how = "refused" if row.end == tcp.REFUSED else "not answered"
    return f"connection {how}{_after(row)}; nothing sent"


def _on_disk(row: MessageRecord) -> str:
    remark = f"; {row.remark}" if row.remark and row.remark != IN_QUEUE else ""
    return f"in the broker's store: {_place(row)}{remark}"


def _ended(row: MessageRecord) -> str:
    # rows of a store have no conversation
    if row.request_name is None and row.conversation < 0:
        return " (according to the broker's store)"
    return _response(row) if row.response_code else ""


_WORDS: Final[dict[str, Callable[[MessageRecord], str]]] = {
    events.SENT: _sent,
    events.STORED: _stored,
    events.REFUSED: _refused,
    events.DELIVERED: _delivered,
    events.VIEWED: lambda row: f"viewed with {row.request_name}: {_place(row)}",
    events.ACKNOWLEDGED: _acknowledged,
    events.RETURNED: _returned,
    events.DEAD: _dead,
    events.PREPARED: _prepared,
    events.ON_DISK: _on_disk,
    events.COMMITTED: lambda row: f"transaction committed{_ended(row)}",
    events.ROLLED_BACK: lambda row: f"transaction rolled back{_ended(row)}",
    events.UNDECIDED: lambda _: "transaction left open: unknown",
    events.CHECKED: lambda _: "the broker asks how the transaction ended",
    REPLICATED: _replicated,
    CONNECT_FAILED: _connect_failed,
    events.RECALLED: lambda row: f"recalled before it was due{_response(row)}",
}
"""event → its text"""
