"""Read JSON like fastjson: bare and object keys, single quotes, unquoted names, references.

Invalid text ends the reading: complete values are kept, and the problem has the position.
RocketMQ: RemotingSerializable.decode, which hands the text to fastjson's DefaultJSONParser.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from ...foreign import natural_of
from ...quantities import counted

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
        return self._stop(f"unexpected word of {counted(len(word), 'character')}")

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


EXPANSION_LIMIT: Final = 200_000
"""Maximum values that references may add to a text."""

EXPANSION_TIMES: Final = 8
"""Maximum values that they may add per character: a few hundred could double repeatedly."""

_MOST_JOINED_NAMES: Final = 8
"""Parts of a path tried as one name, because some writers do not escape dots in names."""

_NULL_KEY: Final = "null"
"""fastjson's path part for a place without a name: the key of a map."""


class ReferenceResolver:
    """Resolves fastjson's references, `{"$ref": path}` to the first place of a repeated object.

    A reference to a complete object is replaced by the object itself (shared, not copied). One to
    an enclosing object would make the value infinite and stays, as do paths that lead nowhere.
    """

    __slots__ = ("_expanded", "_measures", "_most", "_root")

    def __init__(self, root: object, length: int) -> None:
        """`length` is the length of the text in characters."""
        self._most = min(EXPANSION_LIMIT, EXPANSION_TIMES * length)
        self._root = root
        self._expanded = 0
        # Complete containers: id -> (values written out, levels). Ids are safe as keys
        # because the root keeps every container alive.
        self._measures: dict[int, tuple[int, int]] = {}

    def resolve(self) -> object:
        """Return the value with its references resolved where possible."""
        self._visit(self._root, 0)
        return self._root

    def _visit(self, value: object, depth: int) -> tuple[int, int]:
        """Resolve references in `value` in text order; return values written out, and levels."""
        if isinstance(value, PairMap):
            parts = self._visit_pairs(value, depth)
        elif isinstance(value, dict):
            parts = [self._visit_slot(value, name, depth) for name in list(value)]
        elif isinstance(value, list):
            parts = [self._visit_slot(value, place, depth) for place in range(len(value))]
        else:
            return 1, 0
        size = 1 + sum(part[0] for part in parts)
        levels = 1 + max((part[1] for part in parts), default=0)
        self._measures[id(value)] = size, levels
        return size, levels

    def _visit_pairs(self, pairs: PairMap, depth: int) -> list[tuple[int, int]]:
        parts: list[tuple[int, int]] = []
        for place, (key, value) in enumerate(pairs):
            key, key_measure = self._resolved(key, depth)
            pairs[place] = key, value
            value, value_measure = self._resolved(value, depth)
            pairs[place] = key, value
            parts += (key_measure, value_measure)
        return parts

    def _visit_slot(
        self, holder: dict[object, object] | list[object], slot: object, depth: int
    ) -> tuple[int, int]:
        holder[slot], measure = self._resolved(holder[slot], depth)  # type: ignore[call-overload]
        return measure

    def _resolved(self, value: object, depth: int) -> tuple[object, tuple[int, int]]:
        path = _path_of(value)
        if path is None:
            return value, self._visit(value, depth + 1)
        target = self._follow(path)
        measure = self._measures.get(id(target))  # None: it encloses the reference, or follows it
        if (
            measure is None
            or self._expanded + measure[0] > self._most
            or depth + 1 + measure[1] > DEPTH_LIMIT
        ):
            # As written out: an object with one text.
            return value, (2, 1)
        self._expanded += measure[0]
        return target, measure

    def _follow(self, path: str) -> object:
        """Return the value at a path from the root, or None."""
        if not path.startswith("$"):
            return None
        at = 1
        value = self._root
        while at < len(path):
            if path[at] == "[" and isinstance(value, list):
                end = path.find("]", at)
                index = natural_of(path[at + 1 : end])
                if end < 0 or index is None or index >= len(value):
                    return None
                value = value[index]
                at = end + 1
            elif path[at] == ".":
                value, at = _member(value, path, at + 1)
                if at < 0:
                    return None
            else:
                return None
        return value


def _path_of(value: object) -> str | None:
    if isinstance(value, dict) and len(value) == 1:
        path = value.get("$ref")
        return path if isinstance(path, str) else None
    return None


def _member(value: object, path: str, at: int) -> tuple[object, int]:
    """Return the member of `value` named at `at`, and the next position in the path, or -1."""
    name = ""
    for _ in range(_MOST_JOINED_NAMES):
        part, at = _name_at(path, at)
        name += part
        if isinstance(value, PairMap):
            # A key has no name. With several keys the path is ambiguous.
            if name == _NULL_KEY and len(value) == 1:
                return value[0][0], at
            return None, -1
        elif isinstance(value, dict) and name in value:
            return value[name], at
        if at >= len(path) or path[at] != ".":
            break
        name += "."
        at += 1
    return None, -1


def _name_at(path: str, at: int) -> tuple[str, int]:
    """Return the name at `at`, with backslash escapes, and its end."""
    chars: list[str] = []
    while at < len(path) and path[at] not in ".[":
        if path[at] == "\\":
            at += 1
        chars.append(path[at : at + 1])
        at += 1
    return "".join(chars), at


class JsonResult(NamedTuple):
    """A decoded JSON text."""

    value: object
    """dict, list, `PairMap`, str, int, float, bool or None; the part read before a problem."""
    problem: str | None = None
    """The problem and its character position, or None."""


FASTJSON1: Final = "RocketMQ through 5.3 (fastjson 1)"
FASTJSON2: Final = "RocketMQ 5.4 and later (fastjson2)"


def canonical_name(name: str) -> str:
    """Return a name in lower case without `_` and `-`; empty if it is not ASCII."""
    return name.replace("_", "").replace("-", "").lower() if name.isascii() else ""


def ignored_by_fastjson2(names: list[str]) -> str:
    """Return the text of a finding about member names that fastjson2 ignores."""
    return f"{FASTJSON2} ignores {', '.join(names)[:200]}"
