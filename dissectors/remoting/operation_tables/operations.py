"""All operation rows by the constant name of their code; `codes.OPERATIONS` has them by number."""

from __future__ import annotations

from .operation import Operation
from .operations_admin import ADMIN_OPERATIONS
from .operations_client import CLIENT_OPERATIONS
from .operations_cluster import CLUSTER_OPERATIONS
from .operations_former import FORMER_OPERATIONS

__all__ = ["OPERATION_ROWS", "Operation"]

OPERATION_ROWS: dict[str, Operation] = {
    **CLIENT_OPERATIONS,
    **ADMIN_OPERATIONS,
    **CLUSTER_OPERATIONS,
    **FORMER_OPERATIONS,
}
