"""Bodies as they may be shown: passwords and secret keys masked.

Users (ACL 2.0), access configurations (ACL 1.0) and broker configurations carry them.
RocketMQ: UserInfo, PlainAccessConfig, BrokerConfig.
"""

from __future__ import annotations

from typing import Final

from ..headers import mask_secret

_SECRET_WORDS: Final = ("password", "secret")
"""A member is a secret when its name has one of these words, in whatever case."""
_MASK: Final = "***"


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
    lower = name.lower()
    if value and any(word in lower for word in _SECRET_WORDS):
        return _MASK
    return mask_secret(name, value)
