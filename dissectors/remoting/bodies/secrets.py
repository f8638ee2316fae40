"""Mask passwords and secret keys in bodies.

Users (ACL 2.0), access configurations (ACL 1.0), and broker configurations contain them. RocketMQ:
UserInfo, PlainAccessConfig, BrokerConfig.
"""

from __future__ import annotations

import re
from typing import Final

from ..headers import SECRET_FIELDS, SECRET_WORDS, mask_secret, shown_letters

_NAME: Final = re.compile(
    r"""(?m)(^[ \t-]{0,64})?([\w.$-]{1,64}+)\\{0,3}["']?\s{0,8}[:=]\s{0,8}\[?"""
)
"""What comes before a value, as in JSON and properties; linear, because names are bounded."""
_VALUE: Final = re.compile(
    r"""(["'])(?P<quoted>(?:[^\\"']+|\\.|(?!\1)["'])*)"""
    r"""|(\\{1,3})(["'])(?P<inner>(?:[^\\"']+|(?!\3\4)\\+["']?|(?!\4)["'])*)"""
    r"""|(?P<plain>[^"'\s,;&}\]]+)""",
    re.DOTALL,
)
"""A value, quoted or not; in JSON inside of a JSON text, quotes have backslashes."""
_IN_URL: Final = re.compile(r"(://[^\s/:@]+:)[^\s/@]+@")
"""The password in http://user:password@host."""
_NO_SECRETS: Final = frozenset(("null", "true", "false"))
_IN_REMARK: Final = re.compile(r"(?i)(secret_?key=)(.+?)(?= cannot be null|[,;]|$)", re.MULTILINE)


_WORDS: Final = tuple(word.lower() for word in (*SECRET_WORDS, *SECRET_FIELDS))
_IN_SECRETS: Final = tuple(word.encode() for word in _WORDS)
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
    if not isinstance(name, str) or shown_letters(name) is None:
        # A member without a secret's name may hold a whole configuration as text.
        return without_secrets(value)
    if value is None or isinstance(value, bool):
        return value
    return mask_secret(name, value) if isinstance(value, str) else _MASK


def _may_hold_secret(text: str) -> bool:
    lower = text.lower().replace("-", "").replace("_", "")
    return "://" in lower or any(word in lower for word in _WORDS)


def shown_remark(remark: str | None) -> str | None:
    """Mask the secret key in a remark: ACL 1.0 repeats one that is too short.

    RocketMQ: SessionCredentials and PlainPermissionManager.
    """
    if remark and "secret" in remark.lower():
        return _IN_REMARK.sub(r"\1***", remark)
    return remark


def data_without_secrets(data: bytes) -> bytes:
    """Mask the secrets in binary data, whose base64 or hexadecimal digits would show them."""
    text = data.decode("latin-1")
    return text_without_secrets(text).encode("latin-1") if _may_hold_secret(text) else data


def text_without_secrets(text: str) -> str:
    """Mask the values after names of secrets in the text of a body."""
    parts: list[str] = []
    done = at = 0
    while (match := _NAME.search(text, at)) is not None:
        # What follows another name is searched: it may hold names itself.
        at = match.end()
        name = match[2]
        if shown_letters(name) is None:
            continue
        span = _value_at(text, at, match[1] is not None)
        if span is None:
            continue
        start, end = span
        value = text[start:end]
        if value not in _NO_SECRETS:
            parts += (text[done:start], mask_secret(name, value))
            done = end
        at = end
    shown = "".join((*parts, text[done:]))
    return _IN_URL.sub(r"\1***@", shown) if "://" in shown else shown


def _value_at(text: str, at: int, is_line: bool) -> tuple[int, int] | None:
    """Return start and end of a value; one of a line of properties ends with the line."""
    if is_line and text[at : at + 1] not in ("", "\\", '"', "'", "{", "["):
        end = text.find("\n", at)
        return at, len(text) if end < 0 else end
    match = _VALUE.match(text, at)
    return None if match is None else match.span(match.lastgroup or 0)
