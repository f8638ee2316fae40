"""What is recorded for `samples/`: one row per capture, in tables by theme."""

from __future__ import annotations

from .admin import ADMIN
from .callers import CALLERS
from .consume import CONSUME
from .encrypted import ENCRYPTED
from .faulty import FAULTY
from .groups import GROUPS
from .grpc import GRPC
from .halves import HALVES
from .lives import LIVES
from .losses import LOSSES
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
    *ENCRYPTED,
    *ADMIN,
    *SERVERS,
    *FAULTY,
    *OUTAGES,
    *PROXIED,
    *GRPC,
    *CALLERS,
    *REFUSED,
    *GROUPS,
    *HALVES,
    *REACH,
    *NEWER,
    *VARIANTS,
    *LIVES,
    *LOSSES,
)
