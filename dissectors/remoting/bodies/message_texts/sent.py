"""Write the message of a send as JSON from its body and its typed header.

The text equals that of `shown_message`, parts included; tests compare the bytes. Compressed
messages and those of RocketMQ itself are left to it. Fields are in the order of `ShownMessage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ....json_bytes import put_integer
from ...sysflag import compression_of
from ..contents import is_trace
from ..custom import has_decoders
from ..messages import number_in, text_in
from .shared import Properties, Topic, put_content, put_transaction

SENT_FORM: Final = "raw-message"
"""form of a body with one message"""


@final
class _Parts:
    """State kept between messages."""

    __slots__ = ("properties", "topic")

    def __init__(self) -> None:
        self.topic = Topic()
        self.properties = Properties()


_SPARE: Final[list[_Parts]] = []
"""unused instances"""
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
        parts = _SPARE.pop()
    except IndexError:
        parts = _Parts()
    written = text_in(fields, "properties")
    text = _text_of(parts.topic, parts.properties, body, fields, written, near_ms)
    if len(written) <= _MOST_KEPT:  # otherwise it has memory for as many bytes again
        _SPARE.append(parts)
    return text


def _text_of(
    topic: Topic,
    properties: Properties,
    body: bytes,
    fields: Mapping[str, object],
    written: str,
    near_ms: i64,
) -> bytes | None:
    out = BytesWriter()
    topic.set(text_in(fields, "topic"))
    sys_flag = number_in(fields, "sysFlag")
    if topic.is_own or is_trace(body) or compression_of(sys_flag) is not None:
        return None
    try:
        raw = written.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    properties.set(raw, 0, len(raw))
    born_ms: i64 = number_in(fields, "bornTimestamp")
    out.write(b'[{"topic":')
    out.write(topic.text)
    out.write(b',"queueId":')
    put_integer(out, number_in(fields, "queueId"))
    properties.write(out)
    out.write(b',"flag":')
    put_integer(out, number_in(fields, "flag"))
    out.write(b',"sysFlag":')
    put_integer(out, sys_flag)
    put_transaction(out, sys_flag)
    out.write(b',"bornTimestamp":')
    put_integer(out, born_ms)
    out.write(b',"reconsumeTimes":')
    put_integer(out, number_in(fields, "reconsumeTimes"))
    put_content(out, body)
    if born_ms:
        near_ms = born_ms
    properties.write_parts(out, near_ms)
    out.write(b"}]")
    return out.getvalue()
