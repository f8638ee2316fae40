"""Filters: an expression over the columns of a row becomes a test of rows.

The language, which ``docs/decoded-log.md`` documents::

    latency > 50ms and topic ~ "^Order"        request_name in (SEND_MESSAGE, SEND_MESSAGE_V2)
    response_code != 0 or status == unanswered  body_bytes > 4KiB and not has unique_key

Rules: a comparison with a value that the row does not have is false, whatever the comparison (`!=`
too); ``has`` and ``absent`` ask for that. `==` on a list asks whether the list has the value. A
wrong expression raises `WhereError`, which points at the place; a compiled test never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from ..patterns import Pattern, PatternError
from ..times import DAY, UTC_ZONE, Moment, Zone
from .fields import FieldSet, ValueProblem, WhereField, is_unit, time_of, value_of

Test = Callable[[object], bool]

_MAX_LENGTH = 20_000
_MAX_DEPTH = 60
_REMEMBERED = 4096
_REMEMBERED_LENGTH = 256
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<op>==|!=|<=|>=|!~|=~|&&|\|\||[=<>~!(),])"""
    r"""|(?P<word>[^\s"'()=<>~!,&|]+)|(?P<bad>\S))""",
    re.DOTALL,
)
_SAME = {"=": "==", "=~": "~", "&&": "and", "||": "or"}
_WORDS = ("and", "or", "not", "in", "has", "absent")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "~", "!~", "in", "not in")
_ESCAPED = re.compile(r"""\\(["'\\])""")
_ESCAPED_IN_PATTERN = re.compile(r"""\\(["'])""")


class WhereError(ValueError):
    """An expression is not one: what is wrong, and where."""

    def __init__(self, expression: str, position: int, length: int, reason: str) -> None:
        super().__init__(reason)
        self.expression = expression
        """the whole expression"""
        self.position = position
        """index of what is wrong"""
        self.length = length
        """how many characters are wrong"""
        self.reason = reason
        """what is wrong and what would be right"""

    def pointed(self) -> str:
        """Return the line of the expression that is wrong, and under it a caret at the place."""
        start = self.expression.rfind("\n", 0, self.position) + 1
        end = self.expression.find("\n", self.position)
        line = self.expression[start : end if end >= 0 else None].replace("\t", " ")
        column = self.position - start
        marks = "^" * max(1, min(self.length, len(line) - column))
        return f"  {line}\n  {' ' * column}{marks}"


class _Token(NamedTuple):
    kind: str
    """op, word, string, or end"""
    text: str
    start: int
    end: int


def compile_where(expression: str, fields: FieldSet, zone: Zone = UTC_ZONE) -> Test:
    """Return the test that `expression` describes; raise WhereError where it does not.

    Times without an offset are those of clocks in `zone`.
    """
    if len(expression) > _MAX_LENGTH:
        raise WhereError(expression[:60], 0, 1, f"longer than {_MAX_LENGTH} characters")
    return _Parser(expression, fields, zone).parse()


def _tokens(expression: str) -> list[_Token]:
    tokens = []
    at, end = 0, len(expression.rstrip())
    while at < end:
        match = _TOKEN.match(expression, at)
        assert match is not None
        assert match.lastgroup is not None
        kind = match.lastgroup
        start, at = match.span(kind)
        text = match[kind]
        if kind == "bad":
            raise WhereError(expression, start, 1, _misread(text))
        if kind == "op":
            text = _SAME.get(text, text)
        elif kind == "word" and text.lower() in _WORDS:
            kind, text = "op", text.lower()
        tokens.append(_Token(kind, text, start, at))
    tokens.append(_Token("end", "", end, end))
    return tokens


def _misread(text: str) -> str:
    if text in "\"'":
        return "unclosed quote"
    hint = "; put a pattern into quotes" if text in "|&" else ""
    return f"unexpected {text!r}{hint}"


class _Parser:
    """Recursive descent: or, and, not, parentheses, comparisons."""

    def __init__(self, expression: str, fields: FieldSet, zone: Zone) -> None:
        self.expression = expression
        self.zone = zone
        self.fields = fields
        self.tokens = _tokens(expression)
        self.at = 0
        self.depth = 0

    def parse(self) -> Test:
        test = self._either()
        token = self.tokens[self.at]
        if token.kind != "end":
            hint = "here must be `and`, `or` or the end"
            if token.kind in ("word", "string"):
                hint += "; put a value with blanks into quotes"
            raise self._error(token, hint)
        return test

    def _error(self, token: _Token, reason: str) -> WhereError:
        return WhereError(self.expression, token.start, token.end - token.start, reason)

    def _take(self, *ops: str) -> bool:
        token = self.tokens[self.at]
        if token.kind == "op" and token.text in ops:
            self.at += 1
            return True
        return False

    def _either(self) -> Test:
        tests = [self._both()]
        while self._take("or"):
            tests.append(self._both())
        return _any_of(tests)

    def _both(self) -> Test:
        tests = [self._negation()]
        while self._take("and"):
            tests.append(self._negation())
        return _all_of(tests)

    def _negation(self) -> Test:
        token = self.tokens[self.at]
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._error(token, "nested too deep")
        test = self._primary()
        self.depth -= 1
        return test

    def _primary(self) -> Test:
        opening = self.tokens[self.at]
        if self._take("not", "!"):
            negated = self._negation()
            return lambda row: not negated(row)
        if self._take("("):
            test = self._either()
            if not self._take(")"):
                raise self._error(opening, "unclosed '('")
            return test
        if self._take("has"):
            return _has(self._field())
        if self._take("absent"):
            has = _has(self._field())
            return lambda row: not has(row)
        return self._comparison()

    def _field(self) -> WhereField:
        token = self.tokens[self.at]
        if token.kind != "word":
            raise self._error(token, "expected a column name")
        field = self.fields.find(token.text)
        if field is None:
            hint = self.fields.suggestion(token.text)
            raise self._error(token, f"unknown column: {token.text!r}{hint}")
        self.at += 1
        return field

    def _comparison(self) -> Test:
        field = self._field()
        token = self.tokens[self.at]
        operator = token.text if token.kind == "op" else ""
        if operator == "not" and self.tokens[self.at + 1].text == "in":
            self.at += 1
            operator = "not in"
        if field.type == "bool" and operator not in _COMPARISONS:
            get = field.get
            return lambda row: get(row) is True
        if operator not in _COMPARISONS:
            operators = " ".join(_COMPARISONS)
            hint = f"`has {field.name}` tests whether it is present"
            raise self._error(token, f"expected one of {operators} after {field.name}; {hint}")
        self.at += 1
        self._refuse_misfit(field, operator, token)
        if operator in ("in", "not in"):
            tests = [self._compare(field, "==", value) for value in self._list()]
            chosen = _any_of(tests)
            get = field.get
            if operator == "in":
                return chosen
            return lambda row: get(row) is not None and not chosen(row)
        return self._compare(field, operator, self._value(field))

    def _refuse_misfit(self, field: WhereField, operator: str, token: _Token) -> None:
        if operator in ("~", "!~") and field.type in ("int", "time", "bool"):
            raise self._error(token, f"{field.name} is not text; compare it with == < <= > >=")
        if operator in ("<", "<=", ">", ">=") and field.type in ("string", "list", "bool"):
            hint = "; `version` is the number" if field.name == "version_name" else ""
            raise self._error(token, f"{field.name} has no order; use == != ~ or in{hint}")

    def _list(self) -> list[_Token]:
        opening = self.tokens[self.at]
        if not self._take("("):
            raise self._error(opening, "expected a list in parentheses after `in`: (A, B)")
        values = [self._plain_value()]
        while self._take(","):
            values.append(self._plain_value())
        if not self._take(")"):
            raise self._error(self.tokens[self.at], "expected a comma or `)`")
        return values

    def _plain_value(self) -> _Token:
        token = self.tokens[self.at]
        if token.kind not in ("word", "string"):
            got = "" if token.kind == "end" else f", not {token.text!r}"
            raise self._error(token, f"expected a value{got}")
        self.at += 1
        return token

    def _value(self, field: WhereField) -> _Token:
        token = self._plain_value()
        unit = self.tokens[self.at]
        apart = token.kind == unit.kind == "word" and token.text[-1].isdecimal()
        if apart and is_unit(field, unit.text):
            self.at += 1
            return _Token("word", token.text + unit.text, token.start, unit.end)
        return token

    def _compare(self, field: WhereField, operator: str, token: _Token) -> Test:
        try:
            if operator in ("~", "!~"):
                return _matches(field, _pattern_of(token), wanted=operator == "~")
            if field.type == "time":
                moment = time_of(field, _unquoted(token), self.zone)
                return _compares_time(field, operator, moment)
            value = value_of(field, _unquoted(token))
        except ValueProblem as problem:
            raise self._error(token, str(problem)) from None
        except PatternError as problem:
            inside = token.start + problem.position + (token.kind == "string")
            place = _Token("string", "", min(inside, token.end - 1), min(inside + 1, token.end))
            raise self._error(place, f"invalid regular expression: {problem.reason}") from None
        if field.type == "list":
            return _contains(field, value, wanted=operator == "==")
        return _compares(field, operator, value)


def _unquoted(token: _Token) -> str:
    if token.kind != "string":
        return token.text
    return _ESCAPED.sub(r"\1", token.text[1:-1])


def _pattern_of(token: _Token) -> Pattern:
    text = token.text
    if token.kind == "string":  # backslashes are the pattern's, but for the quote's own
        text = _ESCAPED_IN_PATTERN.sub(r"\1", text[1:-1])
    return Pattern(text, over_lines=True)


def _any_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda row: first(row) or second(row)
    return lambda row: any(test(row) for test in tests)


def _all_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda row: first(row) and second(row)
    return lambda row: all(test(row) for test in tests)


def _has(field: WhereField) -> Test:
    get = field.get
    if field.type == "list":
        return lambda row: bool(get(row))
    return lambda row: get(row) is not None


def _compares(field: WhereField, operator: str, value: object) -> Test:
    get = field.get
    if operator == "==":
        return lambda row: get(row) == value
    if operator == "!=":
        return lambda row: (seen := get(row)) is not None and seen != value
    assert isinstance(value, int | Fraction)
    return _ordered(get, operator, value)


def _ordered(get: Callable[[object], object], operator: str, limit: int | Fraction) -> Test:
    # an int against a Fraction is slow: for whole numbers, the bound can be a whole number as well
    whole = limit.__ceil__() if operator in ("<", ">=") else limit.__floor__()
    if operator in ("<", ">="):
        less = operator == "<"
        return lambda row: isinstance(seen := get(row), int) and (seen < whole) is less
    more = operator == ">"
    return lambda row: isinstance(seen := get(row), int) and (seen > whole) is more


def _compares_time(field: WhereField, operator: str, moment: Moment) -> Test:
    if moment.has_date:
        return _compares(field, operator, moment.ns)
    get, local = field.get, moment.zone.local

    def time_of_day(row: object) -> int | None:
        seen = get(row)
        return local(seen) % DAY if isinstance(seen, int) else None

    return _compares(WhereField(field.name, "int", time_of_day), operator, moment.ns)


def _contains(field: WhereField, value: object, wanted: bool) -> Test:
    get = field.get
    return lambda row: isinstance(seen := get(row), list) and (value in seen) is wanted


def _matches(field: WhereField, pattern: Pattern, wanted: bool) -> Test:
    """Return the answer, remembered for short texts: topics, groups and addresses repeat."""
    get, search = field.get, pattern.search
    remembered: dict[str, bool] = {}

    def found(text: str) -> bool:
        answer = remembered.get(text)
        if answer is None:
            answer = search(text)
            if len(text) <= _REMEMBERED_LENGTH:
                if len(remembered) >= _REMEMBERED:
                    remembered.clear()
                remembered[text] = answer
        return answer

    def matches(row: object) -> bool:
        seen = get(row)
        if isinstance(seen, str):
            return found(seen) is wanted
        return isinstance(seen, list) and any(map(found, seen)) is wanted

    return matches
