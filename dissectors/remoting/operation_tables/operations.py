"""All operation rows by the name of their code; `code_names.OPERATIONS` has them by number."""

from __future__ import annotations

from .admin import ADMIN_OPERATIONS
from .client import CLIENT_OPERATIONS
from .cluster import CLUSTER_OPERATIONS
from .former import FORMER_OPERATIONS
from .operation import Operation

__all__ = ["OPERATION_ROWS", "Operation"]

OPERATION_ROWS: dict[str, Operation] = {
    **CLIENT_OPERATIONS,
    **ADMIN_OPERATIONS,
    **CLUSTER_OPERATIONS,
    **FORMER_OPERATIONS,
}
