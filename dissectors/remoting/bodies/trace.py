"""Message traces that Java clients send to the trace topic.

A trace body is records ended by 0x02, with fields separated by 0x01. A record with too few fields
keeps them as a list, and is a problem; extra fields are ignored. RocketMQ: TraceDataEncoder,
TraceConstants, TraceBean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...foreign import integer_of
from ..flags import MESSAGE_TYPES

FIELD_SEPARATOR: Final = "\x01"
RECORD_SEPARATOR: Final = "\x02"

CONTEXT_CODES: Final = ("SUCCESS", "TIME_OUT", "EXCEPTION", "RETURNNULL", "FAILED")
"""Consumption result by its number in the record."""

_PUB: Final = (
    "timeStamp",
    "regionId",
    "group",
    "topic",
    "msgId",
    "tags",
    "keys",
    "storeHost",
    "bodyLength",
    "costTime",
    "msgType",
)
_SUB_BEFORE: Final = ("timeStamp", "regionId", "group", "requestId", "msgId", "retryTimes", "keys")
_SUB_AFTER: Final = ("requestId", "msgId", "costTime", "success", "keys")
_END: Final = ("timeStamp", "regionId", "group", "topic", "msgId", "tags", "keys", "storeHost")

FORMS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "Pub": (
        (*_PUB, "success"),
        (*_PUB, "offsetMsgId", "success"),
        (*_PUB, "offsetMsgId", "success", "clientHost"),
    ),
    "SubBefore": (
        _SUB_BEFORE,
        (*_SUB_BEFORE, "clientHost"),  # from Go and Python; Java's reader ignores it
    ),
    "SubAfter": (
        _SUB_AFTER,
        (*_SUB_AFTER, "contextCode"),
        (*_SUB_AFTER, "contextCode", "timeStamp", "group"),
    ),
    "EndTransaction": (
        (*_END, "msgType", "transactionId", "transactionState", "fromTransactionCheck"),
    ),
    "Recall": (("timeStamp", "regionId", "group", "topic", "msgId", "success"),),
}
"""Kind of record → its fields, one tuple per release; their number tells which."""

_NUMBERS: Final = frozenset({"timeStamp", "bodyLength", "costTime", "retryTimes"})
_BOOLEANS: Final = frozenset({"success", "fromTransactionCheck"})
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "msgType": MESSAGE_TYPES,
    "contextCode": CONTEXT_CODES,
}


@dataclass(frozen=True, slots=True)
class TraceRecords:
    """Records of a trace body."""

    records: tuple[dict[str, object], ...]
    """Each with `kind` and its fields by name; unknown ones with `kind` and `fields`."""
    problem: str | None = None
    """Problem of the records, or None."""


def decode_trace(body: bytes) -> TraceRecords:
    """Decode the body of a trace message; never raises."""
    # Each record has an end, so a complete body leaves an empty rest.
    *texts, rest = body.decode("utf-8", "replace").split(RECORD_SEPARATOR)
    records: list[dict[str, object]] = []
    strange = 0
    for text in texts:
        record = _decode_record(text.split(FIELD_SEPARATOR))
        strange += "fields" in record
        records.append(record)
    problem = f"{strange} records have not the fields of their kind" if strange else None
    if rest:
        records.append({"kind": rest.partition(FIELD_SEPARATOR)[0], "fields": [rest]})
        problem = problem or "the last record has no end"
    return TraceRecords(tuple(records), problem)


def _decode_record(fields: list[str]) -> dict[str, object]:
    kind, *values = fields
    names = form_of(kind, len(values))
    if names is None:
        return {"kind": kind, "fields": values}
    read = {name: _read_field(name, text) for name, text in zip(names, values, strict=False)}
    return {"kind": kind, **read}


def form_of(kind: str, count: int) -> tuple[str, ...] | None:
    """Return the longest form with at most so many fields; extra fields are ignored, as in Java."""
    fitting = [form for form in FORMS.get(kind, ()) if len(form) <= count]
    return max(fitting, key=len, default=None)


def _read_field(name: str, text: str) -> object:
    # Java appends a null reference as this word.
    if text == "null":
        return None
    if name in _BOOLEANS and text in ("true", "false"):
        return text == "true"
    number = integer_of(text) if name in _NUMBERS or name in _NAMES else None
    if number is None:
        return text
    names = _NAMES.get(name)
    if names is None:
        return number
    return names[number] if 0 <= number < len(names) else number


def encode_trace(records: Iterable[Mapping[str, object]]) -> bytes:
    """Encode trace records; their members select the form. Raise ValueError if none matches.

    Records have `kind` and the members that `decode_trace` returns, in any order.
    """
    parts: list[str] = []
    for record in records:
        kind = str(record.get("kind"))
        names = record.keys() - {"kind"}
        form = next((form for form in FORMS.get(kind, ()) if names == set(form)), None)
        if form is None:
            raise ValueError(f"no {kind} record has the fields {', '.join(sorted(names))}")
        parts += [kind, *(FIELD_SEPARATOR + _field_text(name, record[name]) for name in form)]
        parts.append(RECORD_SEPARATOR)
    return "".join(parts).encode()


def _field_text(name: str, value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = _NAMES.get(name, ())
    return str(names.index(value) if isinstance(value, str) and value in names else value)
