"""Bodies with messages (sent, batches, stored), and messages as values for output.

A sent message has the same type as a stored one, with the fields of its send header, and defaults
for fields that only a broker sets. RocketMQ: SendMessageProcessor, MessageDecoder,
ClientRemotingProcessor.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Mapping
from typing import Final

from ...budget import Budget
from ...foreign import integer_of
from ..fastjson.codec import decode_json
from ..headers import typed_header
from ..ids.message_ids import encode_offset_id
from ..messages.batch import decode_batch, is_inner_batch, unwrap_inner_batch
from ..messages.compression import DEFAULT_LIMIT
from ..messages.message import StoredMessage
from ..messages.properties import decode_properties
from ..messages.records import decode_messages
from ..sysflag import COMPRESSION_BITS, compression_of, transaction_of
from ..topic_names import OFFSET_MOVED_TOPIC, OP_HALF_TOPIC, REVIVE_PREFIX, is_trace_topic
from .body import RAW, Body, BodyInput, ShownMessage, message_dict
from .custom import custom_content, has_decoders
from .json_body import typed_body
from .trace import FORMS, decode_trace

TRACE: Final = "trace-records"
OFFSETS: Final = "queue-offsets"

_REVIVE_CLASSES: Final = {"ck": "PopCheckPoint", "ack": "AckMsg", "bAck": "BatchAckMsg"}
"""Tag → class of a record in the revive topic."""
_OWN_TOPICS: Final = frozenset((OP_HALF_TOPIC, OFFSET_MOVED_TOPIC))
_TRACE_STARTS: Final = tuple(f"{kind}\x01".encode() for kind in FORMS)


# Messages of RocketMQ itself are recognised by topic and tag; those of applications are left
# alone. RocketMQ: TopicValidator, PopAckConstants, TransactionalMessageUtil, OffsetMovedEvent.
def is_own_topic(topic: str) -> bool:
    """Return whether RocketMQ itself writes messages of this topic."""
    return is_trace_topic(topic) or topic.startswith(REVIVE_PREFIX) or topic in _OWN_TOPICS


def is_trace(data: bytes) -> bool:
    """Return whether a message body begins like a trace."""
    return data.startswith(_TRACE_STARTS)


def content_of(message: StoredMessage, data: bytes) -> Body | None:
    """Decode the (decompressed) body of a message of RocketMQ itself, or return None."""
    topic = message.topic
    # Clients may send traces to a topic of their own, so that the bytes decide, too.
    if is_trace_topic(topic) or is_trace(data):
        trace = decode_trace(data)
        return Body(TRACE, list(trace.records), problem=trace.problem)
    if topic.startswith(REVIVE_PREFIX):
        name = _REVIVE_CLASSES.get(message.tags or "")
        return typed_body(name, decode_json(data)) if name else None
    if topic == OFFSET_MOVED_TOPIC:
        return typed_body("OffsetMovedEvent", decode_json(data))
    if topic == OP_HALF_TOPIC:
        return _offsets_of(data)
    return None


def _offsets_of(data: bytes) -> Body | None:
    """Decode queue offsets of finished half messages, joined with commas."""
    texts = [text for text in data.decode("utf-8", "replace").split(",") if text]
    offsets = [integer_of(text) for text in texts]
    return None if None in offsets or not offsets else Body(OFFSETS, offsets)


PREVIEW_LIMIT: Final = 4096
"""Default number of bytes of a message body in output."""
INNER_FREE: Final = 64 * 1024
INNER_TIMES: Final = 64
"""Maximum expansion of an inner batch: this number of bytes, and a multiple of its size."""
TEXT, BASE64 = "text", "base64"
"""Forms of a message body in output."""
PROBLEMS_LIMIT: Final = 8
"""Problems of a body that are listed; further ones are counted."""


def decode_raw_message(source: BodyInput) -> Body:
    """Decode the body of a send: one message, whose other parts are in the header."""
    message = _sent_message(source)
    problem = None
    if message.compression is not None:
        # Only to find damage: the output is dropped, and has a budget of its own.
        problem = message.decompressed(budget=_checks_of(source)).problem
    return Body(source.form, None, (message,), problem)


def _sent_message(source: BodyInput) -> StoredMessage:
    fields = source.fields
    if fields is None:
        fields = typed_header(source.request_code, False, source.ext_fields).fields
    properties = text_in(fields, "properties")
    return StoredMessage(
        text_in(fields, "topic"),
        source.body,
        decode_properties(properties),
        queue_id=number_in(fields, "queueId"),
        flag=number_in(fields, "flag"),
        queue_offset=number_in(fields, "queueOffset"),
        sys_flag=number_in(fields, "sysFlag"),
        born_timestamp=number_in(fields, "bornTimestamp"),
        born_host=text_in(fields, "bornHost"),
        store_timestamp=number_in(fields, "storeTimestamp"),
        store_host=text_in(fields, "storeHost"),
        reconsume_times=number_in(fields, "reconsumeTimes"),
        raw_properties=properties.encode("utf-8", "replace"),
    )


def text_in(fields: Mapping[str, object], name: str) -> str:
    """Return the text of a typed field, or an empty text."""
    return str(fields.get(name) or "")


def number_in(fields: Mapping[str, object], name: str) -> int:
    """Return the integer of a typed field, or 0."""
    value = fields.get(name)
    return value if isinstance(value, int) else 0


def decode_batch_messages(source: BodyInput) -> Body:
    """Decode the body of a batch send: messages that share topic, queue, and creation time of the
    header.
    """
    batch = decode_batch(source.body)
    if not batch.items:
        return Body(RAW, problem=_joined(batch.problems))
    common = _sent_message(source)
    sys_flag = common.sys_flag & ~COMPRESSION_BITS  # items never are
    messages = tuple(
        StoredMessage(
            common.topic,
            item.body,
            item.properties,
            body_crc=item.body_crc,
            queue_id=common.queue_id,
            flag=item.flag,
            sys_flag=sys_flag,
            born_timestamp=common.born_timestamp,
            born_host="",
            store_host="",
            reconsume_times=common.reconsume_times,
            offset=item.offset,
            missing=item.missing,
            raw_properties=item.raw_properties,
        )
        for item in batch.items
    )
    return Body(source.form, None, messages, _joined(batch.problems))


def decode_stored_messages(source: BodyInput) -> Body:
    """Decode a body of stored records, including inner batches."""
    records = decode_messages(source.body)
    problems = list(records.problems)
    if not records.messages:
        return Body(RAW, problem=_joined(problems) or "no record")
    messages: list[StoredMessage] = []
    notes: list[str] = []
    room = DEFAULT_LIMIT
    sound = True
    for record in records.messages:
        if record.crc_ok is False:
            sound = False
            problems.append((record.offset, "the body does not have the record's CRC"))
        if record.properties_crc_ok is False:
            sound = False
            problems.append((record.offset, "the record does not have the CRC of its properties"))
        if record.compression is not None and record.missing == 0 and room > 0:
            # Bodies together are decompressed to at most the limit of one: otherwise a few bytes
            # of every record could cost megabytes each.
            output = record.decompressed(room, _checks_of(source))
            room -= len(output.data)
            if output.problem is not None:
                problems.append((record.offset, output.problem))
        inner = [record]
        if is_inner_batch(record):
            # A message takes 18 bytes in it, and much more as a value.
            most = min(room, INNER_FREE + INNER_TIMES * len(record.body))
            inner = unwrap_inner_batch(record, max(most, 0), _checks_of(source))
            sound = False  # the CRCs of its messages are not checked
        if len(inner) > 1:
            notes.append(f"the record at {record.offset} holds {len(inner)} messages")
        messages += inner
    problems.sort()
    odd = tuple(notes[:PROBLEMS_LIMIT])
    return Body(source.form, None, tuple(messages), _joined(problems), odd, sound)


def _checks_of(source: BodyInput) -> Budget | None:
    return None if source.budget is None else source.budget.checks


def _joined(problems: list[tuple[int, str]] | tuple[tuple[int, str], ...]) -> str | None:
    """Join problems, each with its offset, or return None."""
    if not problems:
        return None
    texts = [f"{text} (at {offset})" for offset, text in problems[:PROBLEMS_LIMIT]]
    if len(problems) > PROBLEMS_LIMIT:
        texts.append(f"and {len(problems) - PROBLEMS_LIMIT} more")
    return "; ".join(texts)


def message_value(
    message: StoredMessage, preview: int = PREVIEW_LIMIT, budget: Budget | None = None
) -> dict[str, object]:
    """Return a message in JSON types, like `shown_message`, as a dictionary."""
    return message_dict(shown_message(message, preview, budget))


def shown_message(
    message: StoredMessage,
    preview: int = PREVIEW_LIMIT,
    budget: Budget | None = None,
    sound: bool = False,
) -> ShownMessage:
    """Return a message in JSON types, with RocketMQ's names and `preview` bytes of its body.

    Fields that only a broker sets are omitted for a sent message. The body is decompressed, as text
    if it is UTF-8 and as base64 otherwise (`bodyForm`). `sound`: its CRCs are known to match.
    """
    properties: dict[str, str] = message.properties
    keys = properties.get("KEYS")
    # By position, as `exchange_row.record_of` does it.
    shown = ShownMessage(
        message.topic,
        message.queue_id,
        properties.get("UNIQ_KEY"),
        properties.get("TAGS"),
        keys.split() if keys is not None else [],
        properties,
        message.flag,
        message.sys_flag,
        transaction_of(message.sys_flag),
        message.born_timestamp,
        message.reconsume_times,
    )
    if message.total_size:
        _add_stored(shown, message, sound)
    if message.missing:
        shown.missing = message.missing
    _add_body(shown, message, preview, budget)
    return shown


def _add_stored(shown: ShownMessage, message: StoredMessage, sound: bool) -> None:
    crc = message.body_crc
    shown.queue_offset = message.queue_offset
    shown.commit_log_offset = message.physical_offset
    shown.offset_msg_id = encode_offset_id(message.store_host, message.physical_offset)
    shown.born_host = message.born_host
    shown.store_timestamp = message.store_timestamp
    shown.store_host = message.store_host
    shown.prepared_transaction_offset = message.prepared_transaction_offset
    shown.store_size = message.total_size
    shown.version = message.version
    shown.body_crc = crc
    # A body without a CRC is neither right nor wrong, also where all others are known to match.
    shown.crc_ok = True if sound and crc != 0 and not message.missing else message.crc_ok


def _add_body(
    shown: ShownMessage, message: StoredMessage, preview: int, budget: Budget | None
) -> None:
    compression = compression_of(message.sys_flag)
    data: bytes = message.body
    shown.body_size = len(data)
    custom = has_decoders()
    limit = DEFAULT_LIMIT if custom else preview  # plug-ins get whole bodies
    truncated = len(data) > limit
    problem: str | None = None
    if compression is not None:
        output = message.decompressed(limit, budget)
        data, truncated, problem = output.data, output.truncated, output.problem
        shown.compression = compression
    elif truncated:
        data = data[:limit]
    missing = message.missing > 0
    cut = truncated or missing
    content = None if truncated else content_of(message, data)
    if custom and content is None and not cut and problem is None:
        content = custom_content(message, data)
    truncated = truncated or len(data) > preview
    shown.body, shown.body_form = text_or_base64(data[:preview], cut=cut or truncated)
    shown.body_truncated = truncated
    if problem is not None and not missing:
        shown.body_problem = problem
    if content is not None:
        shown.content = {"kind": content.kind, "value": content.value}
        if content.problem is not None:
            shown.content_problem = content.problem


def text_or_base64(data: bytes, cut: bool = False) -> tuple[str, str]:
    """Return bytes as text or base64, and the form; a truncated last character is dropped."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data) if cut else data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), BASE64
    if "\0" in text:  # binary data that happens to be UTF-8
        return base64.b64encode(data).decode(), BASE64
    return text, TEXT
