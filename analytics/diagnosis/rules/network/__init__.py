"""Rules about connections, addresses and other protocols."""

from typing import Final

MODULES: Final[tuple[str, ...]] = ()
"""modules with a `RULE`, in the order of the document"""
