"""Which body an operation carries, and who reads and writes it.

The operations name their bodies (`code_names.OPERATIONS`): a class of the tables, or one of the
forms below. A body is never dropped: what is not understood comes back as `raw` with the reason.
RocketMQ: the processors of the broker, the NameServer, the controller and the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...budget import Budget
from ...expert import undecoded
from ..code_names import operation_of, request_name
from ..codes import RequestCode
from ..messages.batch import BatchItem, encode_batch
from ..messages.message import StoredMessage, encode_message
from .body import NONE, RAW, Body, BodyInput
from .json_body import decode_json_body, decode_reset_offset, decode_unknown, encode_json_body
from .messages import (
    PREVIEW_LIMIT,
    decode_batch_messages,
    decode_raw_message,
    decode_stored_messages,
    message_value,
)
from .registration import decode_registration
from .secrets import without_secrets
from .texts import (
    decode_properties_text,
    decode_text,
    decode_timer_checkpoint,
    encode_properties_text,
    encode_text,
    encode_timer_checkpoint,
)

SUCCESSES: Final = frozenset({0, 200})
"""Response codes of answers whose body is the operation's: SUCCESS, and what DLedger answers."""

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
"""(request code, response) of bodies that are not always what the operation's table says."""


def body_form(request_code: int, response: bool, version: int | None = None) -> str | None:
    """Return the class or form of an operation's body; None where it has none or is not known."""
    operation = operation_of(request_code, version)
    if operation is None:
        return None
    return operation.response_body if response else operation.request_body


def decode_body(
    request_code: int,
    response: bool,
    response_code: int,
    body: bytes,
    ext_fields: Mapping[str, str],
    version: int | None = None,
    budget: Budget | None = None,
    fields: Mapping[str, object] | None = None,
) -> Body:
    """Return what the body of a request with this code says, or of the response to one; never
    raises.

    `response_code` is looked at for responses only: an error answer seldom has a body, and then it
    need not be the operation's. `version` is the sender's MQVersion ordinal, `budget` what
    compressed bodies may become, `fields` the ext fields of a request, typed, where they are known.
    """
    if not body:
        return Body(NONE)
    form = body_form(request_code, response, version)
    if form is None:
        side = "response to" if response else "request"
        reason = f"no body is known of a {side} {request_name(request_code, version)}"
        return decode_unknown(body, reason)
    given = BodyInput(form, request_code, response, body, ext_fields, budget, fields)
    decoder = SPECIAL.get((request_code, response)) or FORMS.get(form) or decode_json_body
    try:
        decoded = decoder(given)
    except Exception as error:  # the last line of defence: one body never ends a run
        return Body(RAW, problem=undecoded(error))
    if response and response_code not in SUCCESSES and decoded.problem is not None:
        return decode_unknown(body, f"a body on an answer with code {response_code}")
    return decoded


def encode_body(
    request_code: int, response: bool, value: object, *, standard_json: bool = False
) -> bytes:
    """Return the body of an operation, of the value that `decode_body` gives for it.

    Messages are given as a sequence of `StoredMessage` (or `BatchItem`), raw messages as bytes.
    `standard_json`: quoted integer keys and ASCII, as NameServers answer clients since V4_9_4.
    ValueError for what the operation cannot carry.
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


def body_value(
    body: Body, preview: int = PREVIEW_LIMIT, *, secrets: bool = False, messages: bool = True
) -> dict[str, object]:
    """Return a body in JSON types: kind, value or messages, and what is wrong or odd, if anything
    is.

    Passwords and secret keys are masked unless `secrets` asks for them; the messages of
    applications are never changed. `messages` False leaves them out.
    """
    shown: dict[str, object] = {"kind": body.kind}
    if body.messages:
        if messages:
            shown["messages"] = [message_value(message, preview) for message in body.messages]
    elif body.kind not in (RAW, NONE):
        shown["value"] = body.value if secrets else without_secrets(body.value)
    if body.problem is not None:
        shown["problem"] = body.problem
    if body.notes:
        shown["notes"] = list(body.notes)
    return shown
