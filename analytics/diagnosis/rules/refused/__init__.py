"""Rules about requests that a broker refuses for what they are."""

from typing import Final

MODULES: Final[tuple[str, ...]] = ()
"""modules with a `RULE`, in the order of the document"""
