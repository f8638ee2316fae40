"""An embedded NameServer and brokers with faults: the safe target that needs no installation.

`Sandbox` and `sandbox_thread` start one, `SandboxOptions` says what it shall be; this is all that
others import.
"""

from __future__ import annotations

from .errors import SandboxError
from .events import Event, EventKind
from .faults import Fault
from .options import SandboxOptions, TopicSpec
from .sandbox import Sandbox, SandboxThread, sandbox_thread

__all__ = [
    "Event",
    "EventKind",
    "Fault",
    "Sandbox",
    "SandboxError",
    "SandboxOptions",
    "SandboxThread",
    "TopicSpec",
    "sandbox_thread",
]
