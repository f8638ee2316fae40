"""Fields of what requests and responses are made of: topics, queues, messages, settings.

One entry per message type, fields in the order of its definition.
"""

from __future__ import annotations

from typing import Final

from .field import BOOL, BYTES, FLOAT, INT32, INT64, STRING, Field, enum, message, scalar

RESOURCES: Final[dict[str, tuple[Field, ...]]] = {
    "FilterExpression": (
        enum(1, "type", "FilterType"),
        scalar(2, "expression", STRING),
    ),
    "RetryPolicy": (
        scalar(1, "max_attempts", INT32),
        message(2, "exponential_backoff", "ExponentialBackoff"),
        message(3, "customized_backoff", "CustomizedBackoff"),
    ),
    "ExponentialBackoff": (
        message(1, "initial", "google.protobuf.Duration"),
        message(2, "max", "google.protobuf.Duration"),
        scalar(3, "multiplier", FLOAT),
    ),
    "CustomizedBackoff": (message(1, "next", "google.protobuf.Duration", many=True),),
    "Resource": (
        scalar(1, "resource_namespace", STRING),
        scalar(2, "name", STRING),
    ),
    "SubscriptionEntry": (
        message(1, "topic", "Resource"),
        message(2, "expression", "FilterExpression"),
    ),
    "Address": (
        scalar(1, "host", STRING),
        scalar(2, "port", INT32),
    ),
    "Endpoints": (
        enum(1, "scheme", "AddressScheme"),
        message(2, "addresses", "Address", many=True),
    ),
    "Broker": (
        scalar(1, "name", STRING),
        scalar(2, "id", INT32),
        message(3, "endpoints", "Endpoints"),
    ),
    "MessageQueue": (
        message(1, "topic", "Resource"),
        scalar(2, "id", INT32),
        enum(3, "permission", "Permission"),
        message(4, "broker", "Broker"),
        enum(5, "accept_message_types", "MessageType", many=True),
    ),
    "Digest": (
        enum(1, "type", "DigestType"),
        scalar(2, "checksum", STRING),
    ),
    "SystemProperties": (
        scalar(1, "tag", STRING),
        scalar(2, "keys", STRING, many=True),
        scalar(3, "message_id", STRING),
        message(4, "body_digest", "Digest"),
        enum(5, "body_encoding", "Encoding"),
        enum(6, "message_type", "MessageType"),
        message(7, "born_timestamp", "google.protobuf.Timestamp"),
        scalar(8, "born_host", STRING),
        message(9, "store_timestamp", "google.protobuf.Timestamp"),
        scalar(10, "store_host", STRING),
        message(11, "delivery_timestamp", "google.protobuf.Timestamp"),
        scalar(12, "receipt_handle", STRING),
        scalar(13, "queue_id", INT32),
        scalar(14, "queue_offset", INT64),
        message(15, "invisible_duration", "google.protobuf.Duration"),
        scalar(16, "delivery_attempt", INT32),
        scalar(17, "message_group", STRING),
        scalar(18, "trace_context", STRING),
        message(19, "orphaned_transaction_recovery_duration", "google.protobuf.Duration"),
        message(20, "dead_letter_queue", "DeadLetterQueue"),
        scalar(21, "lite_topic", STRING),
        scalar(22, "priority", INT32),
    ),
    "DeadLetterQueue": (
        scalar(1, "topic", STRING),
        scalar(2, "message_id", STRING),
    ),
    "Message": (
        message(1, "topic", "Resource"),
        message(2, "user_properties", "Message.UserPropertiesEntry", many=True),
        message(3, "system_properties", "SystemProperties"),
        scalar(4, "body", BYTES),
    ),
    "Message.UserPropertiesEntry": (
        scalar(1, "key", STRING),
        scalar(2, "value", STRING),
    ),
    "Assignment": (message(1, "message_queue", "MessageQueue"),),
    "Status": (
        enum(1, "code", "Code"),
        scalar(2, "message", STRING),
    ),
    "UA": (
        enum(1, "language", "Language"),
        scalar(2, "version", STRING),
        scalar(3, "platform", STRING),
        scalar(4, "hostname", STRING),
    ),
    "Settings": (
        enum(1, "client_type", "ClientType"),
        message(2, "access_point", "Endpoints"),
        message(3, "backoff_policy", "RetryPolicy"),
        message(4, "request_timeout", "google.protobuf.Duration"),
        message(5, "publishing", "Publishing"),
        message(6, "subscription", "Subscription"),
        message(7, "user_agent", "UA"),
        message(8, "metric", "Metric"),
    ),
    "Publishing": (
        message(1, "topics", "Resource", many=True),
        scalar(2, "max_body_size", INT32),
        scalar(3, "validate_message_type", BOOL),
    ),
    "Subscription": (
        message(1, "group", "Resource"),
        message(2, "subscriptions", "SubscriptionEntry", many=True),
        scalar(3, "fifo", BOOL),
        scalar(4, "receive_batch_size", INT32),
        message(5, "long_polling_timeout", "google.protobuf.Duration"),
        scalar(6, "lite_subscription_quota", INT32),
        scalar(7, "max_lite_topic_size", INT32),
    ),
    "Metric": (
        scalar(1, "on", BOOL),
        message(2, "endpoints", "Endpoints"),
    ),
    "OffsetOption": (
        enum(1, "policy", "OffsetOption.Policy"),
        scalar(2, "offset", INT64),
        scalar(3, "tail_n", INT64),
        scalar(4, "timestamp", INT64),
    ),
    "google.protobuf.Timestamp": (
        scalar(1, "seconds", INT64),
        scalar(2, "nanos", INT32),
    ),
    "google.protobuf.Duration": (
        scalar(1, "seconds", INT64),
        scalar(2, "nanos", INT32),
    ),
}
