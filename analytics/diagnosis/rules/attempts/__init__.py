"""Rules about the attempts of one message: timeouts, retries, duplicates."""

from typing import Final

MODULES: Final = ("duplicate_by_retry",)
"""modules with a `RULE`, in the order of the document"""
