"""Mask passwords and secret keys in bodies.

Users (ACL 2.0), access configurations (ACL 1.0), and broker configurations contain them. RocketMQ:
UserInfo, PlainAccessConfig, BrokerConfig.
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
"""A name and its value, quoted or not, as in JSON and properties; linear, because names are bounded
and a value ends at the first quote.
"""


_MAYBE: Final = re.compile("|".join((*SECRET_WORDS, *SECRET_FIELDS)), re.IGNORECASE)
"""Words in every text with a secret: a broker configuration contains JSON values
(innerClientAuthenticationCredentials, initAuthenticationUser).
"""


_IN_SECRETS: Final = tuple(word.lower().encode() for word in (*SECRET_WORDS, *SECRET_FIELDS))
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
    return not any(word in text for word in _IN_SECRETS)


def without_secrets(value: object) -> object:
    """Mask every secret in a JSON value; parts without secrets are not copied."""
    if isinstance(value, dict):
        return {name: _masked(name, item) for name, item in value.items()}
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [without_secrets(item) for item in value]
    return value


def _masked(name: object, value: object) -> object:
    if not isinstance(value, str) or not isinstance(name, str):
        return without_secrets(value)
    masked = mask_secret(name, value)
    # A member without a secret's name may hold a whole configuration as text.
    if masked == value and _MAYBE.search(value):
        return text_without_secrets(value)
    return masked


def text_without_secrets(text: str) -> str:
    """Mask the values after names of secrets in the text of a body."""
    return _ASSIGNED.sub(_masked_value, text)


def _masked_value(match: re.Match[str]) -> str:
    name, opened, quoted, separator, plain = match.groups()
    if separator is None:
        return f"{name}{opened}{mask_secret(name, quoted)}"
    return f"{name}{separator}{mask_secret(name, plain)}"
