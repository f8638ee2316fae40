"""Exchange of a gRPC call → ExchangeRecord: what each column of the row is taken from.

Imported with the first call. Columns of the remoting protocol that a call has nothing for are
empty: request code, version by number, serialised header.
"""

from __future__ import annotations

from typing import Final

from ..conversations.conversation import Pdu
from ..conversations.conversation_row import conversation_end
from ..conversations.handshake import round_trip_of
from ..grpc.command import NO_CODE, CallColumns, CallCommand
from ..remoting.row_facts.names import ACCOUNT, fact
from ..rows.record import UNANSWERED, ExchangeRecord
from ..tcp.capture import CAPTURE_SHIFT
from .exchange import Exchange

_NUMBER_MASK: Final = (1 << CAPTURE_SHIFT) - 1
_REFUSED: Final = frozenset((40100, 40300))
"""codes of a client that may not do what it asks: UNAUTHORIZED, FORBIDDEN"""


def call_record_of(exchange: Exchange, capture: str) -> ExchangeRecord:
    """Return the row of a call; `capture` is the name of the capture that completed it."""
    request = exchange.request
    response = exchange.response
    one = request if request is not None else response
    assert one is not None
    command = one.command
    assert isinstance(command, CallCommand)
    asked = command.columns if request is not None else CallColumns()
    reset = _reset(response)
    facts = list(asked.facts)
    answer = response.command if response is not None else None
    assert answer is None or isinstance(answer, CallCommand)
    given = answer.columns if answer is not None else CallColumns()
    facts += given.facts
    if answer is not None and answer.code in _REFUSED and command.account:
        facts.append(fact(ACCOUNT, command.account))
    shown = None if reset else response
    shown_answer = None if reset else answer
    status = UNANSWERED if reset else exchange.status
    return ExchangeRecord(
        capture=capture,
        conversation=exchange.conversation,
        requester=exchange.requester,
        responder=exchange.responder,
        status=status,
        request_packet=_number(request),
        response_packet=_number(shown),
        request_time=request.ts if request is not None else None,
        response_time=shown.ts if shown is not None else None,
        latency_us=(shown.ts - request.ts) // 1000 if shown and request else None,
        opaque=command.opaque,
        request_code=None,
        request_name=command.operation if request is None else command.name,
        response_code=_code(shown_answer),
        response_name=(shown_answer.name if shown_answer is not None else None) or None,
        remark=(shown_answer.remark if shown_answer is not None else None) or None,
        language=command.language or None,
        version=None,
        version_name=command.client_version,
        serialize_type=command.serialize_type,
        topic=asked.topic,
        group=asked.group,
        queue_id=_first(asked.queue_id, given.queue_id),
        broker_name=asked.broker_name,
        unique_key=asked.unique_key or given.unique_key,
        keys=asked.keys,
        tags=asked.tags,
        body_bytes=asked.body_bytes or given.body_bytes,
        request_bytes=request.frame_bytes if request is not None else None,
        response_bytes=shown.frame_bytes if shown is not None else None,
        missing_bytes=_missing(request) + _missing(shown),
        message_count=_first(asked.message_count, given.message_count),
        queue_offset=_first(given.queue_offset, asked.queue_offset),
        offset_msg_id=None,
        rtt_us=_rtt_us(one),
        end=_end(request, shown),
        expert=[info.kind.name for pdu in (request, shown) if pdu for info in pdu.expert or ()],
        facts=facts,
    )


def _reset(response: Pdu | None) -> bool:
    """Return whether a response stands for none."""
    return (
        response is not None
        and isinstance(response.command, CallCommand)
        and (response.command.is_reset)
    )


def _code(answer: CallCommand | None) -> int | None:
    """Return the code of an answer; None: there is none, or the capture does not have it."""
    return None if answer is None or answer.code == NO_CODE else answer.code


def _first(one: int | None, other: int | None) -> int | None:
    return one if one is not None else other


def _number(pdu: Pdu | None) -> int | None:
    return pdu.packet & _NUMBER_MASK if pdu is not None else None


def _missing(pdu: Pdu | None) -> int:
    return int(pdu.missing) if pdu is not None else 0


def _rtt_us(pdu: Pdu) -> int | None:
    rtt = round_trip_of(pdu.direction.conversation)
    return rtt // 1000 if rtt >= 0 else None


def _end(request: Pdu | None, response: Pdu | None) -> str | None:
    """Return how the connection of a request without answer stood when that was given up."""
    if request is None or response is not None or request.flag & 2:
        return None
    return conversation_end(request.direction.conversation)
