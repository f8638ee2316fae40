"""Filters: an expression over the columns of a row becomes a test of rows.

The language, which ``docs/decoded-log.md`` documents::

    latency > 50ms and topic ~ "^Order"        request_name in (SEND_MESSAGE, SEND_MESSAGE_V2)
    response_code != 0 or status == unanswered  body_bytes > 4KiB and not has unique_key

Rules: a wrong expression raises `WhereError`, which points at the place; a compiled test never
raises.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..patterns import Pattern, PatternError
from ..times import UTC_ZONE, Zone
from .conditions import AllOf, AnyOf, Compared, Condition, Matched, Not, Present, Test, Truth
from .fields import FieldSet, ValueProblem, WhereField, is_unit, time_of, value_of

_MAX_LENGTH = 20_000
_MAX_DEPTH = 60
# Longer operators come before those that begin them.
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
    """An invalid expression: what is wrong, and where."""

    def __init__(self, expression: str, position: int, length: int, reason: str) -> None:
        super().__init__(reason)
        self.expression = expression
        """the whole expression"""
        self.position = position
        """index of the error"""
        self.length = length
        """length of the error"""
        self.reason = reason
        """what is wrong, and what would be right"""

    def pointed(self) -> str:
        """Return the line with the error, and a caret under it."""
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
    """Compile `expression` to a test; raise WhereError if it is invalid.

    Times without an offset are in `zone`.
    """
    return parse_where(expression, fields, zone).test()


def parse_where(expression: str, fields: FieldSet, zone: Zone = UTC_ZONE) -> Condition:
    """Parse `expression`; raise WhereError if it is invalid."""
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
    """Recursive-descent parser: or, and, not, parentheses, comparisons."""

    def __init__(self, expression: str, fields: FieldSet, zone: Zone) -> None:
        self.expression = expression
        self.zone = zone
        self.fields = fields
        self.tokens = _tokens(expression)
        self.at = 0
        self.depth = 0

    def parse(self) -> Condition:
        condition = self._either()
        token = self.tokens[self.at]
        if token.kind != "end":
            hint = "here must be `and`, `or` or the end"
            if token.kind in ("word", "string"):
                hint += "; put a value with blanks into quotes"
            raise self._error(token, hint)
        return condition

    def _error(self, token: _Token, reason: str) -> WhereError:
        return WhereError(self.expression, token.start, token.end - token.start, reason)

    def _take(self, *ops: str) -> bool:
        token = self.tokens[self.at]
        if token.kind == "op" and token.text in ops:
            self.at += 1
            return True
        return False

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._take("or"):
            parts.append(self._both())
        return _joined(AnyOf, parts)

    def _both(self) -> Condition:
        parts = [self._negation()]
        while self._take("and"):
            parts.append(self._negation())
        return _joined(AllOf, parts)

    def _negation(self) -> Condition:
        token = self.tokens[self.at]
        self.depth += 1
        if self.depth > _MAX_DEPTH:  # before Python's stack overflows
            raise self._error(token, "nested too deep")
        condition = self._primary()
        self.depth -= 1
        return condition

    def _primary(self) -> Condition:
        opening = self.tokens[self.at]
        if self._take("not", "!"):
            return Not(self._negation())
        if self._take("("):
            condition = self._either()
            if not self._take(")"):
                raise self._error(opening, "unclosed '('")
            return condition
        if self._take("has"):
            return Present(self._field())
        if self._take("absent"):
            return Not(Present(self._field()))
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

    def _comparison(self) -> Condition:
        field = self._field()
        token = self.tokens[self.at]
        operator = token.text if token.kind == "op" else ""
        if operator == "not" and self.tokens[self.at + 1].text == "in":
            self.at += 1
            operator = "not in"
        if field.type == "bool" and operator not in _COMPARISONS:
            return Truth(field)
        if operator not in _COMPARISONS:
            operators = " ".join(_COMPARISONS)
            hint = f"`has {field.name}` tests whether it is present"
            raise self._error(token, f"expected one of {operators} after {field.name}; {hint}")
        self.at += 1
        self._refuse_misfit(field, operator, token)
        if operator == "in":
            return _joined(AnyOf, [self._compare(field, "==", value) for value in self._list()])
        if operator == "not in":
            return _joined(AllOf, [self._compare(field, "!=", value) for value in self._list()])
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
        # `latency > 5 ms` is a number and a word here, but one value for people.
        apart = token.kind == unit.kind == "word" and token.text[-1].isdecimal()
        if apart and is_unit(field, unit.text):
            self.at += 1
            return _Token("word", token.text + unit.text, token.start, unit.end)
        return token

    def _compare(self, field: WhereField, operator: str, token: _Token) -> Condition:
        try:
            if operator in ("~", "!~"):
                return Matched(field, _pattern_of(token), wanted=operator == "~")
            if field.type == "time":
                return Compared(field, operator, time_of(field, _unquoted(token), self.zone))
            value = value_of(field, _unquoted(token))
            if isinstance(value, range):
                return _of_range(field, operator, value)
            return Compared(field, operator, value)
        except ValueProblem as problem:
            raise self._error(token, str(problem)) from None
        except PatternError as problem:
            inside = token.start + problem.position + (token.kind == "string")
            place = _Token("string", "", min(inside, token.end - 1), min(inside + 1, token.end))
            raise self._error(place, f"invalid regular expression: {problem.reason}") from None


def _joined(how: type[AnyOf | AllOf], parts: list[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else how(tuple(parts))


def _of_range(field: WhereField, operator: str, values: range) -> Condition:
    """Return a comparison with several numbers: `<` is below all, and `==` is one of them."""
    first, last = values[0], values[-1]
    if operator == "==":
        return AllOf((Compared(field, ">=", first), Compared(field, "<=", last)))
    if operator == "!=":
        return AnyOf((Compared(field, "<", first), Compared(field, ">", last)))
    return Compared(field, operator, first if operator in ("<", ">=") else last)


def _unquoted(token: _Token) -> str:
    if token.kind != "string":
        return token.text
    return _ESCAPED.sub(r"\1", token.text[1:-1])


def _pattern_of(token: _Token) -> Pattern:
    text = token.text
    if token.kind == "string":  # keep backslashes for the pattern, except before the quote
        text = _ESCAPED_IN_PATTERN.sub(r"\1", text[1:-1])
    return Pattern(text, over_lines=True)
