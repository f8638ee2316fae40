"""The settings and progress of a replay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from dissectors.budget import Budget

from ..async_producer import AsyncProducer
from ..config import ProducerConfig
from ..plan.planner import PlannedSend, Skipped
from ..safety import Guard
from ..sandbox import SandboxOptions
from .compare import Comparison
from .journal import JournalWriter, Progressed
from .read_ahead import DEPTH

Stoppable = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""gets a function that stops a run, which a signal handler may call while the context is entered"""


@dataclass(slots=True)
class Figures:
    """Progress of a run."""

    sent: int = 0
    """messages that were begun"""
    ended: int = 0
    """messages of which the outcome is known"""
    failed: int = 0
    """sends that failed"""
    in_flight: int = 0
    """sends at this moment"""
    late_us: int = 0
    """how late the last send was"""
    held: int = 0
    """sends that were late because they waited for earlier ones, see `SendOrder`"""
    done_before: int = 0
    """sends that an earlier run has done"""
    again: int = 0
    """sends that an earlier run may have made already"""
    target: str = ""
    """NameServers of the target"""


@dataclass(slots=True)
class ReplayRun:
    """The settings of a replay."""

    batches: Iterator[list[PlannedSend | Skipped]]
    """the plan"""
    responders: Callable[[], Iterable[str]]
    """addresses that captured requests were sent to, as far as the plan was read"""
    config: ProducerConfig
    """the producers'; each step's group is put in"""
    guard: Guard
    """knows where nothing may be sent"""
    journal: JournalWriter
    """open"""
    comparison: Comparison
    """takes the outcomes"""
    in_flight: int
    """sends at once"""
    run: str
    """name of the run"""
    paced: bool = True
    """steps have times to keep; else nothing is late"""
    raw: bool = False
    """whole requests go to one broker: the address that the configuration names"""
    read_ahead: int = DEPTH
    """steps that are read while others are sent; 1 where the sources come as they happen"""
    sandbox: SandboxOptions | None = None
    """started as the target, whatever the configuration names"""
    budget: Budget = field(default_factory=Budget)
    """memory limit, also of the producers; records where it was reached"""
    before: Progressed | None = None
    """what an earlier run of the same journal has done"""
    consent: Callable[[AsyncProducer, str], Awaitable[None]] | None = None
    """asks for what brokers of a topic's route nobody agreed to; raises TargetRefused"""
    is_own: Callable[[PlannedSend], bool] | None = None
    """whether this process sends a step; None: it sends all"""
    writes_skipped: bool = True
    """whether this process writes down what is not replayed"""
    start: Callable[[], Awaitable[int]] | None = None
    """waits until all processes are ready; returns when the first step is due, ns of the steady
    clock"""
    stop_reading: Callable[[], None] = lambda: None
    """lets `batches` end soon; called when no more of it is wanted, perhaps several times"""
    tick: Callable[[Figures], None] = lambda _: None
    """called while it runs"""
