"""A replay by several processes: each reads the whole plan and sends its share of the steps.

Rules: the processes are forked, so all have the same plan and shares. They share one clock and
start together. Each writes its sends to the journal, and reports only figures to the parent. If one
ends early, the others start no further steps. A worker ends when its pipe is closed, so none
outlives the parent; only the parent handles Ctrl-C.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import fields
from typing import IO, Final, NoReturn

import msgspec

from dissectors.foreign import Unreadable, json_of, natural_of

from ..errors import ClientError, NameServerError
from ..plan.planner import PlannedSend
from ..safety import TargetRefused
from ..sandbox import Sandbox, SandboxOptions
from .journal_rows import JournalError
from .replayer import Figures, ReplayRun, Stoppable, run_replay

BUCKETS: Final = 1 << 20


class LaneShares:
    """Assigns steps to processes: all steps are added first, then dealt.

    Steps that wait for each other go to one process: lanes that share a step form one set
    (union-find).
    """

    def __init__(self, jobs: int) -> None:
        self.sends = [0] * jobs
        """steps of each process that have lanes"""
        self.free = 0
        """steps without lanes"""
        self._jobs = jobs
        self._parents = array("i", range(BUCKETS))
        self._steps = array("i", bytes(4 * BUCKETS))
        self._job_of = array("i")

    def add(self, step: PlannedSend) -> None:
        """Join the lanes of a step into one set."""
        if not step.lanes:
            self.free += 1
            return
        # Memory is fixed: a collision only joins two sets unnecessarily. Forked processes share the
        # seed of hash().
        first, *others = (hash(lane) % BUCKETS for lane in step.lanes)
        self._steps[first] += 1
        for other in others:
            self._parents[self._root(other)] = self._root(first)

    def deal(self) -> None:
        """Assign the sets: the largest first, to the process with the fewest steps."""
        counts = array("i", bytes(4 * BUCKETS))
        for bucket, steps in enumerate(self._steps):
            if steps:
                counts[self._root(bucket)] += steps
        job_of = array("i", bytes(4 * BUCKETS))
        used = (bucket for bucket, count in enumerate(counts) if count)
        for root in sorted(used, key=counts.__getitem__, reverse=True):
            job = min(range(self._jobs), key=self.sends.__getitem__)
            self.sends[job] += counts[root]
            job_of[root] = job
        self._job_of = job_of

    def job_of(self, step: PlannedSend) -> int:
        """Return the number of the process that sends a step, 0 first."""
        if not step.lanes:
            return step.number % self._jobs
        return self._job_of[self._root(hash(step.lanes[0]) % BUCKETS)]

    @property
    def largest(self) -> float:
        """Share of the steps that the busiest process sends, 0 to 1."""
        steps = sum(self.sends) + self.free
        return (max(self.sends) + self.free / self._jobs) / steps if steps else 0.0

    def _root(self, bucket: int) -> int:
        parents = self._parents
        root = bucket
        while parents[root] != root:
            root = parents[root]
        while parents[bucket] != root:
            parents[bucket], bucket = root, parents[bucket]
        return root


_SOON: Final = 20_000_000
"""ns from the start signal to the first due step"""
_TICK: Final = 0.1
_READ: Final = 1 << 16
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FIGURES: Final = tuple(
    one.name for one in fields(Figures) if one.name not in ("target", "late_us")
)
_ERRORS: Final = {
    kind.__name__: kind for kind in (NameServerError, ClientError, JournalError, TargetRefused)
}
"""what a process says of why it ended, the most exact kind first"""


class JobTarget(msgspec.Struct):
    """What the parent sends to the workers before they start."""

    namesrv: str | None
    """address of the sandbox, or of its first broker in the raw mode; None: as configured"""
    exempt: list[str]
    """its addresses"""


class JobReport(msgspec.Struct):
    """Progress of a worker, or how it ended."""

    figures: dict[str, int]
    begun: int = 0
    """rows of the journal that say that a step was begun"""
    ended: int = 0
    """rows that say what came of one"""
    ready: bool = False
    """waiting for the start signal"""
    done: bool = False
    """it has ended, as planned or stopped"""
    said: list[str] = []
    """limits that were reached"""
    error: str = ""
    """kind of what ended it"""
    reason: str = ""
    hint: str = ""


class JobKilled(Exception):
    """A worker ended before its share was sent; the text says which one, and how."""


MakeRun = Callable[[int, JobTarget], ReplayRun]
"""(number of a process, what the first one says) -> what it does, made within that process"""


class _Job:
    """A worker process, as its parent sees it."""

    def __init__(self, number: int, pid: int, inward: int, outward: int) -> None:
        self.number = number
        self.pid = pid
        self.report = JobReport({})
        self.has_ended = False
        self._inward = inward
        self.outward = outward
        self._rest = b""

    def tell(self, line: bytes) -> None:
        """Write a line to the worker, unless it has ended."""
        with suppress(BrokenPipeError):
            os.write(self._inward, line + b"\n")

    def read(self) -> None:
        """Read its reports."""
        data = os.read(self.outward, _READ)
        self.has_ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            with suppress(Unreadable):
                self.report = json_of(_REPORTS, line)

    def close(self) -> None:
        """Close its pipe, kill it if needed, and wait; return its exit status."""
        os.close(self._inward)
        # else waitpid would wait until its share is sent
        if not self.has_ended:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.outward)
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    status = 0
    """exit status, once closed; less than 0: a signal"""


class JobRun:
    """The worker processes of a replay; created before the loop, because they are forked."""

    def __init__(self, jobs: int, make: MakeRun) -> None:
        """Start the processes. Raises OSError if none can be started."""
        self.figures = Figures()
        self.begun = 0
        self.ended = 0
        self.said: list[str] = []
        self._jobs: list[_Job] = []
        self._started = False
        for number in range(jobs):
            self._jobs.append(_forked(number, make, self._jobs))

    def run(
        self,
        namesrv: str,
        sandbox: SandboxOptions | None,
        raw: bool,
        stoppable: Stoppable,
        tick: Callable[[Figures], None],
    ) -> Figures:
        """Replay until all workers have ended; return the combined result.

        Raises the error of a worker, as `run_replay`, or JobKilled.
        """
        self.figures.target = namesrv
        try:
            asyncio.run(self._run(sandbox, raw, stoppable, tick))
        finally:
            for job in self._jobs:
                job.close()
            self._add_up()
        self._raise_first()
        return self.figures

    async def _run(
        self,
        sandbox: SandboxOptions | None,
        raw: bool,
        stoppable: Stoppable,
        tick: Callable[[Figures], None],
    ) -> None:
        async with Sandbox(sandbox) if sandbox is not None else nullcontext() as box:
            target = JobTarget(None, [])
            if box is not None:
                brokers = list(box.addresses.values())
                target = JobTarget(brokers[0] if raw else box.namesrv, [box.namesrv, *brokers])
                self.figures.target = target.namesrv or ""
            self._broadcast(msgspec.json.encode(target))
            loop = asyncio.get_running_loop()
            ended = asyncio.Event()
            for job in self._jobs:
                loop.add_reader(job.outward, self._read, job, ended)
            ticker = loop.create_task(self._tick(tick))
            try:
                with stoppable(lambda: self._stop(loop)):
                    await ended.wait()
            finally:
                ticker.cancel()
                for job in self._jobs:
                    loop.remove_reader(job.outward)

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make all workers start no further steps; may be called by a signal handler."""
        loop.call_soon_threadsafe(self._broadcast, b"stop")

    async def _tick(self, tick: Callable[[Figures], None]) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self._add_up()
            tick(self.figures)

    def _read(self, job: _Job, ended: asyncio.Event) -> None:
        job.read()
        if job.has_ended:
            asyncio.get_running_loop().remove_reader(job.outward)
            if not job.report.done or job.report.error:
                self._broadcast(b"stop")
        if not self._started and all(other.report.ready or other.has_ended for other in self._jobs):
            self._started = True
            # the monotonic clock is one for all processes of a machine
            self._broadcast(b"go %d" % (time.monotonic_ns() + _SOON))
        if all(other.has_ended for other in self._jobs):
            ended.set()

    def _broadcast(self, line: bytes) -> None:
        for job in self._jobs:
            job.tell(line)

    def _add_up(self) -> None:
        reports = [job.report for job in self._jobs]
        for name in _FIGURES:
            setattr(self.figures, name, sum(report.figures.get(name, 0) for report in reports))
        self.figures.late_us = max(
            (report.figures.get("late_us", 0) for report in reports), default=0
        )
        self.begun = sum(report.begun for report in reports)
        self.ended = sum(report.ended for report in reports)
        self.said = list(dict.fromkeys(text for report in reports for text in report.said))

    def _raise_first(self) -> None:
        for job in self._jobs:
            report = job.report
            kind = _ERRORS.get(report.error)
            if kind is not None and issubclass(kind, ClientError):
                raise kind(report.reason, report.hint)
            if kind is not None:
                raise kind(report.reason)
        killed = [job for job in self._jobs if not job.report.done]
        if killed:
            raise JobKilled("; ".join(map(_how, killed)))


def _how(job: _Job) -> str:
    by = f"was killed by signal {-job.status}" if job.status < 0 else "ended early"
    why = f" ({job.report.reason})" if job.report.reason else ""
    return f"process {job.number + 1} (pid {job.pid}) {by}{why}"


_REPORTS: Final = msgspec.json.Decoder(JobReport)
_TARGET: Final = msgspec.json.Decoder(JobTarget)


# -- within a worker ----------------------------------------------------------------------------


def _forked(number: int, make: MakeRun, others: Sequence[_Job]) -> _Job:
    to_job, from_job = os.pipe(), os.pipe()
    sys.stdout.flush()  # else the worker has a copy of what is buffered
    sys.stderr.flush()
    # Signals wait until the worker has its own handlers: the parent's would run in it.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        pid = os.fork()
        if not pid:
            ours = [to_job[1], from_job[0]]
            for other in others:  # open ends would hide that the parent or a worker is gone
                ours += [other._inward, other.outward]
            _be_job(number, make, to_job[0], from_job[1], ours)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    os.close(to_job[0])
    os.close(from_job[1])
    return _Job(number, pid, to_job[1], from_job[0])


def _be_job(number: int, make: MakeRun, inward: int, outward: int, ours: Sequence[int]) -> NoReturn:
    """Run a worker and exit."""
    status = 1
    try:
        gc.freeze()  # the garbage collector skips existing objects
        for descriptor in ours:
            os.close(descriptor)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for name in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        sys.stdin = open(os.devnull)  # noqa: SIM115  nobody can be asked from here
        with open(inward, "rb", buffering=0) as source:
            _Worker(source, outward).work(number, make)
        status = 0
    finally:
        os._exit(status)


class _Worker:
    """Replays a share and reports progress."""

    def __init__(self, source: IO[bytes], outward: int) -> None:
        self._source = source
        self._outward = outward
        self._rest = b""
        self._stop: Callable[[], None] = lambda: None
        self._go: asyncio.Future[int] | None = None
        self._run: ReplayRun | None = None
        self._is_ready = False
        self._figures = Figures()

    def work(self, number: int, make: MakeRun) -> None:
        """Replay, and report the outcome."""
        line = self._line()
        if line is None:
            return
        report = JobReport({}, done=True)
        try:
            self._run = make(number, json_of(_TARGET, line))
            self._run.start, self._run.tick = self._started, self._tick
            try:
                self._figures = run_replay(self._run, self._stoppable)
            finally:
                self._run.journal.close()
        except Exception as error:
            report.error = next(
                (name for name, kind in _ERRORS.items() if isinstance(error, kind)), "defect"
            )
            report.reason = str(getattr(error, "reason", error))
            report.hint = str(getattr(error, "hint", ""))
            if report.error == "defect":
                report.reason = f"{type(error).__name__}: {error}"
                report.done = False
        if self._run is not None:
            report.said = list(self._run.budget.said())
        self._report(report)

    def _line(self) -> bytes | None:
        """Return the first line from the parent, or None if the pipe is closed."""
        while b"\n" not in self._rest:
            data = self._source.read(_READ)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    @contextmanager
    def _stoppable(self, stop: Callable[[], None]) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        self._stop = stop
        self._go = loop.create_future()
        loop.add_reader(self._source.fileno(), self._receive_commands)
        try:
            yield
        finally:
            loop.remove_reader(self._source.fileno())

    def _receive_commands(self) -> None:
        """Handle lines from the parent; stop if it is gone."""
        assert self._go is not None
        data = self._source.read(_READ)
        *lines, self._rest = (self._rest + (data or b"")).split(b"\n")
        if not data:
            asyncio.get_running_loop().remove_reader(self._source.fileno())
            lines.append(b"stop")
        for line in lines:
            word, _, number = line.partition(b" ")
            # also for a stop: the worker must not wait for a start that never comes
            if not self._go.done():
                self._go.set_result(natural_of(number.decode()) or time.monotonic_ns())
            if word == b"stop":
                self._stop()

    async def _started(self) -> int:
        """Wait for the start signal."""
        assert self._go is not None
        self._is_ready = True
        self._report(JobReport({}))
        return await self._go

    def _tick(self, figures: Figures) -> None:
        self._figures = figures
        self._report(JobReport({}))

    def _report(self, report: JobReport) -> None:
        figures, report.ready = self._figures, self._is_ready
        report.figures = {name: getattr(figures, name) for name in (*_FIGURES, "late_us")}
        if self._run is not None:
            report.begun, report.ended = self._run.journal.begun, self._run.journal.ended
        line = msgspec.json.encode(report) + b"\n"
        with suppress(BrokenPipeError):
            # a pipe may take less than a whole report
            while line:
                line = line[os.write(self._outward, line) :]
