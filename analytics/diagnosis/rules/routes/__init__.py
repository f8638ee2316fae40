"""Rules about topics, routes, and permissions."""

from typing import Final

MODULES: Final = (
    "no_route",
    "topic_deleted",
    "queues_reduced",
    "topic_on_some_brokers",
    "namesrv_not_ready",
    "namesrv_hung",
    "nobody_listens",
    "inconsistent_route",
    "broker_name_twice",
    "no_master",
)
"""modules with a `RULE`, in the order of the document"""
