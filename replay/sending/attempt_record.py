"""Convert attempts to rows of the decoded log, so reports read our sends like captures.

Rules: an attempt without a response, or without a connection, is `unanswered`, with the error as
the remark.
"""

from __future__ import annotations

from typing import Final

from dissectors.remoting.code_names import request_name, response_name
from dissectors.remoting.versions import version_name
from dissectors.rows.record import ANSWERED, ONEWAY, UNANSWERED, ExchangeRecord

from ..message import Attempt, AttemptOutcome, Message

NO_CAPTURE: Final = "-"
_STATUSES: Final = {AttemptOutcome.ANSWERED: ANSWERED, AttemptOutcome.ONEWAY: ONEWAY}
_ENDS: Final = {
    AttemptOutcome.TIMEOUT: "open",
    AttemptOutcome.LOST: "closed",
    AttemptOutcome.GARBAGE: "closed",
}
"""how the connection of a request without response was when it was given up"""


def record_of_attempt(
    message: Message, attempt: Attempt, capture: str = NO_CAPTURE
) -> ExchangeRecord:
    """Return the row of an attempt to send `message`; `capture` is the value of that column."""
    status = _STATUSES.get(AttemptOutcome(attempt.outcome), UNANSWERED)
    answered = status == ANSWERED
    queue_id = attempt.queue.queue_id if attempt.queue_id is None else attempt.queue_id
    return ExchangeRecord(
        capture=capture,
        conversation=attempt.conversation,
        client_address=attempt.local,
        server_address=attempt.address,
        status=status,
        # nothing was captured, so there are no packets
        request_packet=None,
        response_packet=None,
        request_time=attempt.begin,
        response_time=attempt.end if answered else None,
        latency_us=attempt.latency_us if answered else None,
        opaque=attempt.opaque,
        request_code=attempt.request_code,
        request_name=request_name(attempt.request_code),
        response_code=attempt.code,
        response_name=None if attempt.code is None else response_name(attempt.code),
        remark=attempt.remark or (None if answered else attempt.error),
        language=attempt.language,
        version=attempt.version,
        version_name=version_name(attempt.version),
        serialize_type=attempt.serialize_type,
        topic=attempt.queue.topic,
        group=attempt.group or None,
        queue_id=queue_id,
        broker_name=attempt.queue.broker_name,
        unique_key=message.unique_key,
        keys=message.keys,
        tags=message.tags,
        body_bytes=attempt.body_bytes,
        request_bytes=attempt.request_bytes,
        response_bytes=attempt.response_bytes,
        missing_bytes=0,
        message_count=attempt.message_count,
        queue_offset=attempt.queue_offset,
        offset_msg_id=attempt.offset_msg_id,
        rtt_us=None,
        end=_ENDS.get(AttemptOutcome(attempt.outcome)),
        findings=[],
    )
