"""Rules that change messages before they are replayed: out of a TOML file, and Python functions.

The file is a list of rules, applied in order; each to the messages that fit its conditions::

    [[rule]]
    if = { topic = "^Order", property.tenant = "^acme$" }   # regular expressions, all must be found
    topic = { match = "^", replace = "test_" }               # or a text that takes its place
    group = "replay-group"
    tag = { match = "^v1-", replace = "" }
    key = { match = '\\d{4}$', replace = "0000" }
    body = { match = '"card":"\\d+"', replace = '"card":"0"' }
    property = { tenant = "test", secret = false }           # false removes it
    # drop = true                                            # leaves the message out

Rules: pure; what is wrong with a rule is found before anything is sent.
The UNIQ_KEY is no business of a rule: whether it is kept is an option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dissectors.foreign import Unreadable, toml_of

from ..message import UNIQ_KEY, Message

_TEXTS: Final = ("topic", "group", "tag", "key", "body")
_RESERVED: Final = (UNIQ_KEY, "TAGS", "KEYS", "WAIT")

Change = Callable[[str | None], str | None]
Function = Callable[[Message], Message | None]


class RewriteError(Exception):
    """A rule or a function cannot be used, or failed; the text says where and why."""


class Rewritten(NamedTuple):
    """A message after the rules."""

    message: Message
    group: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, ready to use."""

    conditions: tuple[tuple[str, re.Pattern[str]], ...]
    """what must be found: name (``property.NAME`` for properties), pattern"""
    body_condition: re.Pattern[bytes] | None
    """what must be found in the body"""
    changes: tuple[tuple[str, Change], ...]
    """name → new text; None removes"""
    body: Callable[[bytes], bytes] | None
    """body → new body"""
    drop: bool
    """the message is left out"""
    has_patterns: bool
    """it holds a regular expression"""

    def fits(self, message: Message, group: str) -> bool:
        """Whether all conditions hold."""
        for name, pattern in self.conditions:
            text = _text_of(name, message, group)
            if text is None or pattern.search(text) is None:
                return False
        return self.body_condition is None or self.body_condition.search(message.body) is not None


class Rewrite:
    """All rules and functions, in order."""

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        functions: Sequence[Function] = (),
        apply: Callable[[Message, str], Rewritten | None] | None = None,
    ) -> None:
        """`apply`: whoever applies the rules; None: this process."""
        self._rules = tuple(rules)
        self._functions = tuple(functions)
        self._apply = apply

    @property
    def is_empty(self) -> bool:
        """Whether nothing is ever changed."""
        return not self._rules and not self._functions

    def apply(self, message: Message, group: str) -> Rewritten | None:
        """Return the message and its group after the rules; None where it is left out.

        RewriteError where a user's function fails, or the rules take too long.
        """
        apply = self._apply
        done = apply(message, group) if apply else apply_rules(self._rules, message, group)
        if done is None:
            return None
        message, group = done
        for function in self._functions:
            changed = _called(function, message)
            if changed is None:
                return None
            message = changed
        return Rewritten(message, group)


def apply_rules(rules: Sequence[Rule], message: Message, group: str) -> Rewritten | None:
    """Return the message and its group after the rules; None where it is left out."""
    for rule in rules:
        if rule.fits(message, group):
            if rule.drop:
                return None
            message, group = _changed(rule, message, group)
    return Rewritten(message, group)


def rules_of(data: bytes, path: str) -> list[Rule]:
    """Return the rules in the content of a file; RewriteError names file and rule."""
    try:
        content = toml_of(data)
    except Unreadable as error:
        raise RewriteError(f"{path}: no TOML file: {error}") from None
    unknown = set(content) - {"rule"}
    rules = content.get("rule", [])
    if unknown or not isinstance(rules, list) or not rules:
        name = f"{sorted(unknown)[0]!r} means nothing" if unknown else "there is no rule"
        raise RewriteError(f"{path}: {name}; a file is a list of [[rule]]")
    return [_rule_of(entry, f"{path}, rule {number}") for number, entry in enumerate(rules, 1)]


def _called(function: Function, message: Message) -> Message | None:
    name = getattr(function, "__name__", "the function")
    try:
        changed = function(replace(message, properties=dict(message.properties)))
    except Exception as error:  # whatever the user's function does
        place = f"{name}, message {message.unique_key or message.topic}"
        raise RewriteError(f"{place}: {type(error).__name__}: {error}") from None
    if changed is not None and not isinstance(changed, Message):
        raise RewriteError(f"{name} gave {type(changed).__name__}, not a Message or None")
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


def _changed(rule: Rule, message: Message, group: str) -> tuple[Message, str]:
    message = replace(message, properties=dict(message.properties))
    for name, change in rule.changes:
        text = change(_text_of(name, message, group))
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
        message.body = rule.body(message.body)
    return message, group


def _rule_of(entry: object, place: str) -> Rule:
    if not isinstance(entry, dict):
        raise RewriteError(f"{place}: not a table")
    unknown = set(entry) - {*_TEXTS, "if", "property", "drop"}
    if unknown:
        known = ", ".join((*_TEXTS, "property", "drop", "if"))
        raise RewriteError(f"{place}: {sorted(unknown)[0]!r} means nothing; there are {known}")
    conditions, body_condition = _conditions_of(entry.get("if", {}), place)
    changes = [
        (name, _change_of(entry[name], f"{place}, {name}")) for name in _TEXTS[:4] if name in entry
    ]
    properties = entry.get("property", {})
    if not isinstance(properties, dict):
        raise RewriteError(f"{place}: property must be a table: property = {{ name = ... }}")
    for name, value in properties.items():
        if name in _RESERVED:
            raise RewriteError(f"{place}: property {name} cannot be rewritten{_instead_of(name)}")
        changes.append((f"property.{name}", _change_of(value, f"{place}, property {name}")))
    drop = entry.get("drop", False)
    if not isinstance(drop, bool):
        raise RewriteError(f"{place}: drop is true or false")
    if not changes and "body" not in entry and not drop:
        raise RewriteError(f"{place}: it changes nothing")
    body = _body_change_of(entry["body"], f"{place}, body") if "body" in entry else None
    changed = [*(entry.get(name) for name in _TEXTS), *properties.values()]
    has_patterns = bool(entry.get("if")) or any(isinstance(one, Mapping) for one in changed)
    return Rule(conditions, body_condition, tuple(changes), body, drop, has_patterns)


def _instead_of(name: str) -> str:
    return {"TAGS": "; use tag", "KEYS": "; use key", UNIQ_KEY: "; use --ids"}.get(name, "")


def _conditions_of(
    entry: object, place: str
) -> tuple[tuple[tuple[str, re.Pattern[str]], ...], re.Pattern[bytes] | None]:
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
                f"{place}: if: {name!r} means nothing; there are {', '.join(_TEXTS)}"
            )
    body = next((value for name, value in flat if name == "body"), None)
    body_condition = None if body is None else _bytes_pattern(body, f"{place}, if body")
    conditions = tuple(
        (name, _pattern(value, f"{place}, if {name}")) for name, value in flat if name != "body"
    )
    return conditions, body_condition


def _pattern(value: object, place: str) -> re.Pattern[str]:
    if not isinstance(value, str):
        raise RewriteError(f"{place}: must be a text with a regular expression")
    try:
        return re.compile(value)
    except re.error as error:
        raise RewriteError(f"{place}: the pattern is wrong: {error}") from None


def _bytes_pattern(value: object, place: str) -> re.Pattern[bytes]:
    return re.compile(_pattern(value, place).pattern.encode())


def _change_of(value: object, place: str) -> Change:
    if isinstance(value, str):
        return lambda _: value
    if value is False and ("property" in place or place.endswith(("tag", "key"))):
        return lambda _: None
    pattern, template = _substitution_of(value, place)

    def change(text: str | None) -> str | None:
        return None if text is None else pattern.sub(template, text)

    return change


def _body_change_of(value: object, place: str) -> Callable[[bytes], bytes]:
    if isinstance(value, str):
        data = value.encode()
        return lambda _: data
    pattern, template = _substitution_of(value, place)
    of_bytes, encoded = re.compile(pattern.pattern.encode()), template.encode()
    return lambda body: of_bytes.sub(encoded, body)


def _substitution_of(value: object, place: str) -> tuple[re.Pattern[str], str]:
    """Pattern and replacement of ``{ match = ..., replace = ... }``."""
    if not isinstance(value, Mapping) or set(value) != {"match", "replace"}:
        raise RewriteError(f"{place}: give a text, or {{ match = '...', replace = '...' }}")
    pattern, template = _pattern(value["match"], place), value["replace"]
    if not isinstance(template, str):
        raise RewriteError(f"{place}: replace must be a text")
    try:  # groups that the pattern does not have are found now, not in the middle of a run
        re.compile(pattern.pattern + "|").sub(template, "")
    except (re.error, IndexError) as error:
        raise RewriteError(f"{place}: replace is wrong: {error}") from None
    return pattern, template
