"""Typed reading of ext fields: which Java class a command's fields belong to, and what they are.

Rules: the tables in `header_tables` are the union of 4.0 to 5.5, so a field of any release is
typed; what a table does not know (hooks, other clients' additions) stays text under its own name.
Nothing raises because of what a peer sent: a value that does not parse stays text and is named in
`problems`, as RocketMQ itself goes on with such a header. The letters of SendMessageRequestHeaderV2
become long names here and letters again on the way out.
RocketMQ: RemotingCommand.decodeCommandCustomHeader, makeCustomHeaderToNet, CommandCustomHeader.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, final

from .code_names import operation_of
from .codes import RequestCode
from .header_tables.classes import CLASSLESS, HEADER_CLASSES
from .header_tables.field import FieldType, HeaderField
from .header_tables.readers import READERS, Reader

__all__ = [
    "HEADERS",
    "HOOK_FIELDS",
    "SECRET_FIELDS",
    "SECRET_WORDS",
    "FieldType",
    "HeaderField",
    "ShownHeader",
    "TypedHeader",
    "encode_ext_fields",
    "header_fields",
    "header_name",
    "mask_secret",
    "shown_header",
    "typed_header",
]

HEADERS: Final = HEADER_CLASSES
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


@final
class TypedHeader:
    """The ext fields of one command, typed."""

    def __init__(
        self, name: str | None, fields: dict[str, object], problems: tuple[str, ...]
    ) -> None:
        self.name = name
        """Java class of the header; None where the operation has none or is not known."""
        self.fields = fields
        """Long name → str, int, bool or float, in the order of the class; unknown ones last, as
        str."""
        self.problems = problems
        """Fields that are missing or do not parse, each in one sentence."""


@final
class ShownHeader:
    """A header as it is, and as it may be shown: with its credentials masked."""

    def __init__(self, typed: TypedHeader, shown: TypedHeader, ext_fields: dict[str, str]) -> None:
        self.typed = typed
        """The ext fields, typed."""
        self.shown = shown
        """The same for people and programs."""
        self.ext_fields = ext_fields
        """The ext fields as on the wire, for people and programs."""


_FieldRead = tuple[str, str, Reader | None]
"""Long name of a field, its name on the wire, and what reads it."""
_LARGEST_PLAN: Final = 64
_LONGEST_NAMES: Final = 2048
"""Names of a header whose plan is kept, and their characters: no class comes near."""
_MOST_PLANS: Final = 1024
"""Plans that are kept: codes times ways to write their headers."""


class _Plan(NamedTuple):
    """How to read headers of one class that have the same names on the wire, in one order."""

    name: str | None
    """Java class."""
    reads: tuple[_FieldRead, ...]
    """What is there, in the order of the result."""
    problems: tuple[str, ...]
    """What is wrong whatever the values are."""
    secret: bool
    """One of the names is that of a secret."""


_PlanKey = tuple[int, bool, int | None, tuple[str, ...]]
_plans: Final[dict[_PlanKey, _Plan]] = {}


class _Step(NamedTuple):
    """One field as the reading loop wants it."""

    name: str
    wire: str
    read: Reader | None
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
            READERS[field.type],
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
    """Return the Java class of a request's ext fields, or of those of the response to one."""
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
    return _read(_plan_of(request_code, response, ext_fields, version), ext_fields)


def shown_header(
    request_code: int,
    response: bool,
    ext_fields: Mapping[str, str],
    version: int | None = None,
) -> ShownHeader:
    """Return the ext fields typed, and what may be shown of them; arguments of `typed_header`."""
    plan = _plan_of(request_code, response, ext_fields, version)
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
    # Any: where a header decoder slips, compiled code would refuse what is not a str.
    fields: dict[str, object] = {}
    problems: list[str] = []
    for field, wire, read in plan.reads:
        text = ext_fields[wire]
        if read is None:
            fields[field] = text
            continue
        try:
            fields[field] = read(text)
        except (ValueError, AttributeError, TypeError):  # not a str: a header decoder's slip
            fields[field] = text
            problems.append(f"{field} does not parse: {str(text)[:40]!r}")
    if not problems:
        return TypedHeader(plan.name, fields, plan.problems)
    return TypedHeader(plan.name, fields, (*problems, *plan.problems))


def _plan_of(
    request_code: int, response: bool, ext_fields: Mapping[str, str], version: int | None
) -> _Plan:
    """Return how to read these ext fields, by what is known of others like them."""
    wires = tuple(ext_fields)
    key = (request_code, response, version, wires)
    plan = _plans.get(key)
    if plan is None:
        plan = _new_plan(request_code, response, wires, version)
        # Names are what a peer wrote: long ones would be kept for nothing.
        if len(wires) <= _LARGEST_PLAN and sum(map(len, wires)) <= _LONGEST_NAMES:
            if len(_plans) >= _MOST_PLANS:
                _plans.clear()
            _plans[key] = plan
    return plan


def _new_plan(
    request_code: int, response: bool, wires: tuple[str, ...], version: int | None
) -> _Plan:
    name = header_name(request_code, response, version)
    layout = _layout(name, request_code, response)
    there = set(wires)
    reads: list[_FieldRead] = [
        (step.name, step.wire, step.read) for step in layout.steps if step.wire in there
    ]
    missing = [s.name for s in layout.steps if s.expected and s.wire not in there]
    problems: list[str] = []
    if missing and not (response and len(missing) == layout.expected):
        problems += [f"{field} is missing" for field in missing]
    fields = {field for field, _, _ in reads}
    for wire in wires:  # what the class does not have
        if wire in layout.wires:
            continue
        if wire in fields:  # a long name beside its own letter must not replace it
            problems.append(f"{wire} is there twice: the value of its letter is shown")
        else:
            fields.add(wire)
            reads.append((wire, wire, None))
    secret = any(_shown_letters(one) is not None for one in (*fields, *wires))
    return _Plan(name, tuple(reads), tuple(problems), secret)


def encode_ext_fields(
    request_code: int,
    response: bool,
    fields: Mapping[str, object],
    version: int | None = None,
) -> dict[str, str]:
    """Return ext fields as on the wire, of values by long name: the reverse of `typed_header`.

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
    # rocketmq.client.accessKey, access-key, access_key
    return _SHOWN_LETTERS.get(lower.rpartition(".")[2].replace("-", "").replace("_", ""))
