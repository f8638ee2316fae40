"""Rules about the attempts of one message: timeouts, retries, duplicates."""

from typing import Final

MODULES: Final = (
    "send_timeout",
    "late_response",
    "first_attempt_ate_the_budget",
    "ambiguous_outcome",
    "duplicate_by_retry",
    "send_retried",
    "async_not_retried",
    "busy_not_retried",
    "isolated_broker_still_used",
    "broker_isolated",
    "permanent_avoidance",
    "call_given_up",
    "call_slow",
)
"""modules with a `RULE`, in the order of the document"""
