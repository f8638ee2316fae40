"""Rules about half messages, check-backs, replies, timers, and POP."""

from typing import Final

MODULES: Final = (
    "half_message_unresolved",
    "check_back_loop",
    "check_at_other_producer",
    "transaction_ends_contradict",
    "transaction_outcome",
    "reply_undeliverable",
    "request_timeout",
    "pop_polling_full",
    "pop_ack_late",
    "pop_clock_skew",
    "delay_ignored",
    "delivered_late",
)
"""modules with a `RULE`, in the order of the document"""
