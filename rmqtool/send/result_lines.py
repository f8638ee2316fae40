"""Results of sends: one line per attempt for people, one JSON object per message for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dissectors.remoting.code_names import response_name
from dissectors.times import text_of_time
from replay.errors import ClientError
from replay.message import Attempt, AttemptOutcome, SendResult, TransactionState
from replay.sending.attempt import STATUSES

from ..ui.columns import LineColumn, LineTable
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import clock, duration
from ..ui.json_text import json_line
from ..ui.option_names import in_options
from ..ui.remark import cause_of
from .input_lines import Outgoing

SAMPLE = 1
"""rows that determine the column widths: they come slowly"""


class Ended(NamedTuple):
    """A completed message or batch."""

    outgoing: Sequence[Outgoing]
    """the message; several for a batch"""
    result: SendResult | None
    """send result; None: it failed"""
    error: ClientError | None
    """reason of the failure; a transaction may have it next to a result"""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """All attempts."""
        if self.result is not None:
            return self.result.attempts
        return self.error.attempts if self.error is not None else ()

    @property
    def unique_key(self) -> str | None:
        """The id of the (first) message."""
        return self.outgoing[0].message.unique_key

    @property
    def latency_us(self) -> int | None:
        """From the beginning of the first attempt to the end of the last one."""
        attempts = self.attempts
        end = attempts[-1].end if attempts else None
        return None if end is None else (end - attempts[0].begin) // 1000


class AttemptRow(NamedTuple):
    """One line."""

    ended: Ended
    attempt: Attempt | None
    """None: the message failed before it was tried"""


def rows_of(ended: Ended) -> list[AttemptRow]:
    """Return the lines of a message."""
    return [AttemptRow(ended, attempt) for attempt in ended.attempts] or [AttemptRow(ended, None)]


def outcome_of(attempt: Attempt) -> str:
    """Return the outcome of an attempt: a SendStatus, the name of a code, or another
    outcome.
    """
    if attempt.code is None:
        return attempt.outcome
    status = STATUSES.get(attempt.code)
    return response_name(attempt.code) if status is None else status.value


def is_good(attempt: Attempt) -> bool:
    """Return whether the broker has the message, or it was sent oneway."""
    return attempt.code in STATUSES or attempt.outcome == AttemptOutcome.ONEWAY


def _number(row: AttemptRow) -> str:
    first, last = row.ended.outgoing[0].number, row.ended.outgoing[-1].number
    return f"{first}" if first == last else f"{first}-{last}"


def _of_attempt(cell: Callable[[Attempt], str], absent: str) -> Callable[[AttemptRow], str]:
    """Return a cell of the attempt, `absent` if the message was not tried."""
    return lambda row: absent if row.attempt is None else cell(row.attempt)


def _outcome(row: AttemptRow) -> str:
    if row.attempt is None:
        return "not sent"
    result = row.ended.result
    if result is None or row.attempt is not result.attempts[-1]:
        return one_line(outcome_of(row.attempt))
    state = result.transaction_state
    return outcome_of(row.attempt) + ("" if state is None else f", {state.name.lower()}")


def _style(row: AttemptRow) -> str:
    good = row.attempt is not None and is_good(row.attempt)
    return Style.GREEN if good else Style.RED


def _queue(attempt: Attempt) -> str:
    return str(attempt.queue.queue_id if attempt.queue_id is None else attempt.queue_id)


def _offset(attempt: Attempt) -> str:
    return "-" if attempt.queue_offset is None else str(attempt.queue_offset)


def _note(row: AttemptRow) -> str:
    attempt = row.attempt
    if attempt is None:
        return one_line(row.ended.error.reason) if row.ended.error is not None else ""
    if is_good(attempt):
        return ""
    return cause_of(attempt.remark or attempt.error)


COLUMNS: tuple[LineColumn[AttemptRow], ...] = (
    LineColumn("MESSAGE", _number, 2, 7, 12, True),
    LineColumn("TRY", _of_attempt(lambda a: str(a.number), ""), 2, 3, 3, True),
    LineColumn("TIME", _of_attempt(lambda a: clock(a.begin), ""), 8, 12, 12),
    LineColumn("LATENCY", _of_attempt(lambda a: duration(a.latency_us), "-"), 1, 7, 11, True),
    LineColumn("OUTCOME", _outcome, 1, 12, 24, style=_style),
    LineColumn("BROKER", _of_attempt(lambda a: one_line(a.queue.broker_name), "-"), 2, 8, 24),
    LineColumn("QUEUE", _of_attempt(_queue, "-"), 3, 5, 5, True),
    LineColumn("OFFSET", _of_attempt(_offset, "-"), 6, 6, 12, True),
    LineColumn("WHY", _of_attempt(lambda a: one_line(a.why), ""), 4, 16, 44),
    LineColumn("NOTE", _note, 4, 12, 80, wraps=True),
    LineColumn("ADDRESS", _of_attempt(lambda a: one_line(a.address), ""), 9, 15, 24, keep_end=True),
    LineColumn("UNIQ_KEY", lambda row: one_line(row.ended.unique_key), 9, 32, 56),
)


def attempt_lines(terminal: Terminal) -> LineTable[AttemptRow]:
    """Return the table of attempts."""
    return LineTable(COLUMNS, terminal, SAMPLE)


def json_of(ended: Ended) -> bytes:
    """Return one message, or one batch, as a JSON object on a line."""
    result, error, first = ended.result, ended.error, ended.outgoing[0]
    members: dict[str, object] = {
        "message": first.number,
        "messages": len(ended.outgoing),
        "status": "failed" if result is None else result.status.value,
        "topic": first.message.topic,
        "unique_key": first.message.unique_key if result is None else result.unique_key,
        "latency_us": ended.latency_us,
    }
    if result is not None:
        members |= _members_of(result)
    if error is not None:
        members["error"] = {
            "kind": type(error).__name__,
            "code": error.code,
            "reason": error.reason,
            "hint": in_options(error)[1],
        }
    members["attempts"] = [_attempt_members(attempt) for attempt in ended.attempts]
    return json_line(members)


def _members_of(result: SendResult) -> dict[str, object]:
    members: dict[str, object] = {
        "broker": result.queue.broker_name,
        "queue_id": result.queue.queue_id,
        "queue_offset": result.queue_offset,
        "offset_msg_id": result.offset_msg_id,
        "transaction_id": result.transaction_id,
        "recall_handle": result.recall_handle,
    }
    state = result.transaction_state
    if state is not None:
        members["transaction_state"] = TransactionState(state).name.lower()
    return {name: value for name, value in members.items() if value is not None}


def _attempt_members(attempt: Attempt) -> dict[str, object]:
    return {
        "number": attempt.number,
        "broker": attempt.queue.broker_name,
        "queue_id": attempt.queue.queue_id,
        "address": attempt.address,
        "begin": text_of_time(attempt.begin),
        "latency_us": attempt.latency_us,
        "outcome": attempt.outcome,
        "code": attempt.code,
        "code_name": None if attempt.code is None else response_name(attempt.code),
        "remark": attempt.remark,
        "error": attempt.error,
        "why": attempt.why,
    }
