"""Fields of the requests and responses of the services, and of what telemetry streams carry.

One entry per message type, fields in the order of its definition.
"""

from __future__ import annotations

from typing import Final

from .field import BOOL, INT32, INT64, STRING, Field, enum, message, scalar

REQUESTS: Final[dict[str, tuple[Field, ...]]] = {
    "QueryRouteRequest": (
        message(1, "topic", "Resource"),
        message(2, "endpoints", "Endpoints"),
    ),
    "QueryRouteResponse": (
        message(1, "status", "Status"),
        message(2, "message_queues", "MessageQueue", many=True),
    ),
    "SendMessageRequest": (message(1, "messages", "Message", many=True),),
    "SendResultEntry": (
        message(1, "status", "Status"),
        scalar(2, "message_id", STRING),
        scalar(3, "transaction_id", STRING),
        scalar(4, "offset", INT64),
        scalar(5, "recall_handle", STRING),
    ),
    "SendMessageResponse": (
        message(1, "status", "Status"),
        message(2, "entries", "SendResultEntry", many=True),
    ),
    "QueryAssignmentRequest": (
        message(1, "topic", "Resource"),
        message(2, "group", "Resource"),
        message(3, "endpoints", "Endpoints"),
    ),
    "QueryAssignmentResponse": (
        message(1, "status", "Status"),
        message(2, "assignments", "Assignment", many=True),
    ),
    "ReceiveMessageRequest": (
        message(1, "group", "Resource"),
        message(2, "message_queue", "MessageQueue"),
        message(3, "filter_expression", "FilterExpression"),
        scalar(4, "batch_size", INT32),
        message(5, "invisible_duration", "google.protobuf.Duration"),
        scalar(6, "auto_renew", BOOL),
        message(7, "long_polling_timeout", "google.protobuf.Duration"),
        scalar(8, "attempt_id", STRING),
    ),
    "ReceiveMessageResponse": (
        message(1, "status", "Status"),
        message(2, "message", "Message"),
        message(3, "delivery_timestamp", "google.protobuf.Timestamp"),
    ),
    "AckMessageEntry": (
        scalar(1, "message_id", STRING),
        scalar(2, "receipt_handle", STRING),
        scalar(3, "lite_topic", STRING),
    ),
    "AckMessageRequest": (
        message(1, "group", "Resource"),
        message(2, "topic", "Resource"),
        message(3, "entries", "AckMessageEntry", many=True),
    ),
    "AckMessageResultEntry": (
        scalar(1, "message_id", STRING),
        scalar(2, "receipt_handle", STRING),
        message(3, "status", "Status"),
    ),
    "AckMessageResponse": (
        message(1, "status", "Status"),
        message(2, "entries", "AckMessageResultEntry", many=True),
    ),
    "ForwardMessageToDeadLetterQueueRequest": (
        message(1, "group", "Resource"),
        message(2, "topic", "Resource"),
        scalar(3, "receipt_handle", STRING),
        scalar(4, "message_id", STRING),
        scalar(5, "delivery_attempt", INT32),
        scalar(6, "max_delivery_attempts", INT32),
        scalar(7, "lite_topic", STRING),
    ),
    "ForwardMessageToDeadLetterQueueResponse": (message(1, "status", "Status"),),
    "HeartbeatRequest": (
        message(1, "group", "Resource"),
        enum(2, "client_type", "ClientType"),
    ),
    "HeartbeatResponse": (message(1, "status", "Status"),),
    "EndTransactionRequest": (
        message(1, "topic", "Resource"),
        scalar(2, "message_id", STRING),
        scalar(3, "transaction_id", STRING),
        enum(4, "resolution", "TransactionResolution"),
        enum(5, "source", "TransactionSource"),
        scalar(6, "trace_context", STRING),
    ),
    "EndTransactionResponse": (message(1, "status", "Status"),),
    "PrintThreadStackTraceCommand": (scalar(1, "nonce", STRING),),
    "ReconnectEndpointsCommand": (scalar(1, "nonce", STRING),),
    "ThreadStackTrace": (
        scalar(1, "nonce", STRING),
        scalar(2, "thread_stack_trace", STRING),
    ),
    "VerifyMessageCommand": (
        scalar(1, "nonce", STRING),
        message(2, "message", "Message"),
    ),
    "VerifyMessageResult": (scalar(1, "nonce", STRING),),
    "RecoverOrphanedTransactionCommand": (
        message(1, "message", "Message"),
        scalar(2, "transaction_id", STRING),
    ),
    "NotifyUnsubscribeLiteCommand": (scalar(1, "lite_topic", STRING),),
    "TelemetryCommand": (
        message(1, "status", "Status"),
        message(2, "settings", "Settings"),
        message(3, "thread_stack_trace", "ThreadStackTrace"),
        message(4, "verify_message_result", "VerifyMessageResult"),
        message(5, "recover_orphaned_transaction_command", "RecoverOrphanedTransactionCommand"),
        message(6, "print_thread_stack_trace_command", "PrintThreadStackTraceCommand"),
        message(7, "verify_message_command", "VerifyMessageCommand"),
        message(8, "reconnect_endpoints_command", "ReconnectEndpointsCommand"),
        message(9, "notify_unsubscribe_lite_command", "NotifyUnsubscribeLiteCommand"),
    ),
    "NotifyClientTerminationRequest": (message(1, "group", "Resource"),),
    "NotifyClientTerminationResponse": (message(1, "status", "Status"),),
    "ChangeInvisibleDurationRequest": (
        message(1, "group", "Resource"),
        message(2, "topic", "Resource"),
        scalar(3, "receipt_handle", STRING),
        message(4, "invisible_duration", "google.protobuf.Duration"),
        scalar(5, "message_id", STRING),
        scalar(6, "lite_topic", STRING),
        scalar(7, "suspend", BOOL),
    ),
    "ChangeInvisibleDurationResponse": (
        message(1, "status", "Status"),
        scalar(2, "receipt_handle", STRING),
    ),
    "PullMessageRequest": (
        message(1, "group", "Resource"),
        message(2, "message_queue", "MessageQueue"),
        scalar(3, "offset", INT64),
        scalar(4, "batch_size", INT32),
        message(5, "filter_expression", "FilterExpression"),
        message(6, "long_polling_timeout", "google.protobuf.Duration"),
    ),
    "PullMessageResponse": (
        message(1, "status", "Status"),
        message(2, "message", "Message"),
        scalar(3, "next_offset", INT64),
    ),
    "UpdateOffsetRequest": (
        message(1, "group", "Resource"),
        message(2, "message_queue", "MessageQueue"),
        scalar(3, "offset", INT64),
    ),
    "UpdateOffsetResponse": (message(1, "status", "Status"),),
    "GetOffsetRequest": (
        message(1, "group", "Resource"),
        message(2, "message_queue", "MessageQueue"),
    ),
    "GetOffsetResponse": (
        message(1, "status", "Status"),
        scalar(2, "offset", INT64),
    ),
    "QueryOffsetRequest": (
        message(1, "message_queue", "MessageQueue"),
        enum(2, "query_offset_policy", "QueryOffsetPolicy"),
        message(3, "timestamp", "google.protobuf.Timestamp"),
    ),
    "QueryOffsetResponse": (
        message(1, "status", "Status"),
        scalar(2, "offset", INT64),
    ),
    "RecallMessageRequest": (
        message(1, "topic", "Resource"),
        scalar(2, "recall_handle", STRING),
    ),
    "RecallMessageResponse": (
        message(1, "status", "Status"),
        scalar(2, "message_id", STRING),
    ),
    "SyncLiteSubscriptionRequest": (
        enum(1, "action", "LiteSubscriptionAction"),
        message(2, "topic", "Resource"),
        message(3, "group", "Resource"),
        scalar(4, "lite_topic_set", STRING, many=True),
        scalar(5, "version", INT64),
        message(6, "offset_option", "OffsetOption"),
    ),
    "SyncLiteSubscriptionResponse": (message(1, "status", "Status"),),
    "ChangeLogLevelRequest": (enum(1, "level", "ChangeLogLevelRequest.Level"),),
    "ChangeLogLevelResponse": (scalar(1, "remark", STRING),),
}
