"""Filter fields: the fields of a row, and how values are written for each.

Rules: the fields of an exchange are the columns of `ExchangeRecord`, by their documented names; a
number accepts the units of its column; a name that is not in its closed list is an error with a
suggestion, because a filter that silently finds nothing costs an operator the night.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import Final, NamedTuple

from ..endpoint import host_of
from ..findings import FindingKind
from ..grpc.command import PROTOBUF
from ..grpc.names import CODES, OPERATIONS, RESPONSES
from ..quantities import DURATION_UNITS, DURATIONS_SPELLED, SIZE_UNITS, SIZES_SPELLED
from ..remoting.code_names import request_code, request_name
from ..remoting.codes import (
    FORMER_REQUESTS,
    FORMER_RESPONSES,
    RENAMED_REQUESTS,
    RequestCode,
    ResponseCode,
    SerializeType,
)
from ..remoting.versions import ordinals_of
from ..rows.column import RENAMED, Column
from ..rows.conversation_record import RENAMED_ENDS
from ..rows.message_record import EVENTS, MESSAGE_COLUMNS
from ..rows.outcome import FAILED, UNANSWERED, is_failure
from ..rows.record import ANSWERED, COLUMNS, STATUSES
from ..times import Moment, Zone, moment_of


class Alias(NamedTuple):
    """An additional name for columns."""

    name: str
    """name in a filter"""
    meaning: str
    """description, for the documents"""
    columns: tuple[str, ...]
    """columns of the value"""
    value: Callable[..., object] | None = None
    """column values → alias value; None: value of its only column"""
    type: str = ""
    """string, int, time, bool or list; empty: type of its only column"""


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _outcome(status: object, response_name: object) -> object:
    return response_name if status == ANSWERED else status


def _failed(outcome_class: object) -> object:
    return outcome_class == FAILED


def _bad(outcome_class: object) -> object:
    return outcome_class in (FAILED, UNANSWERED)


def _hosts(*endpoints: object) -> object:
    return [host_of(endpoint) for endpoint in endpoints if isinstance(endpoint, str)]


def _end(endpoint: object) -> list[object]:
    return [host_of(endpoint), endpoint] if isinstance(endpoint, str) else []


def named_end(name: object, endpoint: object) -> list[object]:
    """Return the name of an end, if it has one, and its address with and without port."""
    ends = _end(endpoint)
    return [name, *ends] if isinstance(name, str) else ends


ALIASES: tuple[Alias, ...] = (
    Alias("latency", "`latency_us`, with a unit", ("latency_us",)),
    Alias("packet", "packet of the request, otherwise of the response",
          ("request_packet", "response_packet"), _first, "int"),
    Alias("time", "time of the request, otherwise of the response",
          ("request_time", "response_time"), _first, "time"),
    Alias("request", "`request_name`", ("request_name",)),
    Alias("operation", "`request_name`", ("request_name",)),
    Alias("outcome", "name of the response code; `unanswered`, `oneway`, or `orphan` without one",
          ("status", "response_name"), _outcome, "string"),
    Alias("response", "`response_name`", ("response_name",)),
    Alias("answer", "`response_name`", ("response_name",)),
    Alias("code", "`response_code`", ("response_code",)),
    Alias("failed", "whether the response is an error: `failed and topic == A`",
          ("outcome_class",), _failed, "bool"),
    Alias("bad", "whether the exchange failed or is unanswered: `bad and topic == A`",
          ("outcome_class",), _bad, "bool"),
    Alias("queue", "`queue_id`", ("queue_id",)),
    Alias("body", "`body_bytes`", ("body_bytes",)),
    Alias("note", "`remark`", ("remark",)),
    Alias("broker", "`broker_name`, and the server's address with and without port",
          ("broker_name", "server_address"), named_end, "list"),
    Alias("client", "client id, and the client's address with and without port",
          ("client_id", "client_address"), named_end, "list"),
    Alias("server", "the server's address with and without port",
          ("server_address",), _end, "list"),
    Alias("ip", "addresses of both ends, without port",
          ("client_address", "server_address"), _hosts, "list"),
)  # fmt: skip
"""All aliases, in the order of tables."""


_MOST_LISTED = 60
"""Maximum number of names that an error lists if none is similar."""
Getter = Callable[[object], object]
Number = int | Fraction

_MICROSECONDS = {name: Fraction(ns, 1000) for name, ns in DURATION_UNITS.items()}
_BYTES = {name: Fraction(size) for name, size in SIZE_UNITS.items()}
UNITS: dict[str, Mapping[str, Fraction]] = {"µs": _MICROSECONDS, "bytes": _BYTES}
"""Unit of a column → valid units, as multiples of it."""

_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBER = re.compile(r"([+-]?\d{1,30}(?:\.\d{1,30})?)\s*([A-Za-zµμ]*)", re.ASCII)


class ValueProblem(ValueError):
    """A value does not fit its field; the text says why and what would fit."""


@dataclass(frozen=True, slots=True)
class WhereField:
    """A field of a filter."""

    name: str
    """name in a filter"""
    type: str
    """string, int, time, bool or list, as in `dissectors.rows.column.Column`"""
    get: Getter
    """row → value, or None"""
    unit: str = ""
    """unit of a number, a key of `UNITS`, or empty"""
    needs_unit: bool = False
    """a bare number is an error, because it is ambiguous"""
    known: Callable[[], Collection[str]] | None = None
    """closed list of values of a string"""
    number_of: Callable[[str], int | range | None] | None = None
    """name → number, or all numbers that it means, for numbers with names"""
    canonical: Callable[[str], str] | None = None
    """value as spelled in rows"""
    columns: tuple[str, ...] = ()
    """columns of the value; empty: the column of the same name"""
    value: Callable[..., object] | None = None
    """values of `columns` → value; None: value of its only column"""


def columns_of(field: WhereField) -> tuple[str, ...]:
    """Return the columns of a field."""
    return field.columns or (field.name,)


class FieldSet:
    """The fields of one kind of row."""

    def __init__(
        self,
        fields: Iterable[WhereField],
        families: Mapping[str, Callable[[str], WhereField]] | None = None,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        """`families` creates fields of open sets, by the text before the first dot.

        `elsewhere`: names of other kinds of rows → what to do instead.
        """
        self._fields = {field.name: field for field in fields}
        self._families = families or {}
        self._elsewhere = elsewhere or {}

    @property
    def names(self) -> list[str]:
        """All names, open sets as ``family.NAME``."""
        return [*self._fields, *(f"{family}.NAME" for family in self._families)]

    def find(self, name: str) -> WhereField | None:
        """Return the field of that name, or None."""
        family, dot, rest = name.partition(".")
        if dot and rest and family in self._families:
            return self._families[family](rest)
        return self._fields.get(name) or self._fields.get(RENAMED.get(name, ""))

    def suggestion(self, name: str) -> str:
        """Return ``; did you mean ...?`` for an unknown name, or where the names are listed."""
        if name in self._elsewhere:
            return f"; {self._elsewhere[name]}"
        return similar(name, self.names) or "; rmqtool help decoded-log lists the columns"


def suggestion(name: str, known: Collection[str], what: str) -> str:
    """Return the end of an error message about an unknown `name`: similar names, or all if few."""
    if near := similar(name, known):
        return near
    return f"; the {what} are: {', '.join(known)}" if len(known) <= _MOST_LISTED else ""


def similar(name: str, known: Collection[str]) -> str:
    """Return ``; did you mean ...?`` with similar names; empty if there are none."""
    spellings = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), spellings, n=3, cutoff=0.6)
    if not near:  # a part of a long name is not close to the whole
        near = [key for key in spellings if len(name) >= 3 and name.lower() in key][:3]
    return f"; did you mean {' or '.join(spellings[key] for key in near)}?" if near else ""


def value_of(field: WhereField, text: str) -> object:
    """Parse a value of `field`: str, or int or Fraction in its unit, or a range of numbers.

    Raise ValueProblem if it is invalid. Times are parsed by `time_of`.
    """
    if field.type == "int":
        return _number_of(field, text)
    if field.type == "bool":
        return _truth_of(field, text)
    if field.canonical is not None:
        text = field.canonical(text)
    if field.known is None:
        return text
    known = field.known()
    if text not in known and not text.startswith("UNKNOWN("):
        upper = text.upper()  # most closed lists are constants of Java
        if upper in known:
            return upper
        raise ValueProblem(f"{field.name} is never {text!r}{suggestion(text, known, 'values')}")
    return text


def _truth_of(field: WhereField, text: str) -> bool:
    word = text.lower()
    if word not in _TRUTHS:
        raise ValueProblem(f"{field.name} is true or false, not {text!r}")
    return _TRUTHS[word]


def _number_of(field: WhereField, text: str) -> Number | range:
    # A name first: the releases 5 and 5.3 are no ordinals, which would be below all of 5.x.
    number = field.number_of(text) if field.number_of is not None else None
    if number is not None:
        return number
    match = _NUMBER.fullmatch(text)
    unknown = field.number_of is ordinals_of and text in ("6", "7", "8", "9")  # not of MQVersion
    if match is None or unknown or (field.number_of is not None and "." in match[1]):
        if field.number_of is not None:
            raise ValueProblem(f"{text!r} is neither a number nor a known name of {field.name}")
        form = "a duration, such as 50ms" if field.needs_unit else "a number"
        raise ValueProblem(f"{field.name} is {form}, not {text!r}")
    value, unit = Fraction(match[1]), match[2]
    if unit:
        value *= _factor_of(field, unit)
    elif field.needs_unit and value:  # zero is the same in every unit
        raise ValueProblem(f"give {field.name} a unit: {text}us, {text}ms or {text}s")
    return int(value) if value.denominator == 1 else value


def _factor_of(field: WhereField, unit: str) -> Fraction:
    if field.unit not in UNITS:
        raise ValueProblem(f"{field.name} has no unit, so {unit!r} means nothing here")
    units = UNITS[field.unit]
    factor = units.get(unit.lower())
    if factor is None:
        spelled = SIZES_SPELLED if field.unit == "bytes" else DURATIONS_SPELLED
        raise ValueProblem(f"{unit!r} is not a unit of {field.name}; there are {spelled}")
    return factor


def is_unit(field: WhereField, text: str) -> bool:
    """Return whether `text` is a unit that may be separate from its number."""
    return text.lower() in UNITS.get(field.unit, {})


def time_of(field: WhereField, text: str, zone: Zone) -> Moment:
    """Parse a time; a time of day is compared with the clock time of a row."""
    moment = moment_of(text, zone)
    if moment is None:
        raise ValueProblem(
            f"{field.name} is a time, like 2026-11-20T10:00:00, 10:00 or 10:00+08:00"
            f" (no offset means {zone.name}), not {text!r}"
        )
    return moment


def _request_names() -> Collection[str]:
    former = (code.name for code in FORMER_REQUESTS)
    return dict.fromkeys((*RequestCode.__members__, *former, *OPERATIONS))


def response_names() -> Collection[str]:
    """Return the names of all response codes."""
    former = (code.name for code in FORMER_RESPONSES)
    return dict.fromkeys((*ResponseCode.__members__, *former, *RESPONSES))


def response_code(name: str) -> int | None:
    """Return the number of a response code name, or None."""
    member = ResponseCode.__members__.get(name)
    if member is not None:
        return int(member)
    former = next((former.code for former in FORMER_RESPONSES if former.name == name), None)
    return former if former is not None else CODES.get(name)


def current_request_name(name: str) -> str:
    """Return the current name of an operation that was renamed."""
    return request_name(int(RENAMED_REQUESTS[name])) if name in RENAMED_REQUESTS else name


_KNOWN: dict[str, Callable[[], Collection[str]]] = {
    "status": lambda: STATUSES,
    "outcome": lambda: dict.fromkeys((*response_names(), *STATUSES)),
    "serialize_type": lambda: (*SerializeType.__members__, PROTOBUF),
    "request_name": _request_names,
    "response_name": response_names,
    "findings": lambda: FindingKind.__members__,
    "name": lambda: dict.fromkeys((*_request_names(), *response_names())),
    "kind": lambda: ("request", "response", "oneway"),
}
_CANONICAL: dict[str, Callable[[str], str]] = {
    "request_name": current_request_name,
    "name": current_request_name,
    "end": lambda text: RENAMED_ENDS.get(text, text),  # those of old logs
}
_NUMBERS: dict[str, Callable[[str], int | range | None]] = {
    "request_code": request_code,
    "response_code": response_code,
    "version": ordinals_of,
    "code": lambda name: response_code(name) if request_code(name) is None else request_code(name),
}


def field_of_column(name: str, type_: str, unit: str, get: Getter) -> WhereField:
    """Return the field of a column, with the names of its values or numbers."""
    return WhereField(
        name,
        type_,
        get,
        unit,
        known=_KNOWN.get(name),
        number_of=_NUMBERS.get(name),
        canonical=_CANONICAL.get(name),
    )


def exchange_fields() -> FieldSet:
    """Return the fields of exchanges: columns of `ExchangeRecord`, and `ALIASES`."""
    return FieldSet(with_aliases(COLUMNS, ALIASES).values())


def with_aliases(columns: Iterable[Column], aliases: Iterable[Alias]) -> dict[str, WhereField]:
    """Return the fields of columns and of aliases of them, by name."""
    fields = {c.name: field_of_column(c.name, c.type, c.unit, attrgetter(c.name)) for c in columns}
    return fields | {alias.name: _field_of_alias(alias, fields) for alias in aliases}


def _field_of_alias(alias: Alias, columns: Mapping[str, WhereField]) -> WhereField:
    value = alias.value
    if value is None:
        column = columns[alias.columns[0]]
        needs_unit = alias.name == "latency"
        return replace(column, name=alias.name, needs_unit=needs_unit, columns=alias.columns)
    getters = [columns[name].get for name in alias.columns]
    return WhereField(
        alias.name,
        alias.type,
        lambda row: value(*(get(row) for get in getters)),
        known=_KNOWN.get(alias.name),
        columns=alias.columns,
        value=value,
    )


def _present(*names: object) -> object:
    return [name for name in names if name is not None]


def _ids(unique_key: object, offset_msg_id: object, keys: object) -> object:
    each = keys.split() if isinstance(keys, str) else ()
    return [name for name in (unique_key, offset_msg_id, *each) if name is not None]


# A name that exchange filters also have means the same for messages.
_EXCHANGE_ALIASES: Final = {alias.name: alias for alias in ALIASES}
_SAME: Final = ("latency", "request", "operation", "response", "answer", "code", "queue", "note")
MESSAGE_ALIASES: Final = (
    *(_EXCHANGE_ALIASES[name] for name in _SAME),
    Alias("id", "unique key, offset message id, and each of the keys",
          ("unique_key", "offset_msg_id", "keys"), _ids, "list"),
    Alias("group", "producer group and consumer group",
          ("producer_group", "consumer_group"), _present, "list"),
    Alias("broker", "name of the broker, and its address with and without port",
          ("broker_name", "server_address"), named_end, "list"),
    _EXCHANGE_ALIASES["client"],
    _EXCHANGE_ALIASES["ip"],
    Alias("failed", "whether the response is an error", ("response_name",), is_failure, "bool"),
)  # fmt: skip
"""All aliases, in the order of tables."""


def message_fields() -> FieldSet:
    """Return the filter fields of messages."""
    fields = with_aliases(MESSAGE_COLUMNS, MESSAGE_ALIASES)
    fields["event"] = replace(fields["event"], known=lambda: EVENTS)
    elsewhere = dict.fromkeys(exchange_fields().names, "only exchanges have it")
    return FieldSet(fields.values(), None, elsewhere)
