"""Filter expressions (`--where`) of exchanges as SQL, so that engines skip unneeded data.

The SQL holds for exactly the rows that match the condition's test; in a `where`, null is false.
Conditions that the engines evaluate differently are not translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from dissectors.rows.outcome import FAILED, UNANSWERED
from dissectors.rows.record import ANSWERED
from dissectors.times import Moment
from dissectors.where.conditions import (
    AllOf,
    AnyOf,
    Compared,
    Condition,
    Matched,
    Not,
    Present,
    Truth,
    whole_limit,
)
from dissectors.where.fields import WhereField, columns_of

from ..sql.expressions import text, texts

_MOST: Final = (1 << 63) - 1
_OPERATORS: Final = {"==": "=", "!=": "!="}
_VALUES: Final[Mapping[str, str]] = {
    "packet": "coalesce(request_packet, response_packet)",
    "time": "coalesce(request_time, response_time)",
    "outcome": f"case when status = {text(ANSWERED)} then response_name else status end",
    "failed": f"coalesce(outcome_class = {text(FAILED)}, false)",
    "bad": f"coalesce(outcome_class in {texts((FAILED, UNANSWERED))}, false)",
}
"""Alias computed from columns -> its SQL."""


def _host(endpoint: str) -> str:
    """Return, as SQL, `dissectors.endpoint.host_of`."""
    port = f"length(substring_index({endpoint}, ':', -1))"
    return f"btrim(substring({endpoint}, 1, length({endpoint}) - {port} - 1), '[]')"


_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "broker": ("broker_name", "server_address", _host("server_address")),
    "client": ("client_id", "client_address", _host("client_address")),
    "server": ("server_address", _host("server_address")),
    "ip": (_host("client_address"), _host("server_address")),
}
"""Alias that is a list -> its values; null values do not count."""
_LITERAL: Final = re.compile(r"(\^?)((?:[A-Za-z0-9_ %/:@#=,;<>&~-]|\\[^A-Za-z0-9\s])*)(\$?)")
"""Regular expression without operators."""
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]|[$]\{")
"""Characters not allowed in a literal: controls, surrogates, and Spark's variables."""


def sql_of(condition: Condition) -> tuple[list[str], list[Condition]]:
    """Return SQL conditions that must all hold, and the rest of the condition to test."""
    parts = condition.parts if isinstance(condition, AllOf) else (condition,)
    conditions: list[str] = []
    left: list[Condition] = []
    for part in parts:
        sql = _sql(part)
        if sql is None:
            left.append(part)
        else:
            conditions.append(sql)
    return conditions, left


def _sql(condition: Condition) -> str | None:
    """Return a condition as SQL that is true only if it holds, or None if not expressible."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            each = [_sql(part) for part in parts]
            joined = " and " if isinstance(condition, AllOf) else " or "
            return None if None in each else f"({joined.join(map(str, each))})"
        case Not(part):
            sql = _sql(part)
            return None if sql is None else _negated(sql)
        case Present(field):
            return _present(field)
        case Truth(field):
            return f"({_value(field)})"
        case Matched(field, pattern, wanted):
            return _matched(field, pattern.text, wanted)
        case Compared(field, operator, value):
            return _compared(field, operator, value)


def _negated(sql: str) -> str:
    # A test is true or false; SQL's `not null` would be null, and the row would be dropped.
    return f"(not coalesce({sql}, false))"


def _value(field: WhereField) -> str:
    """Return the value of a field that is not a list."""
    if field.value is not None:
        return _VALUES[field.name]
    (column,) = columns_of(field)
    return f"`{column}`"


def _present(field: WhereField) -> str:
    if field.name in _MEMBERS:
        each = (f"{member} is not null" for member in _MEMBERS[field.name])
        return f"({' or '.join(each)})"
    if field.type == "list":
        return f"(size({_value(field)}) > 0)"
    return f"({_value(field)} is not null)"


def _compared(field: WhereField, operator: str, value: object) -> str | None:
    if isinstance(value, str):
        return None if _UNSAFE.search(value) else _is_text(field, operator, text(value))
    if isinstance(value, bool):
        return f"({_value(field)} {_OPERATORS[operator]} {str(value).lower()})"
    micros = isinstance(value, Moment)
    if isinstance(value, Moment):
        if not value.has_date:
            return None
        value = Fraction(value.ns, 1000)
    assert isinstance(value, int | Fraction)
    if operator in _OPERATORS:
        if value.denominator != 1:  # no integer equals it
            return "false" if operator == "==" else _present(field)
        number = int(value)
    else:
        number = whole_limit(operator, value)
    if abs(number) > _MOST:
        return None  # a literal of SQL has 64 bits
    # one column and a constant: Parquet readers skip row groups by such comparisons
    literal = f"timestamp_micros({number}L)" if micros else f"{number}L"
    return f"({_value(field)} {_OPERATORS.get(operator, operator)} {literal})"


def _is_text(field: WhereField, operator: str, literal: str) -> str:
    """Return SQL that compares a field with a text; a list matches if it contains the text."""
    wanted = operator == "=="
    if field.name in _MEMBERS:
        return _of_members(field, lambda member: f"{member} = {literal}", wanted)
    if field.type == "list":
        has = f"array_contains({_value(field)}, {literal})"
        return has if wanted else f"({_value(field)} is not null and not coalesce({has}, false))"
    return f"({_value(field)} {_OPERATORS[operator]} {literal})"


def _matched(field: WhereField, pattern: str, wanted: bool) -> str | None:
    literal = _LITERAL.fullmatch(pattern)
    if literal is None:
        return None  # dialects of regular expressions differ
    begins, escaped, ends = literal.groups()
    wanted_text = text(re.sub(r"\\(.)", r"\1", escaped))
    templates = {"^": "startswith({}, {})", "$": "endswith({}, {})", "^$": "{} = {}"}
    template = templates.get(begins + ends, "contains({}, {})")
    if field.name in _MEMBERS:
        return _of_members(field, lambda member: template.format(member, wanted_text), wanted)
    if field.type == "list":
        return None
    sql = template.format(_value(field), wanted_text)
    return f"({sql})" if wanted else f"(not {sql})"


def _of_members(field: WhereField, holds: Callable[[str], str], wanted: bool) -> str:
    """Return SQL for a test that holds for any value of a list, or for none."""
    test = f"({' or '.join(map(holds, _MEMBERS[field.name]))})"
    return test if wanted else _negated(test)
