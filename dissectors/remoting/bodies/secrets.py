"""Bodies as they may be shown: passwords and secret keys masked.

Users (ACL 2.0), access configurations (ACL 1.0) and broker configurations carry them.
RocketMQ: UserInfo, PlainAccessConfig, BrokerConfig.
"""

from __future__ import annotations

import re
from typing import Final

from ..headers import SECRET_FIELDS, SECRET_WORDS, mask_secret

_ASSIGNED: Final = re.compile(
    r"""([\w.$-]{1,64})"""
    r"""(?:(\\{0,3}["']?\s{0,8}[:=]\s{0,8}\\{0,3}["'])((?:[^"'\\]|\\[^"'])*)"""
    r"""|(\s{0,8}[:=]\s{0,8})([^"'\s,;&}\]]+))"""
)
"""A name and its value, in quotes or without, as JSON and properties have them; linear, because
names are bounded and a value ends at the first quote."""


_MAYBE: Final = re.compile("|".join((*SECRET_WORDS, *SECRET_FIELDS)), re.IGNORECASE)
"""What a text with a secret in it has: a broker's configuration has JSON as values
(innerClientAuthenticationCredentials, initAuthenticationUser)."""


_IN_SECRETS: Final = tuple(word.lower().encode() for word in (*SECRET_WORDS, *SECRET_FIELDS))
_LEFT_OUT: Final = b"-_"
"""what names of secrets may have between their words"""


def has_no_secret(data: bytes) -> bool:
    """Return whether a JSON text has surely no secret in it, so that none need be looked for.

    Escapes, other letters that become ours in lower case, and what is compressed are not looked
    into: they may hide one.
    """
    if data[:1] not in (b"{", b"[") or not data.isascii() or b"\\" in data:
        return False
    text = data.lower().translate(None, _LEFT_OUT)
    return not any(word in text for word in _IN_SECRETS)


def without_secrets(value: object) -> object:
    """Return the same value in JSON types with every secret masked; what has none is not copied."""
    if isinstance(value, dict):
        return {name: _masked(name, item) for name, item in value.items()}
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [without_secrets(item) for item in value]
    return value


def _masked(name: object, value: object) -> object:
    if not isinstance(value, str) or not isinstance(name, str):
        return without_secrets(value)
    masked = mask_secret(name, value)
    if masked == value and _MAYBE.search(value):
        return text_without_secrets(value)
    return masked


def text_without_secrets(text: str) -> str:
    """Return a body's text with the values masked that stand behind the name of a secret."""
    return _ASSIGNED.sub(_masked_value, text)


def _masked_value(found: re.Match[str]) -> str:
    name, opened, quoted, separator, plain = found.groups()
    if separator is None:
        return f"{name}{opened}{mask_secret(name, quoted)}"
    return f"{name}{separator}{mask_secret(name, plain)}"
