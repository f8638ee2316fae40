"""Parse texts of header fields and message properties: ids, receipts, handles, contexts.

The name of a field or property selects the parser, never the shape of the value, except where
RocketMQ writes two kinds of ids into one field. An invalid text has no parts. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from .message_ids import (
    MINUTE_MS,
    created_at,
    decode_offset_id,
    decode_recall_handle,
    decode_unique_key,
    is_zone_known,
    maker_of,
    zone_of,
)
from .pop_receipts import (
    TOPIC_KINDS,
    PopEntry,
    decode_pop_list,
    decode_pop_receipt,
    decode_pop_record_id,
)
from .trace_context import SW8, TRACEPARENT, decode_sw8, decode_traceparent

LONGEST_TEXT: Final = 64 * 1024
"""Maximum characters of a parsed text; the offsets of a POP response have some thousands."""
MOST_IDS: Final = 1024
"""Maximum parsed ids of a list; a batch may have that many messages, seldom more."""

CREATION_TIME, COUNTER, UTC_OFFSET = "bornTime", "counter", "utcOffsetMinutes"
"""Parts of a client's id, after those of the client."""

Parts = dict[str, object]
"""Names and values in JSON types; `parts` has the parts of values by name."""
_Reader = Callable[[str, int], object]
"""Text and a nearby time in ms since the epoch → parts, or None if invalid."""


def header_parts(name: str | None, fields: Mapping[str, object], reference_ms: int) -> Parts:
    """Return the parts of typed header fields; empty if none has any.

    `reference_ms` is a time near that of the ids, ms since the epoch: their capture time.
    """
    parts: Parts = {}
    if _FIELD_NAMES.isdisjoint(fields):  # the usual case
        return parts
    for field, value in fields.items():
        if field not in _FIELD_NAMES:
            continue
        reader = FIELDS.get(f"{name}.{field}") or FIELDS.get(field)
        if reader is not None and isinstance(value, str) and len(value) <= LONGEST_TEXT:
            field_parts = reader(value, reference_ms)
            if field_parts:
                parts[field] = field_parts
    key = fields.get(_KEY)
    if fields.get("_UNIQUE_KEY_QUERY") == "true" and isinstance(key, str):
        field_parts = _unique_key(key, reference_ms)
        if field_parts:
            parts[_KEY] = field_parts
    return parts


def property_parts(properties: dict[str, str], reference_ms: int, noon: bool = False) -> Parts:
    """Return the parts of properties; empty if none has any.

    `reference_ms` is a time near that of the message's id, ms since the epoch: its bornTimestamp.
    `noon`: the client is so old that its ids may count from noon (`is_zone_known`).
    """
    parts: Parts = {}
    names = [name for name in properties if name in PROPERTIES]
    for name in names if len(names) < 2 else PROPERTIES:  # in the order of the table
        text = properties.get(name)
        if text is not None and len(text) <= LONGEST_TEXT:
            found = PROPERTIES[name](text, reference_ms)
            if found:
                parts[name] = found
    key = parts.get("UNIQ_KEY")
    if noon and isinstance(key, dict) and not is_zone_known(key.get(UTC_OFFSET, 0), True):
        key.pop(UTC_OFFSET, None)
    return parts


def _unique_key(text: str, reference_ms: int) -> Parts | None:
    key = decode_unique_key(text)
    if key is None:
        return None
    clock = created_at(key.month_offset, reference_ms)
    minutes = zone_of(clock - reference_ms)
    parts = _parts_of_maker(key.address, key.pid, key.loader_hash)
    parts[CREATION_TIME] = clock - (minutes or 0) * MINUTE_MS
    parts[COUNTER] = key.counter
    if minutes is not None and is_zone_known(minutes, False):
        parts[UTC_OFFSET] = minutes
    return parts


def maker_parts(text: str) -> Parts | None:
    """Return the parts of the start of a client's ids, or None."""
    maker = maker_of(text)
    return None if maker is None else _parts_of_maker(*maker)


def _parts_of_maker(address: str, pid: int, loader_hash: int) -> Parts:
    return {"address": address, "pid": pid, "loaderHash": _hash_text(loader_hash)}


@lru_cache(maxsize=4096)  # a client makes millions of ids
def _hash_text(loader_hash: int) -> str:
    return f"{loader_hash:08x}"


def _offset_id(text: str, _reference_ms: int = 0) -> Parts | None:
    offset_id = decode_offset_id(text)
    if offset_id is None:
        return None
    return {"storeHost": offset_id.store_host, "commitLogOffset": offset_id.physical_offset}


def _any_id(text: str, reference_ms: int) -> Parts | None:
    """Return the parts of an offset id or a client's id."""
    return _offset_id(text) or _unique_key(text, reference_ms)


def _ids(text: str, reference_ms: int) -> object:
    """Return the parts of an id, or of every id of a list; other texts stay."""
    if "," not in text:
        return _any_id(text, reference_ms)
    texts = text.split(",", MOST_IDS)
    parts = [_any_id(item, reference_ms) for item in texts]
    if not any(parts):
        return None
    return [part or item for part, item in zip(parts, texts, strict=True)]


def _message_key(text: str, reference_ms: int) -> Parts | None:
    """Return the parts of UNIQ_KEY: a client's id, or a broker's name for its own POP records."""
    parts = _unique_key(text, reference_ms)
    if parts is not None:
        return parts
    return _parts_in(decode_pop_record_id(text))


def _parts_in(found: msgspec.Struct | None) -> Parts | None:
    """Return the fields of what was parsed, in camel case."""
    return None if found is None else msgspec.to_builtins(found)


def _recalled_key(text: str, reference_ms: int) -> Parts | None:
    """Return the parts of the id in a recall, which follows the topic since 5.3.2."""
    return _unique_key(text.rpartition("+")[2], reference_ms)


def _receipt(text: str, _reference_ms: int) -> Parts | None:
    receipt = decode_pop_receipt(text)
    parts = _parts_in(receipt)
    if receipt is not None and parts is not None:
        parts["topicKind"] = TOPIC_KINDS.get(receipt.topic_kind, receipt.topic_kind)
    return parts


def _pop_list(name: str, *, single: bool) -> _Reader:
    """Return a reader of a list whose entries have one number of that name, or several."""

    def entry_parts(entry: PopEntry) -> Parts:
        parts: Parts = {
            "topicKind": TOPIC_KINDS.get(entry.topic_kind, entry.topic_kind),
            "queueId": entry.queue_id,
        }
        if entry.queue_offset is not None:
            parts["queueOffset"] = entry.queue_offset
        alone = single and len(entry.numbers) == 1
        return parts | {name: entry.numbers[0] if alone else list(entry.numbers)}

    def read(text: str, _reference_ms: int) -> object:
        pop_list = decode_pop_list(text)
        # A partly parsed list would look complete.
        return None if pop_list.unreadable else [entry_parts(entry) for entry in pop_list.entries]

    return read


def _recall_handle(text: str, reference_ms: int) -> Parts | None:
    handle = decode_recall_handle(text)
    if handle is None:
        return None
    parts: Parts = {
        "version": handle.version,
        "topic": handle.topic,
        "brokerName": handle.broker_name,
        "timestamp": handle.deliver_time,
        "messageId": handle.unique_key,
    }
    key = _unique_key(handle.unique_key, reference_ms)
    return parts if key is None else parts | {"parts": {"messageId": key}}


FIELDS: Final[dict[str, _Reader]] = {
    # A broker returns offset ids for a send and client ids for a recall, both as msgId.
    "msgId": _ids,
    "EndTransactionRequestHeader.msgId": _unique_key,
    "CheckTransactionStateRequestHeader.msgId": _unique_key,
    "RecallMessageResponseHeader.msgId": _unique_key,
    "offsetMsgId": _offset_id,
    "originMsgId": _any_id,
    "batchUniqId": _ids,
    "transactionId": _unique_key,
    "recallHandle": _recall_handle,
    "extraInfo": _receipt,
    "startOffsetInfo": _pop_list("startOffset", single=True),
    "msgOffsetInfo": _pop_list("offsets", single=False),
    "orderCountInfo": _pop_list("count", single=True),
}
"""`field` or `class.field` → its reader; a class row precedes the general one."""
_KEY: Final = "key"
"""a field that is a client's id if another field says so"""
_FIELD_NAMES: Final = frozenset(name.rpartition(".")[2] for name in FIELDS) | {_KEY}

PROPERTIES: Final[dict[str, _Reader]] = {
    "UNIQ_KEY": _message_key,
    "__transactionId__": _unique_key,
    "ORIGIN_MESSAGE_ID": _any_id,
    "DLQ_ORIGIN_MESSAGE_ID": _any_id,
    "TIMER_DEL_UNIQKEY": _recalled_key,
    "POP_CK": _receipt,
    TRACEPARENT: lambda text, _: _parts_in(decode_traceparent(text)),
    SW8: lambda text, _: _parts_in(decode_sw8(text)),
}
"""Property → its reader."""
