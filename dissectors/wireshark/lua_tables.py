"""The tables of the Lua dissector, derived from those of `remoting`: plain values for `literal_of`.

Rules: nothing about RocketMQ is spelled here that `remoting` says; names with several meanings and
meanings of numbers are asked of its functions, so that both sides say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ..findings import FindingKind, Severity
from ..ports import BROKER, CONTAINER, CONTROLLER, NAMESRV, VIP
from ..remoting.bodies.registry import SUCCESSES
from ..remoting.code_names import OPERATIONS, REQUEST_NAMES, response_name, wide_request_code
from ..remoting.codes import (
    FORMER_RESPONSES,
    LanguageCode,
    RequestCode,
    ResponseCode,
    SerializeType,
)
from ..remoting.flags import (
    MEANINGS,
    Describer,
    describe_duration_ms,
    describe_time_ms,
)
from ..remoting.framing.frame import MAX_FRAME, PREFIX
from ..remoting.framing.search import MAX_SOUGHT_HEADER
from ..remoting.header_codec import BINARY_TYPE, JSON_TYPE, MIN_BINARY_HEADER
from ..remoting.header_tables import FieldType
from ..remoting.headers import HEADERS, HOOK_FIELDS, SECRET_FIELDS, SECRET_WORDS
from ..remoting.ids.pop_receipts import ORDER_REVIVE_QUEUE
from ..remoting.ids.trace_context import SW8, TRACEPARENT
from ..remoting.messages.properties import PROPERTIES, PropertyType
from ..remoting.messages.record_layout import (
    MAGIC_FILLER,
    MAGIC_V1,
    MAGIC_V2,
    MIN_ITEM_SIZE,
    MIN_RECORD_SIZE,
)
from ..remoting.sysflag import (
    COMPRESSION_NAMES,
    TRANSACTION_MASK,
    TRANSACTION_NAMES,
    SysFlag,
    names_of,
)
from ..remoting.versions import HIGHER_VERSION, VERSIONS
from ..rows.outcome import NORMAL_RESPONSES

OWN: Final = frozenset((
    "body", "code", "data", "expert", "ext", "flag", "json", "kind", "language", "length",
    "message", "missing", "name", "opaque", "operation", "other", "property", "remark", "skipped",
    "text", "time", "version",
))  # fmt: skip
"""Names of the dissector's own fields that a header field must not take."""

_PROPERTY_TYPES: Final = {
    PropertyType.TEXT: FieldType.STRING,
    PropertyType.BOOLEAN: FieldType.BOOLEAN,
    PropertyType.INT: FieldType.LONG,
    PropertyType.TIME_MS: FieldType.LONG,
    PropertyType.MS: FieldType.LONG,
    PropertyType.SECONDS: FieldType.LONG,
}
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_.-]")


class FilterField(NamedTuple):
    """One field that a filter can name."""

    name: str
    """RocketMQ's name: the long one of a header field, that of a property."""
    abbreviation: str
    """What stands behind `rocketmq.` in a filter."""
    type: FieldType
    """How it is read and compared."""
    meaning: str = ""
    """`time` where a number is milliseconds since the epoch."""


def header_filter(name: str) -> str:
    """Return what stands behind `rocketmq.` for a header field of that long name."""
    return f"header.{name}" if name in OWN else name


def property_filter(name: str) -> str:
    """Return what stands behind `rocketmq.` for a message property of that name."""
    return f"property.{_NOT_ALLOWED.sub('', name)}"


def header_filters() -> tuple[FilterField, ...]:
    """Return every header field of any class, hook fields and credentials among them, by name.

    A name that has two types is a text.
    """
    types: dict[str, FieldType] = {}
    for fields in HEADERS.values():
        for field in fields:
            known = types.setdefault(field.name, field.type)
            types[field.name] = field.type if known is field.type else FieldType.STRING
    for name in (*HOOK_FIELDS, *SECRET_FIELDS):
        types.setdefault(name, FieldType.STRING)
    return tuple(FilterField(name, header_filter(name), types[name]) for name in sorted(types))


def property_filters() -> tuple[FilterField, ...]:
    """Return every property that has a name of its own in filters."""
    known = [
        FilterField(
            row.name,
            property_filter(row.name),
            _PROPERTY_TYPES[row.type],
            "time" if row.type is PropertyType.TIME_MS else "",
        )
        for row in PROPERTIES
    ]
    traces = (
        FilterField(name, property_filter(name), FieldType.STRING) for name in (TRACEPARENT, SW8)
    )
    return (*known, *traces)


PORTS: Final = ",".join(map(str, (NAMESRV, CONTAINER, VIP, BROKER, CONTROLLER)))
"""conversations there are RocketMQ's; others are recognized by their bytes"""

_FOUND: Final = {
    FindingKind.BAD_FRAME: "MALFORMED",
    FindingKind.FRAME_TOO_LARGE: "MALFORMED",
    FindingKind.FRAME_CUT: "REASSEMBLE",
    FindingKind.BAD_HEADER: "MALFORMED",
    FindingKind.BAD_FIELD: "PROTOCOL",
    FindingKind.UNKNOWN_CODE: "UNDECODED",
    FindingKind.BAD_BODY: "UNDECODED",
    FindingKind.BAD_MESSAGE: "PROTOCOL",
    FindingKind.OPAQUE_REUSED: "SEQUENCE",
}
"""Findings that the dissector has in common with rmqtool → Wireshark's group of them."""
_FOUND_THERE: Final = (
    ("error_response", "a response with a failure", "RESPONSE_CODE", "WARN"),
    ("other_response", "neither a success nor a failure", "RESPONSE_CODE", "CHAT"),
    ("no_request", "a response to a request that was not captured", "SEQUENCE", "NOTE"),
    ("no_response", "a request without a response", "SEQUENCE", "WARN"),
    ("oneway_response", "a response to a oneway request", "SEQUENCE", "WARN"),
)
"""Findings that are columns in rmqtool: name, meaning, group, severity."""
_SEVERITIES: Final = {
    Severity.CHAT: "CHAT",
    Severity.NOTE: "NOTE",
    Severity.WARNING: "WARN",
    Severity.ERROR: "ERROR",
}
_SMALL: Final = range(-1, 64)
"""Values of which the meaning is asked one by one; the few larger ones are those of `_LARGE`."""
_LARGE: Final = (ORDER_REVIVE_QUEUE,)
_NO_BIT: Final = 1 << 30
"""A bit that no flag has: describers of bits show it as it is."""
_SOME_TIME: Final = 1_700_000_000_000


def tables() -> dict[str, object]:
    """Return every table of the dissector by its name."""
    return {
        "prefix": PREFIX,
        "max_frame": MAX_FRAME,
        "max_sought_header": MAX_SOUGHT_HEADER,
        "min_binary_header": MIN_BINARY_HEADER,
        "json_type": JSON_TYPE,
        "binary_type": BINARY_TYPE,
        "magic_v2": MAGIC_V2,
        "magic_filler": MAGIC_FILLER,
        "min_record_size": MIN_RECORD_SIZE,
        "min_item_size": MIN_ITEM_SIZE,
        "register_broker": int(RequestCode.REGISTER_BROKER),
        "ports": PORTS,
        "magics": {MAGIC_V1: "V1", MAGIC_V2: "V2"},
        "serialize_types": {int(one): one.name for one in SerializeType},
        "successes": dict.fromkeys(sorted(SUCCESSES), True),
        "normal_responses": dict.fromkeys(sorted(NORMAL_RESPONSES), True),
        "secrets": {name.lower(): letters for name, letters in SECRET_FIELDS.items()},
        "secret_words": SECRET_WORDS,
        "compressions": {bits >> 8: name for bits, name in COMPRESSION_NAMES.items()},
        "sys_flag_bits": _sys_flag_bits(),
        "languages": {int(one): one.name for one in LanguageCode},
        "versions": dict(enumerate(VERSIONS)),
        "requests": dict(sorted(REQUEST_NAMES.items())),
        "responses": _response_names(),
        "ambiguous_responses": _ambiguous_responses(),
        "wide_codes": {
            wire: wide_request_code(wire)
            for wire in range(-0x8000, 0x8000)
            if wide_request_code(wire) != wire
        },
        "operations": _operations(),
        "short_names": _short_names(),
        "headers": _headers(),
        "ext_fields": [_row_of(one) for one in header_filters()],
        "properties": [_row_of(one) for one in property_filters()],
        "meanings": _meanings(),
        "experts": _findings(),
    }


def _row_of(field: FilterField) -> dict[str, object]:
    row: dict[str, object] = {
        "name": field.name,
        "abbreviation": field.abbreviation,
        "type": field.type.value,
    }
    return row | ({"meaning": field.meaning} if field.meaning else {})


def _sys_flag_bits() -> list[dict[str, object]]:
    """Return the names of bits and of fields of bits: `value` in the units of the lowest bit.

    The compression type is not among them: it says something only where the body is compressed.
    """
    bits = [_bits(int(one), int(one), one.name or "") for one in SysFlag]
    bits += [
        _bits(TRANSACTION_MASK, value, f"TRANSACTION_{name.upper()}")
        for value, name in TRANSACTION_NAMES.items()
        if value
    ]
    return bits


def _bits(mask: int, value: int, name: str) -> dict[str, object]:
    unit = mask & -mask
    return {"unit": unit, "span": mask // unit + 1, "value": value // unit, "name": name}


def _response_codes() -> list[int]:
    return sorted({*map(int, ResponseCode), *(one.code for one in FORMER_RESPONSES)})


def _response_names() -> dict[int, str]:
    return {code: response_name(code) for code in _response_codes()}


def _ambiguous_responses() -> dict[int, object]:
    """Return the codes whose name depends on the request or on the server's version."""
    found: dict[int, object] = {}
    some_request = int(RequestCode.SEND_MESSAGE)
    for code in _response_codes():
        usual = response_name(code)
        requests = {
            request: name
            for request in sorted(REQUEST_NAMES)
            if (name := response_name(code, request)) != usual
        }
        alone = _version_ranges(code, None)
        versions = _version_ranges(code, some_request)
        if requests or alone or versions:
            found[code] = {"requests": requests, "versions": versions, "versions_alone": alone}
    return found


def _version_ranges(code: int, request: int | None) -> list[list[object]]:
    """Return (first, last, name) of the versions in which a response code has another name."""
    usual = response_name(code, request)
    ranges: list[list[object]] = []
    for version in range(HIGHER_VERSION + 2):
        name = response_name(code, request, version)
        if name == usual:
            continue
        if ranges and ranges[-1][1:] == [version - 1, name]:
            ranges[-1][1] = version
        else:
            ranges.append([version, version, name])
    return ranges


def _operations() -> dict[int, list[object]]:
    """Return request header, response header, request body, response body; false for none."""
    return {
        int(code): [
            one.request_header or False,
            one.response_header or False,
            one.request_body or False,
            one.response_body or False,
        ]
        for code, one in sorted(OPERATIONS.items())
    }


def _short_names() -> dict[int, object]:
    """Return the wire names of the fields that a list of packets shows, where they are letters."""
    found: dict[int, object] = {}
    for code, operation in sorted(OPERATIONS.items()):
        fields = HEADERS.get(operation.request_header or "", ())
        letters = {one.name: one.wire for one in fields if one.wire != one.name}
        if letters:
            found[int(code)] = {name: letters[name] for name in ("topic", "queueId", "sysFlag")}
    return found


def _headers() -> dict[str, object]:
    """Return by class: fields by wire name (long name, type), what is required, wire names."""
    found: dict[str, object] = {}
    for name, fields in HEADERS.items():
        # As in `headers.typed_header`: what came or went with a release is not missed.
        required = [one for one in fields if one.required and not one.since and not one.until]
        found[name] = {
            "fields": {one.wire: [one.name, one.type.value] for one in fields},
            "required": [one.name for one in required],
            "wires": {one.name: one.wire for one in required},
        }
    return found


def _meanings() -> dict[str, dict[str, object]]:
    """Return by class, `*` for all, and field: what numbers mean."""
    found: dict[str, dict[str, object]] = {}
    for (name, field), describe in MEANINGS.items():
        found.setdefault(name, {})[field] = _meaning(describe)
    return found


def _meaning(describe: Describer) -> dict[str, object]:
    """Return what a describer says of small numbers, and what it takes large ones for."""
    # A describer is a function: what it says of a few numbers shows its kind.
    some = describe(_SOME_TIME)
    kind = None
    if some == describe_time_ms(_SOME_TIME):
        kind = "time"
    elif some == describe_duration_ms(_SOME_TIME):
        kind = "duration"
    elif describe(0x701) == "|".join(names_of(0x701)):
        return {"kind": "sys_flag"}
    elif describe(_NO_BIT) == f"{_NO_BIT:#x}":
        return {"bits": _bits_of(describe)}
    values = {} if kind == "duration" else _texts_of(describe, (*_SMALL, *_LARGE), kind)
    more = describe(_SMALL.stop)
    return {
        "kind": kind,
        "values": values or None,
        "more": more if kind is None and more == describe(_NO_BIT) else None,
    }


def _bits_of(describe: Describer) -> list[dict[str, object]]:
    named = ((1 << place, describe(1 << place)) for place in range(16))
    return [_bits(bit, bit, name) for bit, name in named if name and name != f"{bit:#x}"]


def _texts_of(
    describe: Callable[[int], str | None], values: Iterable[int], kind: str | None
) -> dict[int, str]:
    found = {value: text for value in values if (text := describe(value)) is not None}
    if kind == "time":
        return {value: text for value, text in found.items() if text != describe_time_ms(value)}
    return found


def _findings() -> list[dict[str, object]]:
    found: list[dict[str, object]] = [
        {
            "name": kind.name.lower(),
            "meaning": kind.meaning,
            "group": group,
            "severity": _SEVERITIES[kind.severity],
        }
        for kind, group in _FOUND.items()
    ]
    names = ("name", "meaning", "group", "severity")
    return found + [dict(zip(names, row, strict=True)) for row in _FOUND_THERE]
