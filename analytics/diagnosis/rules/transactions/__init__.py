"""Rules about half messages, check-backs, replies, timers and POP."""

from typing import Final

MODULES: Final[tuple[str, ...]] = ()
"""modules with a `RULE`, in the order of the document"""
