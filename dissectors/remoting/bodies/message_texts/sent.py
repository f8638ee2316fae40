"""Write the message of a send as JSON from its body and its typed header.

The text equals that of `shown_message`, parts included; tests compare the bytes. Compressed
messages and those of RocketMQ itself are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ...sysflag import compression_of
from ..contents import is_trace
from ..custom import has_decoders
from ..messages import number_in, text_in
from .shared import MessageText

SENT_FORM: Final = "raw-message"
"""form of a body with one message"""
_SPARE: Final[list[MessageText]] = []
"""unused instances: a list, because threads share it"""
_MOST_KEPT: Final = 64 * 1024
"""maximum characters of properties whose memory is reused"""


def text_of_sent(body: bytes, fields: Mapping[str, object], near_ms: i64) -> bytes | None:
    """Return the message of a send as a JSON list, or None if it is odd or missing.

    `fields` is the typed request header. `near_ms` is a time near that of ids without a time, ms
    since the epoch.
    """
    if not body or has_decoders():
        return None
    try:
        message = _SPARE.pop()
    except IndexError:
        message = MessageText()
    properties = text_in(fields, "properties")
    text = _text_of(message, body, fields, properties, near_ms)
    if len(properties) <= _MOST_KEPT:  # otherwise it has memory for as many bytes again
        _SPARE.append(message)
    return text


def _text_of(
    message: MessageText, body: bytes, fields: Mapping[str, object], properties: str, near_ms: i64
) -> bytes | None:
    message.set_topic(text_in(fields, "topic"))
    sys_flag = number_in(fields, "sysFlag")
    if message.has_own_topic or is_trace(body) or compression_of(sys_flag) is not None:
        return None
    try:
        raw = properties.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    message.set_properties(raw, 0, len(raw))
    out = BytesWriter()
    out.write(b"[")
    message.put_start(
        out,
        number_in(fields, "queueId"),
        number_in(fields, "flag"),
        sys_flag,
        number_in(fields, "bornTimestamp"),
        number_in(fields, "reconsumeTimes"),
    )
    message.put_end(out, body, near_ms)
    out.write(b"]")
    return out.getvalue()
