"""Typed ext fields: the Java class of a command's fields, and their values.

The tables are the union of 4.0 to 5.5; unknown fields (of hooks, of other clients) stay text under
their own names. Letters of SendMessageRequestHeaderV2 become long names. RocketMQ:
RemotingCommand.decodeCommandCustomHeader, makeCustomHeaderToNet, CommandCustomHeader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, final

from ..foreign import integer_of, real_of
from .code_names import operation_of
from .codes import RequestCode
from .header_tables import CLASSLESS, HEADER_CLASSES, FieldType, HeaderField


def _int32_of(text: str) -> int | None:
    number = integer_of(text)
    return number if number is not None and -0x80000000 <= number <= 0x7FFFFFFF else None


_BOOLEANS: Final = {"true": True, "false": False}


def _boolean_of(text: str) -> bool | None:
    # Java reads every other text as false; showing it unchanged is more informative.
    value = _BOOLEANS.get(text)
    return value if value is not None else _BOOLEANS.get(text.lower())


def _boundary_of(text: str) -> str | None:
    upper = text.upper()
    return upper if upper in ("LOWER", "UPPER") else None  # Java reads any other as LOWER


Reader = Callable[[str], object]
"""Text → value, or None for an invalid text."""

_READERS: Final[dict[FieldType, Reader | None]] = {
    FieldType.STRING: None,
    FieldType.INT: _int32_of,
    FieldType.LONG: integer_of,
    FieldType.BOOLEAN: _boolean_of,
    FieldType.DOUBLE: real_of,
    FieldType.BOUNDARY: _boundary_of,
}
"""Type → its reader; None: the text itself."""


HEADERS: Final = HEADER_CLASSES
"""Java class → its fields in the order of the class, inherited ones last."""

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
"""Ext fields of no header class: added by hooks and handlers."""

SECRET_FIELDS: Final[dict[str, int]] = {
    "AccessKey": 4,
    "Signature": 0,
    "SecurityToken": 0,
    "SecretKey": 0,
    "accessKey": 4,  # ACL 1.0 administration, CreateAccessConfigRequestHeader
    "secretKey": 0,
}
"""Secret ext field → maximum number of leading characters to show."""
SECRET_WORDS: Final = (
    "password", "passwd", "secret", "privatekey", "apikey", "authtoken", "sessiontoken",
    "exporterheader",
)  # fmt: skip
"""Words that make the name of a field or member a secret, without hyphens and underscores.

An exporter header of BrokerConfig and ProxyConfig has the authorization for the collector.
"""

_SHOWN_LETTERS: Final = {name.lower(): letters for name, letters in SECRET_FIELDS.items()}
_MASK = "***"  # fixed length, to hide the length of the secret


@final
class TypedHeader:
    """The typed ext fields of a command."""

    def __init__(
        self, name: str | None, fields: dict[str, object], problems: tuple[str, ...]
    ) -> None:
        self.name = name
        """Java class of the header; None if unknown or absent."""
        self.fields = fields
        """Long name → str, int, bool or float, in class order; unknown ones last, as str."""
        self.problems = problems
        """Missing and invalid fields, one sentence each."""


@final
class ShownHeader:
    """A typed header, and its form for output with masked credentials."""

    def __init__(self, typed: TypedHeader, shown: TypedHeader, ext_fields: dict[str, str]) -> None:
        self.typed = typed
        """The ext fields, typed."""
        self.shown = shown
        """The typed fields for output."""
        self.ext_fields = ext_fields
        """The ext fields as on the wire, for output."""


_FieldRead = tuple[str, str, Reader | None]
"""Long name of a field, its name on the wire, and its reader."""
_LARGEST_PLAN: Final = 64
_LONGEST_NAMES: Final = 2048
"""Maximum characters of names in a cached plan: no class comes near."""
_MOST_PLANS: Final = 1024
"""Maximum cached plans: codes times spellings of their headers."""


class _Plan(NamedTuple):
    """How to read headers of a class with the same names in the same order."""

    name: str | None
    """Java class."""
    reads: tuple[_FieldRead, ...]
    """Present fields, in the order of the result."""
    problems: tuple[str, ...]
    """Problems that do not depend on the values."""
    secret: bool
    """A name is that of a secret."""


_PlanKey = tuple[int, bool, tuple[str, ...]]
_plans: Final[dict[_PlanKey, _Plan]] = {}


class _Step(NamedTuple):
    """A field, prepared for the reading loop."""

    name: str
    wire: str
    read: Reader | None
    expected: bool


class _Layout(NamedTuple):
    """A header class, prepared for the reading loop."""

    steps: tuple[_Step, ...]
    wires: frozenset[str]
    expected: int


def _layout_of(fields: tuple[HeaderField, ...]) -> _Layout:
    # Fields that changed with a release are not required: the sender may use another one.
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
    """Return the fields of a header class; empty if it is unknown or has none."""
    return HEADERS.get(name, ())


def header_name(request_code: int, response: bool) -> str | None:
    """Return the Java class of the ext fields of a request, or of its response."""
    operation = operation_of(request_code)
    if operation is None:
        return None
    return operation.response_header if response else operation.request_header


def _layout(name: str | None, request_code: int, response: bool) -> _Layout:
    if name is None:
        return _CLASSLESS.get((request_code, response), _NO_LAYOUT)
    return _LAYOUTS.get(name, _NO_LAYOUT)


def typed_header(request_code: int, response: bool, ext_fields: Mapping[str, str]) -> TypedHeader:
    """Type the ext fields of a request with this code, or of its response; never raises.

    A response without any required field counts as one without a header, such as an error response,
    and not as invalid.
    """
    return _read(_plan_of(request_code, response, ext_fields), ext_fields)


def shown_header(request_code: int, response: bool, ext_fields: Mapping[str, str]) -> ShownHeader:
    """Return the typed ext fields, and their form for output; arguments of `typed_header`."""
    plan = _plan_of(request_code, response, ext_fields)
    typed = _read(plan, ext_fields)
    if not plan.secret:
        as_sent = ext_fields if isinstance(ext_fields, dict) else dict(ext_fields)
        return ShownHeader(typed, typed, as_sent)
    fields = {
        name: mask_secret(name, value) if isinstance(value, str) else value
        for name, value in typed.fields.items()
    }
    masked = {name: mask_secret(name, value) for name, value in ext_fields.items()}
    return ShownHeader(typed, TypedHeader(typed.name, fields, typed.problems), masked)


def _read(plan: _Plan, ext_fields: Mapping[str, Any]) -> TypedHeader:
    # Any: if a header decoder is wrong, compiled code would refuse anything but str.
    fields: dict[str, object] = {}
    problems: list[str] = []
    for field, wire, read in plan.reads:
        text = ext_fields[wire]
        if read is None:
            fields[field] = text
            continue
        try:
            value = read(text)
        except (AttributeError, TypeError):  # not a str: an error of a header decoder
            value = None
        if value is None:
            value = text  # RocketMQ itself continues with such a header
            problems.append(f"{field} does not parse: {str(text)[:40]!r}")
        fields[field] = value
    if not problems:
        return TypedHeader(plan.name, fields, plan.problems)
    return TypedHeader(plan.name, fields, (*problems, *plan.problems))


def _plan_of(request_code: int, response: bool, ext_fields: Mapping[str, str]) -> _Plan:
    """Return the cached plan for these ext fields."""
    wires = tuple(ext_fields)
    key = (request_code, response, wires)
    plan = _plans.get(key)
    if plan is None:
        plan = _new_plan(request_code, response, wires)
        # Names come from peers: long ones are not worth caching.
        if len(wires) <= _LARGEST_PLAN and sum(map(len, wires)) <= _LONGEST_NAMES:
            if len(_plans) >= _MOST_PLANS:
                _plans.clear()
            _plans[key] = plan
    return plan


def _new_plan(request_code: int, response: bool, wires: tuple[str, ...]) -> _Plan:
    name = header_name(request_code, response)
    layout = _layout(name, request_code, response)
    there = set(wires)
    reads: list[_FieldRead] = [
        (step.name, step.wire, step.read) for step in layout.steps if step.wire in there
    ]
    missing = [s.name for s in layout.steps if s.expected and s.wire not in there]
    problems: list[str] = []
    # An error response has no header at all.
    if missing and not (response and len(missing) == layout.expected):
        problems += [f"{field} is missing" for field in missing]
    fields = {field for field, _, _ in reads}
    for wire in wires:  # not in the class
        if wire in layout.wires:
            continue
        if wire in fields:  # a long name beside its own letter must not replace it
            problems.append(f"{wire} is there twice: the value of its letter is shown")
        else:
            fields.add(wire)
            reads.append((wire, wire, None))
    secret = any(shown_letters(key) is not None for key in (*fields, *wires))
    return _Plan(name, tuple(reads), tuple(problems), secret)


def encode_ext_fields(
    request_code: int, response: bool, fields: Mapping[str, object]
) -> dict[str, str]:
    """Encode values by long name as ext fields: the reverse of `typed_header`.

    Class fields come first, in class order, then all others under their own names; None is omitted,
    as Java omits null.
    """
    name = header_name(request_code, response)
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
    """Return a value, masked if the ext field `name` is a secret, ignoring case."""
    shown = shown_letters(name)
    if shown is None or not value:
        return value
    return value[: min(shown, len(value) // 3)] + _MASK  # at most a third of a short one


@lru_cache(1024)
def shown_letters(name: str) -> int | None:
    """Return the maximum number of visible characters of a secret, or None if it is no secret."""
    # rocketmq.client.accessKey, access-key, access_key
    lower = name.lower().replace("-", "").replace("_", "")
    if any(word in lower for word in SECRET_WORDS):
        return 0
    return _SHOWN_LETTERS.get(lower.rpartition(".")[2])


_IN_REMARK: Final = r"(?im)(secret_?key=)(.{1,256}?(?= cannot be null)|.+?(?=[,;]|$))"
"""The secret key in a remark; compiled where one has it, because compiling slows down the start."""


def shown_remark(remark: str | None) -> str | None:
    """Mask the secret key in a remark: ACL 1.0 repeats one that is too short.

    RocketMQ: SessionCredentials and PlainPermissionManager.
    """
    if remark and "secret" in remark.lower():
        return re.sub(_IN_REMARK, rf"\1{_MASK}", remark)
    return remark


def covered_remark(remark: str) -> str:
    """Cover the secret key in a remark, whose length stays."""
    if "secret" in remark.lower():
        return re.sub(_IN_REMARK, lambda found: found[1] + "*" * len(found[2]), remark)
    return remark
