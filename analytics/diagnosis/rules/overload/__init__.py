"""Rules about brokers that refuse requests because they have too much to do."""

from typing import Final

MODULES: Final = (
    "send_queue_timeout",
    "page_cache_busy",
)
"""modules with a `RULE`, in the order of the document"""
