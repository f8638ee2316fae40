"""Mask passwords and secret keys in bodies.

Users (ACL 2.0), access configurations (ACL 1.0), and broker configurations contain them. RocketMQ:
UserInfo, PlainAccessConfig, BrokerConfig.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from ...foreign import hexadecimal_of
from ..headers import SECRET_FIELDS, SECRET_WORDS, mask_secret, shown_letters

_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_ASSIGNED: Final = re.compile(
    r"""(?P<before>^[ \t-]*+|\\[nrt]|["'])?"""
    r"""(?P<name>(?:[\w.$-]|\\u[0-9a-fA-F]{4})++)"""
    r"""(?P<separator>(?P<quote>\\*+["'])?\s*+[:=](?(quote)\s*+|[ \t]*+))?""",
    re.MULTILINE | re.ASCII,
)
"""A name and its separator, as in JSON and properties. Words without a separator match, too: they
are skipped as a whole, so that time is linear.
"""
_NAME_LIMIT: Final = 64
"""Maximum number of a name's last characters that are looked at."""
_TO_LINE_END: Final = re.compile(r"(?P<line>[^\r\n]+)")
_TO_LINE_END_IN_QUOTES: Final = re.compile(r"""(?P<line>(?:[^"\\\r\n]|\\[^nr"])++)""")
_VALUE: Final = re.compile(
    r""""(?P<double>(?:[^"\\]|\\.)*+)"""
    r"""|'(?P<single>(?:[^'\\]|\\.)*+)"""
    # in a JSON text that is itself in a string: up to the quote with as many backslashes
    r"""|(\\++)(["'])(?P<inner>.*?)(?:(?<!\\)\3\4|\Z)"""
    r"""|(?P<plain>[^\s"',;&}\]]+)""",
    re.DOTALL | re.ASCII,  # bytes are searched, too: A0 is part of a character, and no blank
)
_OPENED: Final = re.compile(r"""\\+["']""")
_NO_SECRETS: Final = frozenset(("true", "false", "null"))
_BRACKET: Final = re.compile(r"""[{}\[\]]|"(?:[^"\\]|\\.)*+"?""", re.DOTALL)
"""A bracket, or a string, which may have brackets of its own."""
_IN_URL: Final = re.compile(r"""://[^\s/:@"']+:([^\s/@"']+)@""", re.ASCII)
"""The password in http://user:password@host."""
_WORDS: Final = tuple(word.lower() for word in (*SECRET_WORDS, *SECRET_FIELDS))
_IN_SECRETS: Final = tuple(word.encode() for word in _WORDS)
_TABLE: Final = "Table"
"""last letters of the name of a map, such as topicConfigTable"""
_MASK: Final = "***"  # as of `mask_secret`
_LEFT_OUT: Final = b"-_"
"""characters allowed between the words of a secret's name"""


def has_no_secret(data: bytes) -> bool:
    """Return whether a JSON text certainly has no secret, and needs no search.

    Escapes, other letters with ASCII lowercase forms, and compressed data are not examined: they
    may hide one.
    """
    if data[:1] not in (b"{", b"[") or not data.isascii() or b"\\" in data:
        return False
    text = data.lower().translate(None, _LEFT_OUT)
    if b"://" in text and b"@" in text:
        return False
    return not any(word in text for word in _IN_SECRETS)


def without_secrets(value: object) -> object:
    """Mask every secret in a JSON value; parts without secrets are not copied."""
    if isinstance(value, str):
        return text_without_secrets(value) if _may_hold_secret(value) else value
    if isinstance(value, dict):
        return {name: _masked(name, item) for name, item in value.items()}
    if isinstance(value, list) and any(isinstance(item, (dict, list, str)) for item in value):
        return [without_secrets(item) for item in value]
    return value


def _masked(name: object, value: object) -> object:
    if isinstance(name, str) and name.endswith(_TABLE) and isinstance(value, dict):
        # Its keys are topics, groups, or clients, which may be called like a secret.
        return {
            key: _masked(key, item) if isinstance(item, str) else without_secrets(item)
            for key, item in value.items()
        }
    if not isinstance(name, str) or shown_letters(name) is None:
        # A member without a secret's name may hold a whole configuration as text.
        return without_secrets(value)
    if value is None or isinstance(value, bool):
        return value
    return mask_secret(name, value) if isinstance(value, str) else _MASK


def _may_hold_secret(text: str) -> bool:
    lower = text.lower().replace("-", "").replace("_", "")
    return "://" in lower or any(word in lower for word in _WORDS)


def data_without_secrets(data: bytes) -> bytes:
    """Mask the secrets in binary data, whose base64 or hexadecimal digits would show them."""
    text = data.decode("latin-1")
    return text_without_secrets(text).encode("latin-1") if _may_hold_secret(text) else data


def text_without_secrets(text: str) -> str:
    """Mask the values after names of secrets in the text of a body."""
    parts: list[str] = []
    done = 0
    for name, start, end in sorted(secrets_in(text), key=itemgetter(1)):
        if start >= done:
            parts += (text[done:start], mask_secret(name, text[start:end]))
            done = end
    return "".join((*parts, text[done:]))


def secrets_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the secrets in a text that need not be JSON: name, start and end of the value.

    Those in URLs come last, and may overlap others.
    """
    yield from _assigned_in(text)
    for match in _IN_URL.finditer(text):
        yield "password", *match.span(1)


def _assigned_in(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the values after names of secrets, in order."""
    masked = 0
    for match in _ASSIGNED.finditer(text):
        if match.start() < masked or match["separator"] is None:
            continue  # searching the end of a value again in the value is quadratic
        name = unescaped_name(match["name"])[-_NAME_LIMIT:]
        if shown_letters(name) is None:
            continue
        value = _VALUE
        if match["before"] is not None and match["quote"] is None:
            # A line of properties: its value may have blanks, commas, and quotes.
            in_quotes = match["before"].strip(" \t-") != ""
            if not in_quotes:
                value = _TO_LINE_END
            elif _OPENED.match(text, match.end()) is None:
                value = _TO_LINE_END_IN_QUOTES
        if value is _VALUE and text[match.end() : match.end() + 1] in ("{", "["):
            masked = _container_end(text, match.end())
            yield name, match.end(), masked
        elif (found := value.match(text, match.end())) is not None:
            masked = found.end()
            if found.lastgroup != "plain" or found[0] not in _NO_SECRETS:
                yield name, *found.span(found.lastgroup or 0)


def _container_end(text: str, at: int) -> int:
    """Return the end of a JSON object or array, or of the text."""
    depth = 0
    for match in _BRACKET.finditer(text, at):
        if match[0] in ("{", "["):
            depth += 1
        elif match[0] in ("}", "]"):
            depth -= 1
            if not depth:
                return match.end()
    return len(text)


def unescaped_name(text: str) -> str:
    """Return a name without escapes: a parser reads ``pass\\u0077ord`` as ``password``."""
    return _ESCAPED.sub(lambda match: chr(hexadecimal_of(match[1] or match[2]) or 0), text)
