"""What came of a step beside what the capture says: the journal's row of an outcome.

Rules: a step failed where a broker or the client refused it; where nobody knows, because no answer
came, it is `unknown`. A difference is one of result, code, queue and attempts.
"""

from __future__ import annotations

from ..errors import BrokerError, ClientError, SendFailed
from ..message import Attempt, SendMode, SendResult
from ..plan.planner import PlannedSend
from .compare import captured_side
from .journal_rows import OutcomeEntry, Result
from .resend import Sent


def outcome_of(step: PlannedSend, sent: Sent, late_ns: int, again: bool) -> OutcomeEntry:
    """Return the row of a step that has ended; `again`: it may have been sent by an earlier run
    too.
    """
    result, answer = sent.result, step.captured.answer
    last = sent.attempts[-1] if sent.attempts else None
    row = OutcomeEntry(
        step=step.number,
        capture=step.origin.capture,
        packet=step.origin.packet,
        conversation=step.origin.conversation,
        time=step.origin.time,
        topic=step.messages[0].topic,
        unique_keys=keys_of(step),
        captured_key=step.captured_key,
        messages=len(step.messages),
        mode=step.mode.value,
        result=_result_of(step, sent),
        status=result.status.value if result is not None and _is_answered(step) else None,
        code=_code_of(sent.error, last),
        reason=_reason_of(sent.error, last),
        late_us=max(0, late_ns) // 1000,
        attempts=max(1, len(sent.attempts)),
        maybe_twice=again or sent.maybe_stored_before,
        state=None if step.state is None else step.state.name.lower(),
        captured_code=answer.code,
        captured_result=captured_side(step.captured).result,
        captured_latency_us=answer.latency_us,
        captured_attempts=answer.attempts,
        captured_broker=answer.broker,
    )
    _add_place(row, result, last)
    row.differences = _differences(row, step.captured.place[1])
    return row


def keys_of(step: PlannedSend) -> list[str]:
    """Return the UNIQ_KEYs of a step's messages, as they are sent."""
    return [message.unique_key or "" for message in step.messages]


def _is_answered(step: PlannedSend) -> bool:
    return step.mode is not SendMode.ONEWAY or step.state is not None or step.wants_reply


def _result_of(step: PlannedSend, sent: Sent) -> Result:
    if sent.result is not None:
        return Result.stored if _is_answered(step) else Result.sent
    return Result.unknown if sent.is_unknown else Result.failed


def _code_of(error: ClientError | None, last: Attempt | None) -> int | None:
    """Return the response code; what never reached a broker has none."""
    if last is not None:
        return last.code
    return error.code if isinstance(error, BrokerError) else None


def _reason_of(error: ClientError | None, last: Attempt | None) -> str | None:
    if error is None:
        return None
    cause = error.cause if isinstance(error, SendFailed) and error.cause is not None else error
    return (last.remark if last is not None else None) or cause.reason


def _add_place(row: OutcomeEntry, result: SendResult | None, last: Attempt | None) -> None:
    if last is not None:
        row.broker, row.address = last.queue.broker_name, last.address
        row.queue_id, row.queue_offset = last.queue.queue_id, last.queue_offset
        row.latency_us = last.latency_us
    if result is not None:
        row.broker, row.queue_id = result.queue.broker_name or row.broker, result.queue.queue_id
        row.queue_offset = result.queue_offset


def _differences(row: OutcomeEntry, captured_queue: int) -> list[str]:
    found = []
    if row.result is not row.captured_result is not Result.not_captured:
        found.append(f"result {row.captured_result} → {row.result}")
    if row.code is not None and row.captured_code is not None and row.code != row.captured_code:
        found.append(f"code {row.captured_code} → {row.code}")
    if row.queue_id is not None and row.queue_id >= 0 and row.queue_id != captured_queue:
        found.append(f"queue {captured_queue} → {row.queue_id}")
    if row.attempts != row.captured_attempts:
        found.append(f"attempts {row.captured_attempts} → {row.attempts}")
    return found
