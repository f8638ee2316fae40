"""Read JSON like fastjson: bare and object keys, single quotes, unquoted names, comments.

Invalid text ends the reading: complete values are kept, and the problem has the position.
RocketMQ: RemotingSerializable.decode, which hands the text to fastjson's DefaultJSONParser.
"""

from __future__ import annotations

import math
import re
from typing import Final

DEPTH_LIMIT: Final = 64
"""Maximum nesting: RocketMQ's own bodies have at most fifteen levels."""

VALUE_LIMIT: Final = 1_000_000
"""Maximum values of a text: more than the offset tables of large clusters, less than 1 GB of
objects.
"""

_LONGEST_NUMBER: Final = 400
"""Maximum characters of a number; longer ones stay text, because Python's int is quadratic."""

# fastjson also skips byte order marks and backspaces.
_BLANK = re.compile(r"[\s\ufeff\x08]*")
_BLANK_AND_COMMAS = re.compile(r"[\s\ufeff\x08,]*")
_DOUBLE_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_SINGLE_QUOTED = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
# fastjson writes the type of a number behind it: 1L, 2S, 3B, 4F, 5D.
_NUMBER = re.compile(r"[-+]?(?:\d+(\.\d*)?|(\.\d+))([eE][-+]?\d+)?[LSBFDlsbfd]?(?![\w$.])")
_WORD = re.compile(r"[\w$%@][\w$.\-@%|+]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_KNOWN_ESCAPES: Final = frozenset("btnvfFrux\"'/\\01234567")
_SURROGATE = re.compile("[\ud800-\udfff]")

_SHORT_ESCAPES: Final = {
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "F": "\f",
    "r": "\r",
    **{str(digit): chr(digit) for digit in range(8)},
}
_WORDS: Final[dict[str, object]] = {
    "null": None,
    "undefined": None,
    "NaN": None,
    "true": True,
    "false": False,
}
_SETS: Final = ("Set", "TreeSet")
"""Words that fastjson writes before the array of a Java set with class names."""


BARE_NAME: Final = "a name without quotes"
BARE_NUMBER: Final = "a number as a name"
CONTROL: Final = "a control character around the value"
MORE_COMMAS: Final = "a comma too many"
NO_VALUE: Final = "undefined or NaN"
SET: Final = "a set"
SMALL_SUFFIX: Final = "a suffix of a number in lower case"
UNKNOWN_ESCAPE: Final = "an unknown escape"
"""escape that only one of RocketMQ's JSON libraries accepts"""


class Real(str):
    """A number with a fraction or an exponent, as written."""

    __slots__ = ()


class PairMap(list[tuple[object, object]]):
    """A Java map with keys other than strings and integers: (key, value) pairs in order."""

    __slots__ = ()


class _Absent:
    """Marks a truncated or unreadable value."""

    __slots__ = ()


_ABSENT: Final = _Absent()


class FastjsonReader:
    """Reads one text; after `read`, `problem`, `oddities`, and `has_references` describe it."""

    __slots__ = (
        "_as_written", "_at", "_values", "has_references", "oddities", "problem",
        "text",
    )  # fmt: skip

    def __init__(self, text: str, as_written: bool = False) -> None:
        """`as_written`: numbers with a fraction or an exponent become `Real`."""
        self.text = text
        self.problem: str | None = None
        self.oddities: set[str] = set()
        self._as_written = as_written
        self.has_references = False
        self._at = 0
        self._values = 0

    def read(self) -> object:
        """Return the value at the start of the text, or None."""
        value = self._read_value(0)
        if self.problem is None:
            self._skip(_BLANK)
            left = len(self.text) - self._at
            if left:
                self.problem = f"{left} characters follow the value at {self._at}"
        return None if value is _ABSENT else value

    def _stop(self, reason: str) -> _Absent:
        if self.problem is None:
            self.problem = f"{reason} at {self._at}"
        return _ABSENT

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Skip a match of the pattern; return the next character, "" at the end."""
        while True:
            match = pattern.match(self.text, self._at)
            if match is not None:
                self._at = match.end()
            char = self.text[self._at : self._at + 1]
            if char != "/" or not self._skip_comment():
                return char

    def _skip_comment(self) -> bool:
        """Skip a comment; return False if there is none, or it does not end."""
        kind = self.text[self._at : self._at + 2]
        if kind == "/*":
            end = self.text.find("*/", self._at + 2)
            self._at = end + 2 if end >= 0 else self._at
            return end >= 0
        if kind == "//":
            end = self.text.find("\n", self._at)
            self._at = end + 1 if end >= 0 else len(self.text)
            return True
        return False

    def _read_value(self, depth: int) -> object:
        char = self._skip(_BLANK)
        self._values += 1
        if self._values > VALUE_LIMIT:
            return self._stop(f"more than {VALUE_LIMIT} values")
        if char == "{" or char == "[":
            if depth >= DEPTH_LIMIT:
                return self._stop(f"more than {DEPTH_LIMIT} levels")
            self._at += 1
            return self._read_object(depth + 1) if char == "{" else self._read_array(depth + 1)
        if char == '"' or char == "'":
            return self._read_string(char)
        if char == "":
            return self._stop("the text ends")
        if char in "-+.0123456789":
            number = self._read_number(depth)
            if number is not _ABSENT:
                return number
        return self._read_word(depth)

    def _read_string(self, quote: str) -> object:
        match = (_DOUBLE_QUOTED if quote == '"' else _SINGLE_QUOTED).match(self.text, self._at)
        if match is None:
            return self._stop("the text ends inside a string")
        self._at = match.end()
        if "\\" in match[1] and not _KNOWN_ESCAPES.issuperset(
            found[1][0] for found in _ESCAPE.finditer(match[1])
        ):
            self.oddities.add(UNKNOWN_ESCAPE)
        return unescape(match[1])

    def _read_number(self, depth: int) -> object:
        match = _NUMBER.match(self.text, self._at)
        if match is None:
            return _ABSENT
        # Where a text ends inside an object, the rest of a number may be missing, too.
        if match.end() == len(self.text) and depth > 0:
            return self._stop("the text ends after a number that may be cut")
        self._at = match.end()
        digits = match[0].rstrip("LSBFDlsbfd")
        if match.end() > match.start() + len(digits) and match[0][-1].islower():
            self.oddities.add(SMALL_SUFFIX)
        if len(digits) > _LONGEST_NUMBER:
            return digits
        if self._as_written and (len(match[0]) > len(digits) and match[0][-1] in "FD"):
            return Real(float(digits))  # type: ignore[number-in-text]
        if self._as_written and (match[1] or match[2] or match[3]):
            return Real(digits)
        if match[1] is None and match[2] is None and match[3] is None:
            return int(digits)  # type: ignore[number-in-text]
        number = float(digits)  # type: ignore[number-in-text]
        return number if math.isfinite(number) else digits

    def _read_word(self, depth: int) -> object:
        match = _WORD.match(self.text, self._at)
        if match is None:
            return self._stop(f"unexpected {self.text[self._at]!r}")
        word = match[0]
        if word in _WORDS:
            self._at = match.end()
            if word in ("undefined", "NaN"):
                self.oddities.add(NO_VALUE)
            return _WORDS[word]
        if match.end() < len(self.text) and word in _SETS and self.text[match.end()] == "[":
            self._at = match.end()
            self.oddities.add(SET)
            return self._read_value(depth)
        return self._stop(f"unexpected word {word[:40]!r}")

    def _read_array(self, depth: int) -> object:
        items: list[object] = []
        while self.problem is None:
            if self._skip(_BLANK_AND_COMMAS) == "]":
                self._at += 1
                break
            item = self._read_value(depth)
            if item is not _ABSENT:
                items.append(item)
            if self.problem is None and self._skip(_BLANK) not in (",", "]"):
                self._stop("no comma or ] after an item")
        return items

    def _read_object(self, depth: int) -> object:
        members: dict[str, object] = {}
        pairs: list[tuple[object, object]] | None = None
        while self.problem is None:
            begin = self._at
            end = self._skip(_BLANK_AND_COMMAS) == "}"
            if self.text.count(",", begin, self._at) > (1 if members or pairs else 0):
                self.oddities.add(MORE_COMMAS)
            if end:
                self._at += 1
                break
            key = self._read_key(depth)
            if self.problem is not None:
                break
            if self._skip(_BLANK) != ":":
                self._stop("no : after a name")
                break
            self._at += 1
            value = self._read_value(depth)
            if value is not _ABSENT:
                if pairs is None and not isinstance(key, str):
                    pairs = list(members.items())  # the first key that is no text
                if pairs is not None:
                    pairs.append((key, value))
                elif isinstance(key, str):
                    members[key] = value
            if self.problem is None and self._skip(_BLANK) not in (",", "}"):
                self._stop("no comma or } after a member")
        if pairs is not None:
            return PairMap(pairs)
        if "$ref" in members:
            self.has_references = True
        return members

    def _read_key(self, depth: int) -> object:
        """Return a name as str, numbers and words included, or a container key."""
        char = self.text[self._at : self._at + 1]
        if char == '"' or char == "'":
            return self._read_string(char)
        if char == "{" or char == "[":
            return self._read_value(depth)
        match = _NUMBER.match(self.text, self._at)
        self.oddities.add(BARE_NAME if match is None else BARE_NUMBER)
        match = match or _WORD.match(self.text, self._at)
        if match is None:
            return self._stop(f"unexpected {char!r}" if char else "the text ends")
        self._at = match.end()
        return match[0]


def unescape(text: str) -> str:
    """Unescape the text between quotes; lone surrogates become U+FFFD."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if _SURROGATE.search(text):
        # Joins two escapes of one character; a lone surrogate could not be written as UTF-8.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))  # type: ignore[number-in-text]
    return _SHORT_ESCAPES.get(code, code)
