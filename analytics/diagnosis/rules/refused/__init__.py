"""Rules about requests that a broker refuses as invalid."""

from typing import Final

MODULES: Final = (
    "topic_missing_on_broker",
    "acl_signature",
    "no_permission",
    "oversize_message",
    "batch_not_supported",
    "timer_illegal",
    "async_retry_stale_queue",
    "not_leader_for_queue",
    "group_missing",
    "sql92_unsupported",
    "version_mismatch",
    "sendback_failed",
    "broker_failed",
    "required_field_missing",
    "heartbeat_ignored",
    "heartbeat_incomplete",
    "end_transaction_refused",
    "refused_otherwise",
    "call_refused",
)
"""modules with a `RULE`, in the order of the document"""
