"""Rules about groups, subscriptions, offsets, consumption retries and orderly locks."""

from typing import Final

MODULES: Final[tuple[str, ...]] = ()
"""modules with a `RULE`, in the order of the document"""
