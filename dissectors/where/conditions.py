"""Filter expressions as trees; each part is a test of rows.

Rules: a comparison with a value that the row does not have is false, for every operator (also
`!=`). Other evaluators (SQL) translate the tree; the tests here are authoritative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ..patterns import Pattern
from ..times import DAY, Moment
from .fields import WhereField

Test = Callable[[object], bool]

_REMEMBERED = 4096
_REMEMBERED_LENGTH = 256


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part is true."""

    parts: tuple[Condition, ...]

    def test(self) -> Test:
        """Return the test of a row."""
        tests = [part.test() for part in self.parts]
        if len(tests) == 2:  # the usual number; `any` over a generator takes longer
            first, second = tests
            return lambda row: first(row) or second(row)
        return lambda row: any(test(row) for test in tests)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part is true."""

    parts: tuple[Condition, ...]

    def test(self) -> Test:
        """Return the test of a row."""
        tests = [part.test() for part in self.parts]
        if len(tests) == 2:
            first, second = tests
            return lambda row: first(row) and second(row)
        return lambda row: all(test(row) for test in tests)


@dataclass(frozen=True, slots=True)
class Not:
    """The part is false."""

    part: Condition

    def test(self) -> Test:
        """Return the test of a row."""
        negated = self.part.test()
        return lambda row: not negated(row)


@dataclass(frozen=True, slots=True)
class Present:
    """The row has a value; a list has at least one."""

    field: WhereField

    def test(self) -> Test:
        """Return the test of a row."""
        get = self.field.get
        if self.field.type == "list":
            return lambda row: bool(get(row))
        return lambda row: get(row) is not None


@dataclass(frozen=True, slots=True)
class Truth:
    """A field of type bool is true."""

    field: WhereField

    def test(self) -> Test:
        """Return the test of a row."""
        get = self.field.get
        return lambda row: get(row) is True


@dataclass(frozen=True, slots=True)
class Compared:
    """A value compared with another; for a list, whether it contains the value."""

    field: WhereField
    operator: str
    """``==``, ``!=``, ``<``, ``<=``, ``>``, or ``>=``"""
    value: object
    """str, bool, int or Fraction in the unit of the field, or Moment"""

    def test(self) -> Test:
        """Return the test of a row."""
        get, operator, value = self.field.get, self.operator, self.value
        if self.field.type == "list":
            wanted = operator == "=="
            # An empty list is a value, too: it does not contain this one, so `!=` holds.
            return lambda row: isinstance(seen := get(row), list) and (value in seen) is wanted
        if isinstance(value, Moment):
            if not value.has_date:
                get = _time_of_day(get, value)
            value = value.ns
        if operator == "==":
            # No check for absent values is needed here: None equals no value.
            return lambda row: get(row) == value
        if operator == "!=":
            return lambda row: (seen := get(row)) is not None and seen != value
        assert isinstance(value, int | Fraction)
        return _ordered(get, operator, value)


@dataclass(frozen=True, slots=True)
class Matched:
    """A text, or a text of a list, matches a regular expression."""

    field: WhereField
    pattern: Pattern
    wanted: bool
    """False: must not match"""

    def test(self) -> Test:
        """Return the test; it caches short texts, because topics, groups, and addresses repeat."""
        get, search, wanted = self.field.get, self.pattern.search, self.wanted
        remembered: dict[str, bool] = {}

        def found(text: str) -> bool:
            matches = remembered.get(text)
            if matches is None:
                matches = search(text)
                if len(text) <= _REMEMBERED_LENGTH:
                    if len(remembered) >= _REMEMBERED:
                        remembered.clear()
                    remembered[text] = matches
            return matches

        def matches(row: object) -> bool:
            seen = get(row)
            if isinstance(seen, str):
                return found(seen) is wanted
            return isinstance(seen, list) and any(map(found, seen)) is wanted

        return matches


Condition = AnyOf | AllOf | Not | Present | Truth | Compared | Matched


def fields_of(condition: Condition) -> Iterator[WhereField]:
    """Yield the fields of a condition."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from fields_of(part)
        case Not(part):
            yield from fields_of(part)
        case _:
            yield condition.field


def whole_limit(operator: str, limit: int | Fraction) -> int:
    """Return an integer that gives the same result as `limit` in an ordered comparison."""
    # Over integers, `x < 2.5` is `x < 3` and `x >= 2.5` is `x >= 3`; `x > 2.5` is `x > 2`.
    return limit.__ceil__() if operator in ("<", ">=") else limit.__floor__()


def _ordered(get: Callable[[object], object], operator: str, limit: int | Fraction) -> Test:
    whole = whole_limit(operator, limit)  # comparing int with Fraction is slow
    if operator in ("<", ">="):
        less = operator == "<"
        return lambda row: isinstance(seen := get(row), int) and (seen < whole) is less
    more = operator == ">"
    return lambda row: isinstance(seen := get(row), int) and (seen > whole) is more


def _time_of_day(get: Callable[[object], object], moment: Moment) -> Callable[[object], object]:
    local = moment.zone.local

    def time_of_day(row: object) -> int | None:
        seen = get(row)
        return local(seen) % DAY if isinstance(seen, int) else None

    return time_of_day
