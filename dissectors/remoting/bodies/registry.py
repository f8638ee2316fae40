"""Bodies by operation, with their decoders and encoders.

The operations name their bodies (`code_names.OPERATIONS`): a class of the tables, or one of the
forms below. A body is never dropped: an undecodable one becomes `raw`, with the reason. RocketMQ:
the processors of the broker, the NameServer, the controller and the client.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...budget import Budget
from ...findings import undecoded
from ..code_names import operation_of, request_name
from ..codes import DLEDGER_SUCCESS, RequestCode, ResponseCode
from ..messages.batch import BatchItem, encode_batch
from ..messages.message import StoredMessage, encode_message
from .body import NONE, RAW, Body, BodyInput
from .json_body import decode_json_body, decode_reset_offset, decode_unknown, encode_json_body
from .messages import decode_batch_messages, decode_raw_message, decode_stored_messages
from .registration import decode_registration
from .secrets import without_secrets

_SEPARATOR: Final = re.compile("[=:]")
_TIMER_FIELDS: Final = (
    "lastReadTimeMs",
    "lastTimerLogFlushPos",
    "lastTimerQueueOffset",
    "masterTimerQueueOffset",
    "dataVersionStateVersion",
    "dataVersionTimestamp",
    "dataVersionCounter",
)
"""The seven longs of a timer check point, in order."""


def _decode_text(body: bytes) -> tuple[str, str | None]:
    try:
        return body.decode(), None
    except UnicodeDecodeError as error:
        return body.decode("utf-8", "replace"), f"invalid UTF-8 at byte {error.start}"


def decode_text(source: BodyInput) -> Body:
    """Decode plain text: a group name, the source of a filter class."""
    text, problem = _decode_text(source.body)
    return Body(source.form, text, problem=problem)


def encode_text(value: object) -> bytes:
    """Encode plain text."""
    if not isinstance(value, str):
        raise ValueError(f"a text is a str, not {type(value).__name__}")
    return value.encode()


def decode_properties_text(source: BodyInput) -> Body:
    """Decode lines of `name=value` or `name:value` as in properties files, without comments."""
    text, problem = _decode_text(source.body)
    properties: dict[str, object] = {}
    strange = 0
    for line in text.split("\n"):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        match = _SEPARATOR.search(line)
        name, value = (line[: match.start()], line[match.end() :]) if match else (line, "")
        strange += match is None
        properties[name.strip()] = value.strip()
    notes = (f"{strange} lines without = or :",) if strange else ()
    return Body(source.form, properties, problem=problem, notes=notes)


def encode_properties_text(value: object) -> bytes:
    """Encode properties, one `name=value` per line, each line ended."""
    if not isinstance(value, dict):
        raise ValueError(f"properties are a dict, not {type(value).__name__}")
    lines = [f"{name}={item}" for name, item in value.items()]
    if any("\n" in line for line in lines):
        raise ValueError("a line end inside a property")
    return "".join(f"{line}\n" for line in lines).encode()


def decode_timer_checkpoint(source: BodyInput) -> Body:
    """Decode seven longs: times in ms, positions in bytes, offsets in entries."""
    body = source.body
    count = min(len(body) // 8, len(_TIMER_FIELDS))
    if count == 0:
        return Body(RAW, problem=f"{len(body)} bytes are not a timer check point")
    numbers = struct.unpack_from(f">{count}q", body)
    value: object = dict(zip(_TIMER_FIELDS, numbers, strict=False))
    size = 8 * len(_TIMER_FIELDS)
    problem = None if len(body) == size else f"{len(body)} bytes instead of {size}"
    return Body(source.form, value, problem=problem)


def encode_timer_checkpoint(value: object) -> bytes:
    """Encode a timer check point; raise ValueError if it is invalid."""
    if not isinstance(value, dict):
        raise ValueError(f"a timer check point is a dict, not {type(value).__name__}")
    try:
        return struct.pack(f">{len(_TIMER_FIELDS)}q", *(value[name] for name in _TIMER_FIELDS))
    except (KeyError, struct.error) as error:
        raise ValueError(f"not a timer check point: {error}") from error


SUCCESSES: Final = frozenset((int(ResponseCode.SUCCESS), DLEDGER_SUCCESS))
"""Codes of responses with the operation's body."""

FORMS: Final[dict[str, Callable[[BodyInput], Body]]] = {
    "raw-message": decode_raw_message,
    "batch-messages": decode_batch_messages,
    "stored-messages": decode_stored_messages,
    "stored-message": decode_stored_messages,
    "properties-text": decode_properties_text,
    "text": decode_text,
    "timer-checkpoint": decode_timer_checkpoint,
}
"""Forms that are not a class of the tables."""

SPECIAL: Final[dict[tuple[int, bool], Callable[[BodyInput], Body]]] = {
    (RequestCode.REGISTER_BROKER, False): decode_registration,
    (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, False): decode_reset_offset,
}
"""(request code, response) of bodies that may differ from the operation table."""


def body_form(request_code: int, response: bool) -> str | None:
    """Return the class or form of an operation's body, or None if unknown or absent."""
    operation = operation_of(request_code)
    if operation is None:
        return None
    return operation.response_body if response else operation.request_body


def decode_body(
    request_code: int,
    response: bool,
    response_code: int,
    body: bytes,
    ext_fields: Mapping[str, str],
    budget: Budget | None = None,
    fields: Mapping[str, object] | None = None,
) -> Body:
    """Decode the body of a request with this code, or of its response; never raises.

    `response_code` matters only for responses: an error response seldom has a body, and then it
    need not be the operation's. `budget` limits decompression, `fields` are the typed ext fields of
    a request, if known.
    """
    if not body:
        return Body(NONE)
    form = body_form(request_code, response)
    if form is None:
        side = "response to" if response else "request"
        reason = f"no body is known of a {side} {request_name(request_code)}"
        return decode_unknown(body, reason)
    source = BodyInput(form, request_code, response, body, ext_fields, budget, fields)
    decoder = SPECIAL.get((request_code, response)) or FORMS.get(form) or decode_json_body
    try:
        decoded = decoder(source)
    except Exception as error:  # the last line of defence: one body never ends a run
        return Body(RAW, problem=undecoded(error))
    # The body of an error response may be that of its operation, or anything else.
    if response and response_code not in SUCCESSES and decoded.problem is not None:
        return decode_unknown(body, f"a body on a response with code {response_code}")
    return decoded


def encode_body(
    request_code: int, response: bool, value: object, *, standard_json: bool = False
) -> bytes:
    """Encode the body of an operation from the value that `decode_body` returns.

    Messages are a sequence of `StoredMessage` (or `BatchItem`), raw messages are bytes.
    `standard_json`: quoted integer keys and ASCII, as in NameServer responses since V4_9_4. Raise
    ValueError for a value that the operation cannot carry.
    """
    form = body_form(request_code, response)
    if form is None:
        raise ValueError(f"{request_name(request_code)} has no body here")
    if form == "raw-message":
        if not isinstance(value, bytes):
            raise ValueError("the body of a send is bytes")
        return value
    if form in ("stored-messages", "stored-message", "batch-messages"):
        return _encode_messages(form, value)
    writer = _TEXT_WRITERS.get(form)
    if writer is not None:
        return writer(value)
    return encode_json_body(form, value, standard=standard_json)


_TEXT_WRITERS: Final[dict[str, Callable[[object], bytes]]] = {
    "properties-text": encode_properties_text,
    "text": encode_text,
    "timer-checkpoint": encode_timer_checkpoint,
}


def _encode_messages(form: str, value: object) -> bytes:
    if not isinstance(value, Sequence):
        raise ValueError(f"{form} are a sequence, not {type(value).__name__}")
    if form == "batch-messages":
        return encode_batch([_item_of(message) for message in value])
    if not all(isinstance(message, StoredMessage) for message in value):
        raise ValueError(f"{form} are made of StoredMessage")
    return b"".join(map(encode_message, value))


def _item_of(message: object) -> BatchItem:
    if isinstance(message, BatchItem):
        return message
    if not isinstance(message, StoredMessage):
        raise ValueError(f"a batch is made of messages, not of {type(message).__name__}")
    return BatchItem(
        message.body,
        message.properties,
        message.flag,
        message.body_crc,
        missing=message.missing,
        raw_properties=message.raw_properties,
    )


def body_value(body: Body, *, secrets: bool = False) -> dict[str, object]:
    """Return a body without its messages, in JSON types: kind, value, and problems or notes.

    Passwords and secret keys are masked unless `secrets`.
    """
    shown: dict[str, object] = {"kind": body.kind}
    # Messages are shown by themselves, and an undecoded body by its bytes.
    if not body.messages and body.kind not in (RAW, NONE):
        shown["value"] = body.value if secrets else without_secrets(body.value)
    if body.problem is not None:
        shown["problem"] = body.problem
    if body.notes:
        shown["notes"] = list(body.notes)
    return shown
