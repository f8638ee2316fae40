"""What goes wrong in the sandbox, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .request import Request
from .server import Connection

if TYPE_CHECKING:
    from .broker import Broker


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong."""


class FaultSet:
    """The faults of a sandbox."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.is_active = bool(faults)

    def admits(self, broker: Broker, connection: Connection) -> bool:
        """Whether a new connection is taken."""
        return True

    def take(self, broker: Broker, request: Request) -> bool:
        """Whether a fault has taken care of a request."""
        return False
