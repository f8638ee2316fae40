"""The shared fold of rules about overloaded brokers: one case per broker, one reason."""

from __future__ import annotations

from typing import ClassVar

from ...context import Context
from ...refusals import Refusals


class RefusingBroker(Refusals):
    """Requests that brokers refuse for one reason. Set `because`, or override `why`."""

    per_broker = True
    because: ClassVar[str] = ""
    """reason of the refusals, for the title"""

    def why(self) -> str:
        """Return why this broker refused them."""
        return self.because

    def title(self, context: Context) -> str:
        """Return the title: the broker, the number of refusals, and the reason."""
        return f"{context.refuser(self.key)} refused {self.what}: {self.why()}"
