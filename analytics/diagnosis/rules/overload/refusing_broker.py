"""What rules about overloaded brokers share: one case for each broker, one reason."""

from __future__ import annotations

from typing import ClassVar

from ...context import Context
from ...refusals import Refusals


class RefusingBroker(Refusals):
    """Requests that brokers refuse for one reason. Give `because`, or override `why`."""

    per_broker = True
    because: ClassVar[str] = ""
    """why a broker refused them, as the title says it"""

    def why(self) -> str:
        """Return why this broker refused them."""
        return self.because

    def title(self, context: Context) -> str:
        """Return the sentence that names the broker, how many it refused, and why."""
        return f"{context.refuser(self.key)} refused {self.what}: {self.why()}"
