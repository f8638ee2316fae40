"""The methods of the services of `apache.rocketmq.v2`, and what each takes and gives."""

from __future__ import annotations

from typing import Final, NamedTuple

PACKAGE: Final = "apache.rocketmq.v2"
ONE: Final = False
STREAM: Final = True


class Method(NamedTuple):
    """One method of a service."""

    service: str
    """name of the service within the package"""
    name: str
    """name of the method, which is the name of the operation in rows"""
    asks: str
    """message type of a request"""
    asks_many: bool
    """the client sends a stream of them"""
    gives: str
    """message type of a response"""
    gives_many: bool
    """the server sends a stream of them"""

    @property
    def path(self) -> str:
        """The `:path` of its requests."""
        return f"/{PACKAGE}.{self.service}/{self.name}"


METHODS: Final = (
    Method("MessagingService", "QueryRoute", "QueryRouteRequest", ONE, "QueryRouteResponse", ONE),
    Method("MessagingService", "Heartbeat", "HeartbeatRequest", ONE, "HeartbeatResponse", ONE),
    Method(
        "MessagingService", "SendMessage", "SendMessageRequest", ONE, "SendMessageResponse", ONE
    ),
    Method(
        "MessagingService",
        "QueryAssignment",
        "QueryAssignmentRequest",
        ONE,
        "QueryAssignmentResponse",
        ONE,
    ),
    Method(
        "MessagingService",
        "ReceiveMessage",
        "ReceiveMessageRequest",
        ONE,
        "ReceiveMessageResponse",
        STREAM,
    ),
    Method("MessagingService", "AckMessage", "AckMessageRequest", ONE, "AckMessageResponse", ONE),
    Method(
        "MessagingService",
        "ForwardMessageToDeadLetterQueue",
        "ForwardMessageToDeadLetterQueueRequest",
        ONE,
        "ForwardMessageToDeadLetterQueueResponse",
        ONE,
    ),
    Method(
        "MessagingService", "PullMessage", "PullMessageRequest", ONE, "PullMessageResponse", STREAM
    ),
    Method(
        "MessagingService", "UpdateOffset", "UpdateOffsetRequest", ONE, "UpdateOffsetResponse", ONE
    ),
    Method("MessagingService", "GetOffset", "GetOffsetRequest", ONE, "GetOffsetResponse", ONE),
    Method(
        "MessagingService", "QueryOffset", "QueryOffsetRequest", ONE, "QueryOffsetResponse", ONE
    ),
    Method(
        "MessagingService",
        "EndTransaction",
        "EndTransactionRequest",
        ONE,
        "EndTransactionResponse",
        ONE,
    ),
    Method("MessagingService", "Telemetry", "TelemetryCommand", STREAM, "TelemetryCommand", STREAM),
    Method(
        "MessagingService",
        "NotifyClientTermination",
        "NotifyClientTerminationRequest",
        ONE,
        "NotifyClientTerminationResponse",
        ONE,
    ),
    Method(
        "MessagingService",
        "ChangeInvisibleDuration",
        "ChangeInvisibleDurationRequest",
        ONE,
        "ChangeInvisibleDurationResponse",
        ONE,
    ),
    Method(
        "MessagingService",
        "RecallMessage",
        "RecallMessageRequest",
        ONE,
        "RecallMessageResponse",
        ONE,
    ),
    Method(
        "MessagingService",
        "SyncLiteSubscription",
        "SyncLiteSubscriptionRequest",
        ONE,
        "SyncLiteSubscriptionResponse",
        ONE,
    ),
    Method("Admin", "ChangeLogLevel", "ChangeLogLevelRequest", ONE, "ChangeLogLevelResponse", ONE),
)
"""All methods, in the order of their definitions."""
