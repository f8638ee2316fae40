r"""Regular expressions in linear time: whatever the pattern, no text from the network can hold it.

Filters (``~``) and rewrite rules use them; RE2 does the work. Text is bytes of UTF-8; what is not
UTF-8 matches nothing but ``\C`` (any byte). Bounded are the size of a pattern, the steps of a
search, the effort for one message, and the result.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from .foreign import natural_of

if TYPE_CHECKING:
    import re2

MAX_SIZE: Final = 2000
"""maximum instructions of a compiled pattern; ``.{100}`` has a thousand"""
MAX_STEPS: Final = 1 << 32
"""maximum steps of one search: ten seconds for a malicious pattern, otherwise milliseconds"""
MAX_RESULT: Final = 16 << 20
"""maximum bytes of a result: no frame takes more"""
MAX_SECONDS: Final = 5.0
"""maximum CPU seconds per message; microseconds are usual"""

_REASONS: Final = {
    "missing argument to repetition operator": "nothing to repeat",
    "no argument for repetition operator": "nothing to repeat",
    "bad repetition operator": "repeated repetition; put a group around it",
    "invalid repetition size": "more than 1000 repetitions in all, or fewer at most than at least",
    "missing )": "unclosed '('",
    "unexpected )": "unmatched ')'",
    "missing ]": "unclosed '['",
    "trailing \\": "nothing after the backslash",
    "invalid character class range": "empty range",
    "invalid escape sequence": "unknown escape",
    "pattern too large - compile failed": "the pattern is too large",
}
_PARENTHESES: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", re.DOTALL)
"""skips parentheses in escapes and classes"""
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "\\": "\\"}


class PatternError(ValueError):
    """The pattern or its replacement is invalid; the text says where."""

    def __init__(self, position: int, reason: str, *, backtracks: bool = False) -> None:
        super().__init__(reason)
        self.position = position
        """index in the pattern"""
        self.reason = reason
        self.backtracks = backtracks
        """it needs look-around or backreferences, which linear time does not allow"""


class TooMuchWork(Exception):
    """A search was stopped; the text says why."""


class Effort:
    """Work for one message: CPU time and searches."""

    __slots__ = ("_seconds", "_until", "searches")

    def __init__(self, seconds: float = MAX_SECONDS) -> None:
        self._seconds = seconds
        self._until = time.thread_time() + seconds
        self.searches = 0
        """searches so far"""

    def spend(self) -> None:
        """Count a search; raise TooMuchWork after the time limit."""
        self.searches += 1
        if time.thread_time() > self._until:
            raise TooMuchWork(
                f"took more than {self._seconds:g} s of CPU: a pattern looks through the whole "
                "text again for each of its places"
            )


class Pattern:
    """A regular expression, searched anywhere in a text."""

    __slots__ = ("_most", "_regexp", "text")

    def __init__(self, pattern: str, *, over_lines: bool = False) -> None:
        """Raise PatternError if `pattern` is invalid; `over_lines`: ``.`` matches line feeds."""
        self.text = pattern
        self._regexp = _compiled(pattern, over_lines)
        size: int = max(self._regexp.programsize, self._regexp.reverseprogramsize)
        if size > MAX_SIZE:
            raise PatternError(0, f"the pattern is too large ({size} steps, at most {MAX_SIZE})")
        self._most = MAX_STEPS // size  # a search takes at most size x bytes steps

    @property
    def groups(self) -> dict[str, int]:
        """Groups: their numbers, and their names if they have one."""
        names: dict[str, int] = self._regexp.groupindex
        return {str(number): number for number in range(self._regexp.groups + 1)} | names

    def search(self, text: str) -> bool:
        """Return whether it matches in `text`; only the beginning of a long text is searched."""
        data = bytes_of(text)
        return self._regexp.search(data, 0, self._most) is not None

    def occurs(self, data: bytes, effort: Effort) -> bool:
        """Return whether it matches in `data`; raise TooMuchWork if that takes too long."""
        self._check(data)
        effort.spend()
        return self._regexp.search(data) is not None

    def replaced(self, data: bytes, replacement: Replacement, effort: Effort) -> bytes:
        """Replace all matches in `data`; raise TooMuchWork if that takes too long."""
        self._check(data)
        pieces: list[bytes] = []
        at = kept = size = 0
        while True:  # there may be as many searches as characters, each through the whole rest
            effort.spend()
            match = self._regexp.search(data, at)
            if match is None:
                break
            start, end = match.span()
            # RE2 matches bytes: an empty match inside of a character is none.
            if start < end or start == len(data) or not _is_inside(data[start]):
                new = replacement.of(match)
                pieces += (data[kept:start], new)
                size += start - kept + len(new)
                kept = end
                if size > MAX_RESULT:
                    raise TooMuchWork(f"becomes more than {MAX_RESULT >> 20} MiB")
            at = end if start < end else end + 1
            if at > len(data):
                break
        pieces.append(data[kept:])
        return b"".join(pieces)

    def _check(self, data: bytes) -> None:
        if len(data) > self._most:
            raise TooMuchWork(
                f"has {len(data):,} bytes; the pattern {self.text[:60]!r} takes {self._most:,} "
                "at most"
            )


class Replacement:
    r"""A replacement: text, groups (``\1``, ``\g<name>``), ``\n \t \\``."""

    __slots__ = ("_pieces",)

    def __init__(self, template: str, pattern: Pattern) -> None:
        """Raise PatternError for a group that `pattern` does not have."""
        self._pieces = _pieces_of(template, pattern.groups)

    def of(self, match: re2._Match) -> bytes:
        """Return the replacement of a match; groups without a match are empty."""
        return b"".join(
            piece if isinstance(piece, bytes) else match.group(piece) or b""
            for piece in self._pieces
        )


def bytes_of(text: str) -> bytes:
    """Encode a text for patterns; lone surrogates are kept and are not UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """Decode the text of `bytes_of`, also after replacements."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # a pattern split a character
        return data.decode("utf-8", "replace")


def _is_inside(byte: int) -> bool:
    """Return whether a byte is a UTF-8 continuation byte."""
    return byte & 0xC0 == 0x80


def _compiled(pattern: str, over_lines: bool) -> re2._Regexp:
    import re2  # importing takes 20 ms, and only patterns need it

    options = re2.Options()
    options.log_errors = False
    options.dot_nl = over_lines
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError as error:
        raise PatternError(error.start, "half a character") from None
    except re2.error as error:
        raise _problem_of(pattern, error.args[0].decode("utf-8", "replace")) from None


def _problem_of(pattern: str, error: str) -> PatternError:
    kind, _, fragment = error.partition(": ")
    position = max(pattern.find(fragment), 0)
    if kind == "trailing \\":
        position = len(pattern) - 1
    if kind == "invalid perl operator":
        around = fragment.startswith(("(?=", "(?!", "(?<=", "(?<!"))
        what = "look-around" if around else fragment
        return PatternError(position, f"{what} is not known", backtracks=around)
    if kind == "invalid escape sequence" and fragment[1:].isdecimal():
        return PatternError(
            position, f"{fragment} refers back, which is not known", backtracks=True
        )
    if kind in ("missing )", "unexpected )"):
        position = _odd_parenthesis(pattern)
    return PatternError(position, _REASONS.get(kind, error))


def _odd_parenthesis(pattern: str) -> int:
    """Return the index of an unbalanced parenthesis, or 0 if not found."""
    opened: list[int] = []
    for match in _PARENTHESES.finditer(pattern):
        if match[0] == "(":
            opened.append(match.start())
        elif match[0] == ")":
            if not opened:
                return match.start()
            opened.pop()
    return opened[0] if opened else 0


def _pieces_of(template: str, groups: dict[str, int]) -> list[bytes | int]:
    pieces: list[bytes | int] = []
    at = 0
    while (slash := template.find("\\", at)) >= 0:
        pieces.append(bytes_of(template[at:slash]))
        char = template[slash + 1 : slash + 2]
        at = slash + 2
        if char == "g":
            at = template.find(">", at) + 1
            name = template[slash + 3 : at - 1]
            if at == 0 or template[slash + 2] != "<" or name not in groups:
                raise PatternError(slash, r"\g must be followed by <name> or <number> of a group")
            pieces.append(groups[name])
        elif char.isdecimal() and char != "0":
            following = template[at : at + 1]
            number = natural_of(char + following) if following.isdecimal() else natural_of(char)
            if number is None or str(number) not in groups:
                raise PatternError(slash, f"there is no group {template[slash + 1 : at + 1]}")
            at += following.isdecimal()
            pieces.append(number)
        elif char in _CONTROLS:
            pieces.append(_CONTROLS[char].encode())
        elif char == "" or char.isalnum():
            raise PatternError(slash, f"\\{char} has no meaning here")
        else:
            pieces.append(bytes_of("\\" + char))
    pieces.append(bytes_of(template[at:]))
    return [piece for piece in pieces if piece != b""]
