"""Rules about brokers that refuse requests because of their own state, mostly overload."""

from typing import Final

MODULES: Final = (
    "send_queue_timeout",
    "page_cache_busy",
    "page_cache_synchronized",
    "broker_rejects_request",
    "thread_pool_overload",
    "disk_full",
    "stored_not_durable",
    "isr_not_enough",
    "mapped_file_failed",
    "broker_before_start_time",
    "cold_read_throttled",
)
"""modules with a `RULE`, in the order of the document"""
