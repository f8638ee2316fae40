"""What is recorded for `samples/`: one row per capture, in tables by theme."""

from __future__ import annotations

from .admin import ADMIN
from .consume import CONSUME
from .faulty import FAULTY
from .groups import GROUPS
from .halves import HALVES
from .lives import LIVES
from .newer import NEWER
from .outages import OUTAGES
from .proxied import PROXIED
from .reach import REACH
from .refused import REFUSED
from .scene import Scenario
from .security import SECURITY
from .send import SEND
from .servers import SERVERS
from .variants import VARIANTS

SCENARIOS: tuple[Scenario, ...] = (
    *SEND,
    *CONSUME,
    *SECURITY,
    *ADMIN,
    *SERVERS,
    *FAULTY,
    *OUTAGES,
    *PROXIED,
    *REFUSED,
    *GROUPS,
    *HALVES,
    *REACH,
    *NEWER,
    *VARIANTS,
    *LIVES,
)
