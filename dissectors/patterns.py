r"""Regular expressions in linear time, for the ``~`` of a filter: the text comes from the network.

The rules here:

* A backtracking matcher can be held for hours by a topic made for the purpose. This one is an
  automaton that reads each character once: the work is at most (characters) x (size of the
  pattern), whatever the pattern looks like.
* The size of a pattern, the length of the text that is looked at and the memory of the automaton
  are bounded (`MAX_NODES`, `MAX_TEXT`, `_MAX_STEPS`).
* The syntax is the part of Python's that needs no backtracking: literals, ``.``, classes
  (``[a-z]``, ``\d \w \s`` and their capitals), groups, ``|``, ``* + ? {m,n}``, ``^ $ \b \B`` and a
  leading ``(?i)``. A pattern is searched for anywhere in the text; ``.`` is any character.
"""

from __future__ import annotations

from collections.abc import Callable

from .foreign import natural_of

MAX_TEXT = 8192
"""Characters of a text that are looked at; ``$`` does not match at a cut."""
MAX_NODES = 512
"""Size of a pattern after its counted repetitions are written out."""
_MAX_DEPTH = 40
_MAX_STEPS = 20_000

CharTest = Callable[[str], bool]

_START, _OTHER, _WORD = 0, 1, 2
_CLASSES: dict[str, CharTest] = {
    "d": str.isdecimal,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_SPECIAL = frozenset("\\^$.|?*+()[]{}")


class PatternError(ValueError):
    """The pattern is not one; says where."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        """index in the pattern"""
        self.reason = reason


class _Program:
    """The automaton: a node either reads a character, asserts a place, or splits into others."""

    __slots__ = ("asserts", "nexts", "tests")

    def __init__(self) -> None:
        self.tests: list[CharTest | None] = []
        self.asserts: list[str] = []
        self.nexts: list[list[int]] = []

    def add(self, test: CharTest | None = None, assertion: str = "") -> int:
        """Return the number of a new node."""
        if len(self.tests) >= MAX_NODES:
            raise PatternError(0, f"the pattern is too large (more than {MAX_NODES} nodes)")
        self.tests.append(test)
        self.asserts.append(assertion)
        self.nexts.append([])
        return len(self.tests) - 1


class _Node:
    """A part of the parsed pattern: it appends itself to the program as often as it is asked."""

    __slots__ = ("build",)

    def __init__(self, build: Callable[[_Program, int], int]) -> None:
        self.build = build
        """(program, node to go on from) -> node at which the part has matched"""


def _character(test: CharTest) -> _Node:
    def build(program: _Program, start: int) -> int:
        reading, end = program.add(test), program.add()
        program.nexts[start].append(reading)
        program.nexts[reading].append(end)
        return end

    return _Node(build)


def _assertion(kind: str) -> _Node:
    def build(program: _Program, start: int) -> int:
        node = program.add(assertion=kind)
        program.nexts[start].append(node)
        return node

    return _Node(build)


def _sequence(parts: list[_Node]) -> _Node:
    def build(program: _Program, start: int) -> int:
        for part in parts:
            start = part.build(program, start)
        return start

    return _Node(build)


def _choice(branches: list[_Node]) -> _Node:
    def build(program: _Program, start: int) -> int:
        end = program.add()
        for branch in branches:
            entry = program.add()
            program.nexts[start].append(entry)
            program.nexts[branch.build(program, entry)].append(end)
        return end

    return _Node(build)


def _repetition(part: _Node, least: int, most: int | None) -> _Node:
    def build(program: _Program, start: int) -> int:
        for _ in range(least):
            start = part.build(program, start)
        end = program.add()
        if most is None:
            loop = program.add()
            program.nexts[start].append(loop)
            program.nexts[part.build(program, loop)].append(loop)
            program.nexts[loop].append(end)
            return end
        for _ in range(most - least):
            program.nexts[start].append(end)
            start = part.build(program, start)
        program.nexts[start].append(end)
        return end

    return _Node(build)


class _Parser:
    """Recursive descent over the pattern, as deep as `_MAX_DEPTH` groups."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.ignore_case = pattern.startswith("(?i)")
        self.at = 4 if self.ignore_case else 0
        self.depth = 0

    def parse(self) -> _Node:
        node = self._alternatives()
        if self.at < len(self.pattern):
            raise PatternError(self.at, "this closing parenthesis was not opened")
        return node

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _alternatives(self) -> _Node:
        branches = [self._branch()]
        while self._peek() == "|":
            self.at += 1
            branches.append(self._branch())
        return branches[0] if len(branches) == 1 else _choice(branches)

    def _branch(self) -> _Node:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated())
        return _sequence(parts)

    def _repeated(self) -> _Node:
        start = self.at
        part = self._atom()
        counted = 0
        while (bounds := self._quantifier()) is not None:
            counted += 1
            if counted > 1:
                raise PatternError(start, "a repetition of a repetition; put a group around it")
            part = _repetition(part, *bounds)
            if self._peek() == "?":  # as few as possible: no difference for a yes or no
                self.at += 1
        return part

    def _quantifier(self) -> tuple[int, int | None] | None:
        char = self._peek()
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if char in simple:
            self.at += 1
            return simple[char]
        if char != "{":
            return None
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : end].partition(",")
        least, most = natural_of(low or "0"), natural_of(high) if high else None
        if end < 0 or least is None or (high and most is None) or not (low or (comma and high)):
            raise PatternError(self.at, r"not a repetition {m,n}; write \{ for the character")
        most = most if comma else least
        if max(least, most or 0) > MAX_NODES or (most is not None and most < least):
            raise PatternError(self.at, f"a repetition from {least} to {most} is not possible")
        self.at = end + 1
        return least, most

    def _atom(self) -> _Node:
        char, start = self._peek(), self.at
        self.at += 1
        if char == "(":
            return self._group(start)
        if char == "[":
            return _character(self._class(start))
        if char == ".":
            return _character(lambda _: True)
        if char in "^$":
            return _assertion(char)
        if char in "*+?{":
            raise PatternError(start, "nothing to repeat")
        if char == "\\":
            if self._peek() in ("b", "B"):
                self.at += 1
                return _assertion(self.pattern[self.at - 1])
            return _character(self._case_blind(self._escape(start)))
        return _character(self._case_blind(char.__eq__))

    def _group(self, start: int) -> _Node:
        if self._peek() == "?":
            if self.pattern[self.at + 1 : self.at + 2] != ":":
                raise PatternError(start, "only (?:...) and a leading (?i) are known")
            self.at += 2
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise PatternError(start, "too many groups in groups")
        node = self._alternatives()
        self.depth -= 1
        if self._peek() != ")":
            raise PatternError(start, "this parenthesis is not closed")
        self.at += 1
        return node

    def _escape(self, start: int) -> CharTest:
        char = self._peek()
        self.at += 1
        if char.lower() in _CLASSES:
            test = _CLASSES[char.lower()]
            return test if char.islower() else lambda other: not test(other)
        if char in _CONTROLS:
            return _CONTROLS[char].__eq__
        if char == "" or char.isalnum():
            raise PatternError(start, f"\\{char} has no meaning here")
        return char.__eq__

    def _class(self, start: int) -> CharTest:
        negated = self._peek() == "^"
        self.at += negated
        tests: list[CharTest] = []
        first = True
        while first or self._peek() != "]":
            if not self._peek():
                raise PatternError(start, "this bracket is not closed")
            tests.append(self._case_blind(self._class_member(start)))
            first = False
        self.at += 1
        return lambda char: any(test(char) for test in tests) is not negated

    def _class_member(self, start: int) -> CharTest:
        low = self._peek()
        self.at += 1
        if low == "\\":
            if self._peek() not in _SPECIAL and self._peek() not in ("-", "/"):
                return self._escape(self.at - 1)
            low = self._peek()
            self.at += 1
        if self._peek() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return low.__eq__
        high = self.pattern[self.at + 1]
        self.at += 2
        if high == "\\":
            high = self._peek()
            self.at += 1
        if high < low:
            raise PatternError(start, f"the range {low}-{high} is empty")
        return lambda char: low <= char <= high

    def _case_blind(self, test: CharTest) -> CharTest:
        if not self.ignore_case:
            return test
        return lambda char: test(char) or test(char.lower()) or test(char.upper())


class _State:
    """A set of places in the pattern at which the text so far may be."""

    __slots__ = ("before", "nodes", "steps")

    def __init__(self, nodes: frozenset[int], before: int) -> None:
        self.nodes = nodes
        self.before = before
        self.steps: dict[str, _State] = {}


class Pattern:
    """A regular expression that answers whether it occurs in a text."""

    def __init__(self, pattern: str) -> None:
        """Raise PatternError where `pattern` is not one."""
        node = _Parser(pattern).parse()
        self._program = _Program()
        self._entry = self._program.add()
        self._end = node.build(self._program, self._entry)
        self._matched = _State(frozenset(), _START)
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._step_count = 0
        self._start = self._state_of(frozenset(), _START)

    def search(self, text: str) -> bool:
        """Return whether the pattern occurs in the first `MAX_TEXT` characters of `text`."""
        state, matched = self._start, self._matched
        for char in text if len(text) <= MAX_TEXT else text[:MAX_TEXT]:
            following = state.steps.get(char)
            state = self._step(state, char) if following is None else following
            if state is matched:
                return True
        if len(text) > MAX_TEXT:
            return False
        following = state.steps.get("")
        return (self._step(state, "") if following is None else following) is matched

    def _step(self, state: _State, char: str) -> _State:
        """Work out and remember where `char` leads; the empty text is the end of the text."""
        if self._step_count >= _MAX_STEPS:  # a new automaton, so that memory is bounded
            self._states.clear()
            self._step_count = 0
            self._start = self._state_of(frozenset(), _START)
        self._step_count += 1
        after = _kind_of(char)
        places = self._places(state, after, at_end=not char)
        if self._end in places:
            following = self._matched
        else:
            program = self._program
            read: set[int] = set()
            for place in places if char else ():
                test = program.tests[place]
                if test is not None and test(char):
                    read.update(program.nexts[place])
            following = self._state_of(frozenset(read), after)
        state.steps[char] = following
        return following

    def _places(self, state: _State, after: int, at_end: bool) -> set[int]:
        """Return all nodes that are reached without reading a character."""
        program, before = self._program, state.before
        holds = {
            "": True,
            "^": before == _START,
            "$": at_end,
            "b": (before == _WORD) is not (after == _WORD),
            "B": (before == _WORD) is (after == _WORD),
        }
        places: set[int] = set()
        waiting = [self._entry, *state.nodes]
        while waiting:
            node = waiting.pop()
            if node in places or not holds[program.asserts[node]]:
                continue
            places.add(node)
            if program.tests[node] is None:
                waiting.extend(program.nexts[node])
        return places

    def _state_of(self, nodes: frozenset[int], before: int) -> _State:
        key = (nodes, before)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(nodes, before)
        return state


def _kind_of(char: str) -> int:
    if not char:
        return _OTHER
    return _WORD if char.isalnum() or char == "_" else _OTHER
