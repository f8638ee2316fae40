"""Rewrite messages before they are replayed, by rules of a TOML file and Python functions.

A file is a list of `[[rule]]`, applied in order; each to the messages that fit its conditions:
see docs/replay.md. A file's code runs only in `rewrite_of`, from the bytes that were read.
Rules cannot change the UNIQ_KEY: keeping it is an option.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from dissectors.foreign import Unreadable, toml_of
from dissectors.patterns import (
    Effort,
    Pattern,
    PatternError,
    Replacement,
    TooMuchWork,
    bytes_of,
    text_of,
)

from ..message import UNIQ_KEY, Message
from ..validators import why_not_types

RULES: Final = ".toml"
"""how the name of a file with rules ends; any other name is `FILE.py:FUNCTION`"""
_MAX_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """The contents of the rewrite files, read once: the digest covers exactly what is used."""

    rules: dict[str, bytes]
    """name of a file with rules → its content, in order"""
    functions: dict[str, bytes]
    """``FILE.py:FUNCTION`` → content of the file, in order"""

    @property
    def digest(self) -> str:
        """Digest of all contents and the functions' names; empty without files."""
        if not self.rules and not self.functions:
            return ""
        digest = hashlib.blake2b(digest_size=16)
        for data in self.rules.values():
            digest.update(b"rules %d\n" % len(data) + data)
        for name, data in self.functions.items():
            function = name.rpartition(":")[2].encode(errors="surrogateescape")
            digest.update(b"function %s %d\n" % (function, len(data)) + data)
        return digest.hexdigest()


def read_rewrite_files(names: Sequence[str]) -> RewriteFiles:
    """Read the files without running them; RewriteError if one cannot be read."""
    rules: dict[str, bytes] = {}
    functions: dict[str, bytes] = {}
    for name in names:
        if name.endswith(RULES):
            rules[name] = _content_of(name, "TOML")
            continue
        path, _, function = name.rpartition(":")
        if not path or not function:
            raise RewriteError(f"{name!r}: give FILE.py:FUNCTION")
        functions[name] = _content_of(path, "Python")
    return RewriteFiles(rules, functions)


def rewrite_of(files: RewriteFiles) -> Rewrite:
    """Return compiled rules and functions; RewriteError if one is invalid.

    This runs the code of the functions' files.
    """
    rules = [rule for name, data in files.rules.items() for rule in rules_of(data, name)]
    functions = [_function_of(data, name) for name, data in files.functions.items()]
    return Rewrite(rules, functions)


def _function_of(data: bytes, name: str) -> Function:
    """Run the content of a file and return the function that ``FILE.py:FUNCTION`` names.

    RewriteError if the code fails or lacks the function.
    """
    path, _, function_name = name.rpartition(":")
    module = types.ModuleType("rmqtool_rewrite")
    module.__file__ = path
    try:
        exec(compile(data, path, "exec"), module.__dict__)
    except Exception as error:  # the user's file may raise anything
        raise RewriteError(f"{path}: {type(error).__name__}: {error}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise RewriteError(f"{path}: there is no function {function_name!r} in it")
    return function  # type: ignore[no-any-return]


def _content_of(name: str, kind: str) -> bytes:
    path = Path(name)
    try:
        # a pipe could block, a device never end
        if path.exists() and not path.is_file():
            raise RewriteError(f"{name}: not a regular file")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise RewriteError(f"{name}: no {kind} file: {error.strerror or error}") from None
    if len(data) > _MAX_BYTES:
        raise RewriteError(f"{name}: larger than {_MAX_BYTES >> 20} MiB")
    return data


_TEXTS: Final = ("topic", "group", "tag", "key", "body")
_RESERVED: Final = (UNIQ_KEY, "TAGS", "KEYS", "WAIT")

Change = Callable[[str | None, Effort], str | None]
BodyChange = Callable[[bytes, Effort], bytes]
Function = Callable[[Message], Message | None]


class RewriteError(Exception):
    """A rule or function is invalid or failed; the text says where and why."""


class Rewritten(NamedTuple):
    """A rewritten message."""

    message: Message
    group: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule."""

    place: str
    """its file and number"""
    conditions: tuple[tuple[str, Pattern], ...]
    """required matches: name (``property.NAME`` for properties), pattern"""
    changes: tuple[tuple[str, Change], ...]
    """name → new text; None removes"""
    body: BodyChange | None
    """body → new body"""
    drop: bool
    """the message is left out"""

    def fits(self, message: Message, group: str, effort: Effort) -> bool:
        """Return whether all conditions hold."""
        for name, pattern in self.conditions:
            data = _data_of(name, message, group)
            if data is None or not pattern.occurs(data, effort):
                return False
        return True


class Rewrite:
    """All rules and functions of a rewrite, in order."""

    def __init__(self, rules: Sequence[Rule] = (), functions: Sequence[Function] = ()) -> None:
        self._rules = tuple(rules)
        self._functions = tuple(functions)

    @property
    def is_empty(self) -> bool:
        """Whether there are no rules and no functions."""
        return not self._rules and not self._functions

    def apply(self, message: Message, group: str) -> Rewritten | None:
        """Return the rewritten message and its group, or None if it is dropped.

        RewriteError if a user's function fails or the rules exceed the limit.
        """
        done = apply_rules(self._rules, message, group)
        if done is None:
            return None
        message, group = done
        for function in self._functions:
            changed = _called(function, message)
            if changed is None:
                return None
            message = changed
        return Rewritten(message, group)


def apply_rules(
    rules: Sequence[Rule], message: Message, group: str, effort: Effort | None = None
) -> Rewritten | None:
    """Return the rewritten message and its group, or None if it is dropped.

    `effort`: limit of the work; None is the default. RewriteError beyond it.
    """
    # Work is bounded, because rules (of a journal) and texts may be untrusted.
    effort = Effort() if effort is None and rules else effort
    for rule in rules:
        assert effort is not None
        try:
            if rule.fits(message, group, effort):
                if rule.drop:
                    return None
                message, group = _changed(rule, message, group, effort)
        except TooMuchWork as error:
            subject = message.unique_key or message.topic
            raise RewriteError(f"{rule.place}: message {subject} {error}") from None
    return Rewritten(message, group)


def rules_of(data: bytes, path: str) -> list[Rule]:
    """Parse the rules of a file; RewriteError names the file and the rule."""
    try:
        content = toml_of(data)
    except Unreadable as error:
        raise RewriteError(f"{path}: not a TOML file: {error}") from None
    unknown = set(content) - {"rule"}
    rules = content.get("rule", [])
    if unknown or not isinstance(rules, list) or not rules:
        name = f"unknown key {sorted(unknown)[0]!r}" if unknown else "there is no rule"
        raise RewriteError(f"{path}: {name}; a file is a list of [[rule]]")
    return [_rule_of(entry, f"{path}, rule {number}") for number, entry in enumerate(rules, 1)]


def _called(function: Function, message: Message) -> Message | None:
    name = getattr(function, "__name__", "the function")
    place = f"{name}, message {message.unique_key or message.topic}"
    try:
        # a copy: the function may change it in place
        changed = function(replace(message, properties=dict(message.properties)))
    except Exception as error:  # the user's function may raise anything
        raise RewriteError(f"{place}: {type(error).__name__}: {error}") from None
    if changed is None:
        return None
    if not isinstance(changed, Message):
        raise RewriteError(f"{name} returned {type(changed).__name__}, not a Message or None")
    wrong = why_not_types(changed)
    if wrong is not None and why_not_types(message) is None:  # a capture may have any flag
        raise RewriteError(f"{place}: {wrong.reason}")
    return changed


def _text_of(name: str, message: Message, group: str) -> str | None:
    if name == "topic":
        return message.topic
    if name == "group":
        return group
    if name == "tag":
        return message.tags
    if name == "key":
        return message.keys
    return message.properties.get(name.removeprefix("property."))


def _data_of(name: str, message: Message, group: str) -> bytes | None:
    if name == "body":
        return message.body
    text = _text_of(name, message, group)
    return None if text is None else bytes_of(text)


def _changed(rule: Rule, message: Message, group: str, effort: Effort) -> tuple[Message, str]:
    message = replace(message, properties=dict(message.properties))
    for name, change in rule.changes:
        text = change(_text_of(name, message, group), effort)
        if name == "topic":
            message.topic = text or ""
        elif name == "group":
            group = text or ""
        elif name == "tag":
            message.tags = text
        elif name == "key":
            message.keys = text
        elif text is None:
            message.properties.pop(name.removeprefix("property."), None)
        else:
            message.properties[name.removeprefix("property.")] = text
    if rule.body is not None:
        message.body = rule.body(message.body, effort)
    return message, group


def _rule_of(entry: object, place: str) -> Rule:
    if not isinstance(entry, dict):
        raise RewriteError(f"{place}: not a table")
    unknown = set(entry) - {*_TEXTS, "if", "property", "drop"}
    if unknown:
        known = ", ".join((*_TEXTS, "property", "drop", "if"))
        raise RewriteError(f"{place}: unknown key {sorted(unknown)[0]!r}; known keys: {known}")
    conditions = _conditions_of(entry.get("if", {}), place)
    changes = [
        (name, _change_of(entry[name], f"{place}, {name}", name in ("tag", "key")))
        for name in _TEXTS[:4]
        if name in entry
    ]
    properties = entry.get("property", {})
    if not isinstance(properties, dict):
        raise RewriteError(f"{place}: property must be a table: property = {{ name = ... }}")
    for name, value in properties.items():
        if name in _RESERVED:
            raise RewriteError(f"{place}: property {name} cannot be rewritten{_instead_of(name)}")
        changes.append((f"property.{name}", _change_of(value, f"{place}, property {name}", True)))
    drop = entry.get("drop", False)
    if not isinstance(drop, bool):
        raise RewriteError(f"{place}: drop must be true or false")
    if not changes and "body" not in entry and not drop:
        raise RewriteError(f"{place}: it changes nothing")
    body = _body_change_of(entry["body"], f"{place}, body") if "body" in entry else None
    return Rule(place, conditions, tuple(changes), body, drop)


def _instead_of(name: str) -> str:
    return {"TAGS": "; use tag", "KEYS": "; use key", UNIQ_KEY: "; use --ids"}.get(name, "")


def _conditions_of(entry: object, place: str) -> tuple[tuple[str, Pattern], ...]:
    if not isinstance(entry, dict):
        raise RewriteError(f'{place}: if must be a table: if = {{ topic = "^Order" }}')
    flat: list[tuple[str, object]] = []
    for name, value in entry.items():
        if name == "property" and isinstance(value, dict):
            flat += [(f"property.{inner}", pattern) for inner, pattern in value.items()]
        elif name in _TEXTS:
            flat.append((name, value))
        else:
            raise RewriteError(
                f"{place}: if: unknown key {name!r}; known keys: {', '.join(_TEXTS)}"
            )
    return tuple((name, _pattern(value, f"{place}, if {name}")) for name, value in flat)


def _pattern(value: object, place: str) -> Pattern:
    if not isinstance(value, str):
        raise RewriteError(f"{place}: must be a regular expression in quotes")
    try:
        return Pattern(value)
    except PatternError as error:
        hint = "; use a function instead: --rewrite FILE.py:FUNCTION" if error.backtracks else ""
        raise RewriteError(f"{place}: invalid regular expression: {error}{hint}") from None


def _change_of(value: object, place: str, removable: bool) -> Change:
    if isinstance(value, str):
        return lambda _, __: value
    if value is False and removable:
        return lambda _, __: None
    pattern, replacement = _substitution_of(value, place)

    def change(text: str | None, effort: Effort) -> str | None:
        if text is None:
            return None
        return text_of(pattern.replaced(bytes_of(text), replacement, effort))

    return change


def _body_change_of(value: object, place: str) -> BodyChange:
    if isinstance(value, str):
        data = value.encode()
        return lambda _, __: data
    pattern, replacement = _substitution_of(value, place)
    return lambda body, effort: pattern.replaced(body, replacement, effort)


def _substitution_of(value: object, place: str) -> tuple[Pattern, Replacement]:
    """Parse ``{ match = ..., replace = ... }`` to a pattern and a replacement."""
    if not isinstance(value, Mapping) or set(value) != {"match", "replace"}:
        raise RewriteError(f"{place}: give a text, or {{ match = '...', replace = '...' }}")
    pattern, template = _pattern(value["match"], place), value["replace"]
    if not isinstance(template, str):
        raise RewriteError(f"{place}: replace must be a text")
    try:
        return pattern, Replacement(template, pattern)
    except PatternError as error:
        raise RewriteError(f"{place}: invalid replace: {error}") from None
