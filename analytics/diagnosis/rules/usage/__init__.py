"""Rules about how clients use RocketMQ: queue load, versions, settings."""

from typing import Final

MODULES: Final = (
    "uneven_queues",
    "trace_overhead",
    "trace_lost",
    "oneway_unconfirmed",
    "oneway_without_flag",
    "dangerous_config_update",
)
"""modules with a `RULE`, in the order of the document"""
