"""What is recorded for `samples/`: one row per capture, in tables by theme."""

from __future__ import annotations

from .admin import ADMIN
from .consume import CONSUME
from .encrypted import ENCRYPTED
from .failing.faulty import FAULTY
from .failing.losses import LOSSES
from .failing.outages import OUTAGES
from .failing.reach import REACH
from .groups import GROUPS
from .halves import HALVES
from .incidents import INCIDENTS
from .lives import LIVES
from .newer import NEWER
from .proxies.callers import CALLERS
from .proxies.grpc import GRPC
from .proxies.proxied import PROXIED
from .proxies.refusals import PROXY_REFUSALS
from .refused import REFUSED
from .reports import REPORTS
from .scene import Scenario
from .security import SECURITY
from .send import SEND
from .servers import SERVERS
from .upkeep import UPKEEP
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
    *PROXY_REFUSALS,
    *REFUSED,
    *GROUPS,
    *HALVES,
    *REACH,
    *NEWER,
    *VARIANTS,
    *LIVES,
    *LOSSES,
    *INCIDENTS,
    *REPORTS,
    *UPKEEP,
)
