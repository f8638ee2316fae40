"""An embedded NameServer and brokers with faults: the safe target that needs no installation.

`Sandbox` and `sandbox_thread` start one, `SandboxOptions` says what it shall be; this is all that
others import.
"""

from __future__ import annotations

from .errors import SandboxError
from .events import Event, EventKind
from .fault import Fault, FaultKind
from .fault_text import fault_of_text, faults_of_file
from .latency import Latency
from .options import SandboxOptions, TopicSpec
from .sandbox import Sandbox, SandboxThread, run_sandbox, sandbox_thread

__all__ = [
    "Event",
    "EventKind",
    "Fault",
    "FaultKind",
    "Latency",
    "Sandbox",
    "SandboxError",
    "SandboxOptions",
    "SandboxThread",
    "TopicSpec",
    "fault_of_text",
    "faults_of_file",
    "run_sandbox",
    "sandbox_thread",
]
