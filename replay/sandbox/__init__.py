"""An embedded NameServer and brokers with fault injection: a safe target without installation.

`Sandbox` and `sandbox_thread` start one with `SandboxOptions`; other packages import nothing else.
"""

from __future__ import annotations

from .errors import SandboxError
from .events import EventKind, SandboxEvent
from .injection.injection import Injection, InjectionKind, Latency
from .injection.injection_text import injection_of_text, injections_of_file
from .options import SandboxOptions, TopicSpec
from .sandbox import Sandbox, SandboxThread, run_sandbox, sandbox_thread

__all__ = [
    "EventKind",
    "Injection",
    "InjectionKind",
    "Latency",
    "Sandbox",
    "SandboxError",
    "SandboxEvent",
    "SandboxOptions",
    "SandboxThread",
    "TopicSpec",
    "injection_of_text",
    "injections_of_file",
    "run_sandbox",
    "sandbox_thread",
]
