"""Rules about how clients use RocketMQ: load of queues, versions, settings."""

from typing import Final

MODULES: Final[tuple[str, ...]] = ()
"""modules with a `RULE`, in the order of the document"""
