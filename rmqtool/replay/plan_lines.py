"""The plan as lines or JSON: planned sends, and the reasons for skipped ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from dissectors.quantities import counted
from dissectors.times import text_of_time
from replay.captured.captured_send import CapturedSend, SkipReason
from replay.plan.planned_run import PlannedRun
from replay.plan.planner import PlannedSend, Skipped
from replay.run.compare import captured_side

from ..decode.exchange_lines import SAMPLE, cyan, dim
from ..ui.columns import LineColumn, LineTable
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import count, duration

PlanRow = PlannedSend | Skipped
_NO_TEXT = "-"
_MOST_REASONS = 30


def plan_lines(terminal: Terminal, captures: int, live: bool) -> LineTable[PlanRow]:
    """Return the table of a plan; `captures` is how many sources are read."""
    columns: list[LineColumn[PlanRow]] = [
        LineColumn("PACKET", lambda r: str(r.origin.packet), 6, 6, 9, True, dim),
        LineColumn("DUE", _of_send(lambda s: duration(s.due // 1000)), 1, 8, 9, right=True),
        LineColumn("SEND", _send, 2, 8, 12, style=_send_style),
        LineColumn("TOPIC", lambda r: one_line(_topic(r)) or _NO_TEXT, 3, 10, 32, style=cyan),
        LineColumn("QUEUE", _of_send(_queue), 7, 5, 24),
        LineColumn("GROUP", _of_send(lambda s: one_line(s.group) or _NO_TEXT), 8, 12, 32),
        LineColumn("MESSAGES", _of_send(lambda s: str(len(s.messages))), 10, 8, 8, True),
        LineColumn("UNIQ_KEY", lambda r: one_line(_key(r)) or _NO_TEXT, 9, 10, 32, keep_end=True),
        LineColumn("CAPTURED", _of_send(_captured), 5, 10, 28),
        LineColumn("NOTE", _note, 4, 12, 1000, style=_send_style),
    ]
    if captures > 1:
        columns.insert(0, LineColumn("CAPTURE", lambda r: one_line(r.origin.capture), 0, 7, 60))
    return LineTable(columns, terminal, 1 if live else SAMPLE)


def _of_send(cell: Callable[[PlannedSend], str]) -> Callable[[PlanRow], str]:
    """Return a cell of a planned send; one that is skipped has none."""
    return lambda row: cell(row) if isinstance(row, PlannedSend) else _NO_TEXT


def _send(row: PlanRow) -> str:
    if not isinstance(row, PlannedSend):
        return "skip"
    if row.state is not None:
        return row.state.name.lower()
    return "request" if row.wants_reply else str(row.mode)


def _topic(row: PlanRow) -> str:
    return row.messages[0].topic if isinstance(row, PlannedSend) else row.topic


def _queue(send: PlannedSend) -> str:
    return "any" if send.queue is None else one_line(f"{send.queue.broker} {send.queue.queue_id}")


def _key(row: PlanRow) -> str:
    return (row.captured_key if isinstance(row, PlannedSend) else row.unique_key) or ""


def _captured(send: PlannedSend) -> str:
    text = str(captured_side(send.captured))
    attempts = send.captured.response.attempts
    return f"{text} ×{attempts}" if attempts > 1 else text


def _note(row: PlanRow) -> str:
    if isinstance(row, PlannedSend):
        return ""
    return one_line(f"{row.why.value} ({row.detail})" if row.detail else row.why.value)


def _send_style(row: PlanRow) -> str:
    return "" if isinstance(row, PlannedSend) else Style.YELLOW


def plan_json(row: PlanRow) -> bytes:
    """Return a row of the plan as one JSON line."""
    origin = row.origin
    value: dict[str, object] = {
        "kind": "step" if isinstance(row, PlannedSend) else "skipped",
        "capture": origin.capture,
        "packet": origin.packet,
        "conversation": origin.conversation,
        "time": text_of_time(origin.time),
    }
    if isinstance(row, PlannedSend):
        value |= _step_value(row, row.captured)
    else:
        value |= {
            "why": row.why.name,
            "reason": row.why.value,
            "detail": row.detail,
            "topic": row.topic,
            "unique_key": row.unique_key,
        }
    return json.dumps(value).encode() + b"\n"


def _step_value(step: PlannedSend, captured: CapturedSend) -> dict[str, object]:
    queue = step.queue
    return {
        "step": step.number,
        "due_us": step.due // 1000,
        "mode": str(step.mode),
        "transaction": None if step.state is None else step.state.name,
        "topic": step.messages[0].topic,
        "group": step.group,
        "broker": queue.broker if queue else None,
        "queue_id": queue.queue_id if queue else None,
        "messages": len(step.messages),
        "unique_key": step.captured_key,
        "captured": str(captured_side(captured)),
        "captured_attempts": captured.response.attempts,
        "captured_latency_us": captured.response.latency_us,
    }


def summary_lines(planned: PlannedRun, sent: bool) -> list[str]:
    """Return the totals of a plan: messages, topics, duration, and skipped sends with reasons."""
    verb = "replayed" if sent else "would be replayed"
    messages = counted(planned.messages - planned.done_messages, "message")
    sends = counted(planned.sends - planned.done, "send")
    length = planned.last_due - (planned.first_due or 0) if planned.done else planned.last_due
    lines = [f"{messages} in {sends} {verb}, over {duration(max(0, length) // 1000)}"]
    if planned.done:
        lines[0] += f"; {count(planned.done)} done by the earlier run"
    topics = [f"{one_line(name)} {count(number)}" for name, number in planned.topics.most_common(8)]
    if topics:
        more = len(planned.topics) - len(topics)
        rest = f" and {more} more" if more > 0 else ""
        lines.append(f"topics: {', '.join(topics)}{rest}")
    return [*lines, *reason_lines(planned.skipped)]


def reason_lines(skipped: Counter[tuple[SkipReason, str]]) -> list[str]:
    """Return the skipped sends, one line per reason."""
    if not skipped:
        return []
    lines = [f"not replayed: {counted(sum(skipped.values()), 'command')}"]
    by_reason: dict[SkipReason, Counter[str]] = {}
    for (why, detail), number in skipped.items():
        by_reason.setdefault(why, Counter())[detail] += number
    for why, details in sorted(by_reason.items(), key=lambda item: -sum(item[1].values())):
        named = [f"{one_line(d)} {count(n)}" for d, n in details.most_common(_MOST_REASONS) if d]
        what = f": {', '.join(named)}" if named else ""
        lines.append(f"  {count(sum(details.values()))} {why.value}{what}")
    return lines
