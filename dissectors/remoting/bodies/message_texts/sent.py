"""The message of a send as JSON, written from its body and its typed header.

The text is what `shown_message` is written as, parts included; tests hold both to the same bytes. A
message that is compressed or RocketMQ's own is left to it. The order of the fields is that of
`ShownMessage`.
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
"""the form of a body that is one message"""


@final
class _Parts:
    """What is kept from one message to the next."""

    __slots__ = ("properties", "topic")

    def __init__(self) -> None:
        self.topic = Topic()
        self.properties = Properties()


_SPARE: Final[list[_Parts]] = []
"""those that no thread uses now"""
_MOST_KEPT: Final = 64 * 1024
"""characters of properties up to which their memory is used again"""


def text_of_sent(body: bytes, fields: Mapping[str, object], near_ms: i64) -> bytes | None:
    """Return the message of a send as a list in JSON; None where it is odd, or there is none.

    `fields` is the header of the request, typed. `near_ms` is a time near that of ids of messages
    without a time, ms since the epoch.
    """
    if not body or has_decoders():
        return None
    try:
        parts = _SPARE.pop()
    except IndexError:
        parts = _Parts()
    written = text_in(fields, "properties")
    text = _text_of(parts.topic, parts.properties, body, fields, written, near_ms)
    if len(written) <= _MOST_KEPT:  # else it has memory for as many bytes again
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
    except UnicodeEncodeError:  # half a surrogate pair
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
