"""Rules about groups, subscriptions, offsets, consumption retries, and orderly locks."""

from typing import Final

MODULES: Final = (
    "duplicate_client_id",
    "inconsistent_subscription",
    "rebalance_storm",
    "more_consumers_than_queues",
    "offset_moved",
    "offset_reset",
    "client_hung",
    "consumer_lag",
    "queue_truncated",
    "offsets_lost",
    "consumer_not_pulling",
    "long_poll_lost",
    "pull_starved",
    "grpc_consumer_stuck",
    "response_unreadable",
    "broadcast_gap",
    "history_consumed",
    "queue_shared",
    "queue_orphaned",
    "pull_from_slave",
    "reconsume_growth",
    "dead_letter",
    "orderly_lock_lost",
    "group_not_fifo",
)
"""modules with a `RULE`, in the order of the document"""
