"""Operation and response names of gRPC calls in rows.

An operation is a method, or a command of the server on a telemetry stream. A response name is a
code of `apache.rocketmq.v2`, or `GRPC_` and the gRPC status if gRPC itself failed.
"""

from __future__ import annotations

from typing import Final

from .definition import ENUMS, METHODS

TELEMETRY: Final = "Telemetry"
TELEMETRY_COMMANDS: Final = {
    "recover_orphaned_transaction_command": "RecoverOrphanedTransaction",
    "print_thread_stack_trace_command": "PrintThreadStackTrace",
    "verify_message_command": "VerifyMessage",
    "reconnect_endpoints_command": "ReconnectEndpoints",
    "notify_unsubscribe_lite_command": "NotifyUnsubscribeLite",
}
"""Command of a server on a telemetry stream → operation name."""
OK: Final = next(code for code, name in ENUMS["Code"].items() if name == "OK")
"""Code of a successful response."""
GRPC_STATUSES: Final = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""names of gRPC's own status codes, by number"""
CODES: Final = {name: number for number, name in ENUMS["Code"].items()}
"""Code name of `apache.rocketmq.v2` → number."""
OPERATIONS: Final = (*(method.name for method in METHODS), *TELEMETRY_COMMANDS.values())
"""Names of all operations."""
RESPONSES: Final = (*CODES, *(f"GRPC_{name}" for name in GRPC_STATUSES[1:]))
"""Names of all responses."""
