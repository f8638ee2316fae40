"""Typed reading of ext fields: which Java class a command's fields belong to, and what they are.

Rules: the tables in `header_tables` are the union of 4.0 to 5.5, so a field of any release is
typed; what a table does not know (hooks, other clients' additions) stays text under its own name.
Nothing raises because of what a peer sent: a value that does not parse stays text and is named in
`problems`, as RocketMQ itself goes on with such a header. The letters of SendMessageRequestHeaderV2
become long names here and letters again on the way out.
RocketMQ: RemotingCommand.decodeCommandCustomHeader, makeCustomHeaderToNet, CommandCustomHeader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ..foreign import integer_of, real_of
from .code_names import operation_of
from .codes import RequestCode
from .header_tables.admin import ADMIN_HEADERS, CLASSLESS
from .header_tables.auth import AUTH_HEADERS
from .header_tables.consumer import CONSUMER_HEADERS
from .header_tables.controller import CONTROLLER_HEADERS
from .header_tables.field import EARLY_RPC, TOPIC_RPC, FieldType, HeaderField
from .header_tables.former import FORMER_HEADERS
from .header_tables.namesrv import NAMESRV_HEADERS
from .header_tables.pop import POP_HEADERS
from .header_tables.pull import PULL_HEADERS
from .header_tables.send import SEND_HEADERS

__all__ = [
    "HEADERS",
    "HOOK_FIELDS",
    "SECRET_FIELDS",
    "SECRET_WORDS",
    "FieldType",
    "HeaderField",
    "TypedHeader",
    "encode_ext_fields",
    "header_fields",
    "header_name",
    "mask_secret",
    "typed_header",
]

HEADERS: Final[dict[str, tuple[HeaderField, ...]]] = {
    "RpcRequestHeader": EARLY_RPC,
    "TopicRequestHeader": TOPIC_RPC,
    "TopicQueueRequestHeader": TOPIC_RPC,
    **SEND_HEADERS,
    **PULL_HEADERS,
    **CONSUMER_HEADERS,
    **POP_HEADERS,
    **ADMIN_HEADERS,
    **AUTH_HEADERS,
    **NAMESRV_HEADERS,
    **CONTROLLER_HEADERS,
    **FORMER_HEADERS,
}
"""Java class → its fields, inherited ones last, in the order in which the class writes them."""

HOOK_FIELDS: Final[dict[str, str]] = {
    "AccessKey": "who signed the request (ACL)",
    "Signature": "signature over ext fields and body (ACL)",
    "SecurityToken": "temporary credential (ACL)",
    "ReqT": "request type of a stream client, 0 = STREAM",
    "__ZONE_NAME": "zone of the client, for routes of one zone",
    "__ZONE_MODE": "true: only routes of the client's zone",
    "_UNIQUE_KEY_QUERY": "true: the key is a UNIQ_KEY",
    "READ_AHEAD_MODE": "madvise constant for the commit log",
    "E_T": "timer engine to switch to: R RocksDB, F files",
    "MSG_REGION": "region of the broker, for traces",
    "TRACE_ON": "false: the broker wants no traces",
    "IS_SUPPORT_HEART_BEAT_V2": "true: short heartbeats are understood",
    "IS_SUB_CHANGE": "true: the broker saw a changed subscription",
    "Owner": "account of a commercial broker",
    "AUTH_TYPE": "account of a commercial broker: how it was authenticated",
    "OWNER_PARENT": "account of a commercial broker: parent account",
    "OWNER_SELF": "account of a commercial broker: own account",
}
"""Ext fields that no header class has: hooks and handlers add them beside the header's fields."""

SECRET_FIELDS: Final[dict[str, int]] = {
    "AccessKey": 4,
    "Signature": 0,
    "SecurityToken": 0,
    "SecretKey": 0,
    "accessKey": 4,  # ACL 1.0 administration, CreateAccessConfigRequestHeader
    "secretKey": 0,
}
"""Ext field that must not be shown → how many leading characters may be, at the most."""
SECRET_WORDS: Final = ("password", "secret")
"""A field or member is a secret, too, when its name has one of these words."""

_SHOWN_LETTERS: Final = {name.lower(): letters for name, letters in SECRET_FIELDS.items()}
_MASK = "***"  # of one length, so that it does not tell the length of the secret


class TypedHeader(NamedTuple):
    """The ext fields of one command, typed."""

    name: str | None
    """Java class of the header; None where the operation has none or is not known."""
    fields: dict[str, object]
    """Long name → str, int, bool or float, in the order of the class; unknown ones last, as str."""
    problems: tuple[str, ...]
    """Fields that are missing or do not parse, each in one sentence."""


def _read_int32(text: str) -> int:
    number = integer_of(text)
    if number is None or not -0x80000000 <= number <= 0x7FFFFFFF:
        raise ValueError(text)
    return number


def _read_int64(text: str) -> int:
    number = integer_of(text)
    if number is None:
        raise ValueError(text)
    return number


_BOOLEANS: Final = {"true": True, "false": False}


def _read_boolean(text: str) -> bool:
    # Java takes every other text for false; showing it as it is says more.
    value = _BOOLEANS.get(text)
    if value is None:
        value = _BOOLEANS.get(text.lower())
        if value is None:
            raise ValueError(text)
    return value


def _read_double(text: str) -> float:
    number = real_of(text)
    if number is None:
        raise ValueError(text)
    return number


def _read_boundary(text: str) -> str:
    upper = text.upper()
    if upper not in ("LOWER", "UPPER"):  # Java takes it for LOWER
        raise ValueError(text)
    return upper


_Reader = Callable[[str], object]

_READERS: Final[dict[FieldType, _Reader | None]] = {
    FieldType.STRING: None,
    FieldType.INT: _read_int32,
    FieldType.LONG: _read_int64,
    FieldType.BOOLEAN: _read_boolean,
    FieldType.DOUBLE: _read_double,
    FieldType.BOUNDARY: _read_boundary,
}


class _Step(NamedTuple):
    """One field as the reading loop wants it."""

    name: str
    wire: str
    read: _Reader | None
    expected: bool


class _Layout(NamedTuple):
    """One header class as the reading loop wants it."""

    steps: tuple[_Step, ...]
    wires: frozenset[str]
    expected: int


def _layout_of(fields: tuple[HeaderField, ...]) -> _Layout:
    # A field that came or went with a release is not missed: the sender may be of another one.
    steps = tuple(
        _Step(
            field.name,
            field.wire,
            _READERS[field.type],
            field.required and not field.since and not field.until,
        )
        for field in fields
    )
    return _Layout(steps, frozenset(s.wire for s in steps), sum(s.expected for s in steps))


_LAYOUTS: Final[dict[str | None, _Layout]] = {
    name: _layout_of(fields) for name, fields in HEADERS.items()
}
_NO_LAYOUT: Final = _layout_of(())
_CLASSLESS: Final[dict[tuple[int, bool], _Layout]] = {
    (int(RequestCode[name]), False): _layout_of(fields) for name, fields in CLASSLESS.items()
}


def header_fields(name: str) -> tuple[HeaderField, ...]:
    """Return the fields of a header class; empty for an unknown class and for one without
    fields.
    """
    return HEADERS.get(name, ())


def header_name(request_code: int, response: bool, version: int | None = None) -> str | None:
    """Java class of the ext fields of a request with this code, or of the response to one."""
    operation = operation_of(request_code, version)
    if operation is None:
        return None
    return operation.response_header if response else operation.request_header


def _layout(name: str | None, request_code: int, response: bool) -> _Layout:
    if name is None:
        return _CLASSLESS.get((request_code, response), _NO_LAYOUT)
    return _LAYOUTS.get(name, _NO_LAYOUT)


def typed_header(
    request_code: int,
    response: bool,
    ext_fields: Mapping[str, str],
    version: int | None = None,
) -> TypedHeader:
    """Return the ext fields of a request with this code, or of the response to one, typed; never
    raises.

    `version` is the sender's MQVersion ordinal. A response without any required field is taken for
    an answer without header, as error answers are, and not for a broken one.
    """
    name = header_name(request_code, response, version)
    fields: dict[str, object] = {}
    problems: list[str] = []
    missing: list[str] = []
    known = 0
    layout = _layout(name, request_code, response)
    for field, wire, read, required in layout.steps:
        text = ext_fields.get(wire)
        if text is None:
            if required:
                missing.append(field)
            continue
        known += 1
        if read is None:
            fields[field] = text
            continue
        try:
            fields[field] = read(text)
        except (ValueError, AttributeError, TypeError):  # not a str: a header decoder's slip
            fields[field] = text
            problems.append(f"{field} does not parse: {str(text)[:40]!r}")
    if missing and not (response and len(missing) == layout.expected):
        problems.extend(f"{field} is missing" for field in missing)
    if known != len(ext_fields):
        _keep_unknown(ext_fields, layout.wires, fields, problems)
    return TypedHeader(name, fields, tuple(problems))


def _keep_unknown(
    ext_fields: Mapping[str, str],
    known: frozenset[str],
    fields: dict[str, object],
    problems: list[str],
) -> None:
    """Add what the class does not have; a long name beside its own letter must not replace it."""
    for name, text in ext_fields.items():
        if name in known:
            continue
        if name in fields:
            problems.append(f"{name} is there twice: the value of its letter is shown")
        else:
            fields[name] = text


def encode_ext_fields(
    request_code: int,
    response: bool,
    fields: Mapping[str, object],
    version: int | None = None,
) -> dict[str, str]:
    """Ext fields as the wire has them, of typed values by long name: the reverse of `typed_header`.

    Fields of the class come first, in its order, then all others under their own name; None is
    left out, as Java leaves out null.
    """
    name = header_name(request_code, response, version)
    steps = _layout(name, request_code, response).steps
    encoded = {step.wire: _text_of(fields[step.name]) for step in steps if step.name in fields}
    own = {step.name for step in steps}
    for field, value in fields.items():
        if field not in own:
            encoded[field] = _text_of(value)
    return {key: text for key, text in encoded.items() if text is not None}


def _text_of(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def mask_secret(name: str, value: str) -> str:
    """Return the value as it may be shown: unchanged, or masked if the ext field `name` is a
    secret, in whatever case it is written.
    """
    shown = _shown_letters(name)
    if shown is None or not value:
        return value
    return value[: min(shown, len(value) // 3)] + _MASK  # never more than a third of a short one


@lru_cache(1024)
def _shown_letters(name: str) -> int | None:
    """Return how many characters of a secret may be shown, at the most; None for no secret."""
    lower = name.lower()
    if any(word in lower for word in SECRET_WORDS):
        return 0
    return _SHOWN_LETTERS.get(lower)
