"""Execution of a plan: target, journal, progress, result.

Rules: nothing is opened before the user has named the target, and agreed to it unless it is
loopback. The first Ctrl-C starts no further sends and waits for those in flight; `--resume` can
then continue with the journal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import time_ns
from typing import Final

from dissectors.budget import Budget
from dissectors.printable import printable
from dissectors.quantities import counted
from dissectors.tcp.source import expand_sources
from dissectors.times import text_of_time
from replay.captured.source import OwnConnections, Survey
from replay.config import ProducerConfig
from replay.consent import Consent
from replay.errors import NameServerError
from replay.plan.planned_run import PlannedRun
from replay.plan.planner import PlannedSend, SendOrder
from replay.run.compare import Comparison
from replay.run.jobs import JobKilled, JobRun, JobTarget, LaneShares
from replay.run.journal import (
    JournalWriter,
    Progressed,
    count_skipped,
    create_journal,
    locked_journal,
    read_run,
    read_steps,
    sources_of,
)
from replay.run.journal_rows import (
    INTERFACE,
    STEPS,
    JournalError,
    JournalRefused,
    OutcomeEntry,
    Run,
    SourceEntry,
)
from replay.run.read_ahead import DEPTH
from replay.run.replayer import Figures, ReplayRun, run_replay
from replay.safety import Agreement, Guard
from replay.sandbox import SandboxError, SandboxOptions, injections_of_file
from replay.sandbox.options import check_options
from replay.transport.problems import is_own_address
from replay.transport.tls import tls_context

from ..send.targets import (
    TITLE,
    Question,
    agreement_of,
    can_ask,
    client_config,
)
from ..ui.console import terminal_of
from ..ui.errors import print_note
from ..ui.figures import count, duration, share
from ..ui.interrupt import first_ends
from ..ui.option_names import in_options
from ..ui.option_values import about, usage_error
from ..ui.screen.panels import typed
from ..ui.screen.progress import Far, Progress
from ..ui.status import CommandError, ExitStatus
from ..version import VERSION
from .options import RAW
from .plan import (
    batches_of,
    ended_in_time,
    note_cut_sources,
    plan_to_show,
    planned_of,
    refuse_undecoded,
    surveyed,
)
from .plan_lines import summary_lines
from .prepared import PreparedReplay
from .result import result_json, result_lines


def run_send(ready: PreparedReplay) -> ExitStatus:
    """Replay; raise CommandError on failure."""
    return _Sending(ready).run()


class _ReplayProgress(Progress):
    """The progress of a replay."""

    figures = Figures()

    def far(self, read: int, total: int | None, found: int, seconds: float) -> Far:  # noqa: ARG002
        figures = self.figures
        rate = count(round(figures.sent / seconds)) if seconds > 0 else "0"
        share = f"{100 * read // total:3d}% read: " if total else ""
        text = (
            f"{share}{count(figures.sent)} sent, {rate}/s, {count(figures.in_flight)} in flight, "
            f"{count(figures.failed)} failed, {duration(figures.late_us)} late"
        )
        return Far(text, min(1.0, read / total) if total else None)


_MOST_OF_ONE: Final = 0.9
"""share of sends in one process from which more processes do not help"""
_SANDBOX_STORE: Final = 8 << 20
"""bytes of newest messages that each sandbox broker keeps"""


class _Sending:
    """A run of the command."""

    def __init__(self, ready: PreparedReplay) -> None:
        self._ready = ready
        self._request = request = ready.request
        self._comparison = Comparison()
        self._stopped = False
        self._budget = Budget(request.max_output)
        self._before: Progressed | None = None
        self._held = ExitStack()
        """ends with the run: the lock of the journal"""
        self._killed = ""
        self._notes: dict[str, None] = {}
        self._progress = _ReplayProgress(sys.stderr, not self._request.quiet, "sends")
        self._question = Question(self._progress.clear)

    def run(self) -> ExitStatus:
        """Run the replay and return the exit status."""
        with self._held:
            return self._run()

    def _run(self) -> ExitStatus:
        request = self._request
        config, sandbox, own = self._config(), self._sandbox(), OwnConnections()
        if self._request.is_live:  # the live capture includes our own connections
            config = replace(config, on_connected=own.add)
        guard = Guard(self._agreement(config, sandbox is not None), is_own_address)
        guard.learn(self._survey.responders)  # nothing is sent to the servers of the capture
        folder, run = self._journal()
        if request.jobs > 1:
            planned, figures = self._shared_out(config, guard, sandbox, folder, run)
        else:
            planned = planned_of(self._ready, run.run, self._survey, self._budget, own)
            journal = JournalWriter(folder, self._request.sync, request.in_flight)
            most = request.in_flight
            replay_run = self._replay_run(planned, config, guard, journal, run, most)
            replay_run.sandbox = sandbox
            figures = self._carried_out(lambda: run_replay(replay_run, self._stoppable), journal)
        self._result(planned, figures, folder)
        if not self._stopped and not self._killed and request.interface is None:
            refuse_undecoded(planned)
        return self._status()

    def _replay_run(
        self,
        planned: PlannedRun,
        config: ProducerConfig,
        guard: Guard,
        journal: JournalWriter,
        run: Run,
        in_flight: int,
    ) -> ReplayRun:
        request = self._request
        return ReplayRun(
            batches=iter(batches_of(planned)),
            responders=lambda: list(planned.source.responders),
            config=config,
            guard=guard,
            journal=journal,
            comparison=self._comparison,
            in_flight=in_flight,
            run=run.run,
            paced=not request.top_speed,
            raw=request.mode == RAW,
            read_ahead=1 if self._request.is_live else DEPTH,
            budget=self._budget,
            before=self._before,
            consent=Consent(guard, self._question),
            stop_reading=planned.stop,
            tick=lambda figures: self._show(figures, planned),
        )

    def _shared_out(
        self,
        config: ProducerConfig,
        guard: Guard,
        sandbox: SandboxOptions | None,
        folder: Path,
        run: Run,
    ) -> tuple[PlannedRun, Figures]:
        """Replay in several processes; compare from their journals."""
        request = self._request
        planned = planned_of(self._ready, run.run, self._survey, loops=1)
        shares = LaneShares(request.jobs)
        for batch in batches_of(planned):
            for step in batch:
                if isinstance(step, PlannedSend):
                    shares.add(step)
        shares.deal()
        if shares.largest > _MOST_OF_ONE and not request.quiet:
            part = share(round(1000 * shares.largest), 1000)
            print_note(f"{part} of the sends wait for each other; a single process sends them")
        journal = JournalWriter(folder, request.sync, request.in_flight, shared=True)
        begin = (folder / STEPS).stat().st_size  # the comparison has the rows of an earlier run

        def made(number: int, job_target: JobTarget) -> ReplayRun:
            guard.exempt(job_target.exempt)
            target = (
                config
                if job_target.namesrv is None
                else replace(config, namesrv=job_target.namesrv)
            )
            own = planned_of(self._ready, run.run, self._survey, self._budget)
            rows = JournalWriter(folder, request.sync, shared=True)
            # the first processes have what remains: together it is exactly what was asked for
            most = (request.in_flight + request.jobs - 1 - number) // request.jobs
            replay_run = self._replay_run(own, target, guard, rows, run, most)
            # Each process reads the whole plan; the first one writes what is skipped.
            replay_run.is_own = lambda step: shares.job_of(step) == number
            replay_run.writes_skipped = not number
            return replay_run

        jobs = JobRun(request.jobs, made)

        def carried_out() -> Figures:
            try:
                return jobs.run(
                    config.namesrv,
                    sandbox,
                    request.mode == RAW,
                    self._stoppable,
                    lambda figures: self._show(figures, planned),
                )
            finally:
                journal.begun, journal.ended = jobs.begun, jobs.ended
                for row in read_steps(folder, begin):
                    if isinstance(row, OutcomeEntry):
                        self._comparison.add(row)

        try:
            figures = self._carried_out(carried_out, journal)
        except JobKilled as problem:
            self._killed, figures = str(problem), jobs.figures
        for text in jobs.said:
            self._notes.setdefault(text)
        return planned, figures

    def _carried_out(self, replay: Callable[[], Figures], journal: JournalWriter) -> Figures:
        """Replay and close the journal; raise CommandError with a hint on how to continue."""
        way_on = f"continue with: rmqtool replay --resume {journal.folder} …"
        if self._request.is_live:
            way_on = "start again: live input cannot be resumed"
        try:
            try:
                return replay()
            finally:
                self._progress.clear()
                journal.close()
        except NameServerError as error:
            reason, hint = in_options(error)
            hint = "\n".join(
                filter(None, (hint, f"nothing was sent. Once the cluster responds, {way_on}"))
            )
            raise CommandError(reason, hint) from None
        except JournalError as error:
            unknown = journal.begun - journal.ended
            hint = (
                f"nothing more is sent: {counted(journal.begun, 'send')} of this run went out, "
                f"{count(journal.ended)} with an outcome in the journal"
            )
            if unknown:
                hint += f"; --resume may store the other {count(unknown)} twice"
            raise CommandError(str(error), f"{hint}\nmake room, then {way_on}") from None

    @contextmanager
    def _stoppable(self, stop: Callable[[], None]) -> Iterator[None]:
        def end() -> None:
            self._stopped = True
            self._question.end()
            stop()

        with first_ends(end), ended_in_time(self._request, stop):
            yield

    def _show(self, figures: Figures, planned: PlannedRun) -> None:
        self._progress.figures = figures
        decode = planned.source.decode
        total = decode.bytes_total if decode is not None else None
        self._progress.update(planned.source.bytes_read, total, planned.sends)

    @cached_property
    def _survey(self) -> Survey:
        """Facts on the sources before anything is sent."""
        return surveyed(self._ready)

    # -- target ---------------------------------------------------------------------------------

    def _config(self) -> ProducerConfig:
        request = self._request
        # The sandbox is not started yet; the run puts in its address (`ReplayRun.sandbox`).
        namesrv = "127.0.0.1:1" if request.target else request.namesrv
        raw = request.mode == RAW  # its target is a broker, which the environment does not name
        if namesrv is None and (raw or not os.environ.get("NAMESRV_ADDR")):
            server = "the broker" if raw else "a NameServer"
            hint = f"name {server} with -n HOST:PORT, or start a target: --target sandbox"
            raise CommandError("no target", hint, ExitStatus.USAGE)
        config = client_config(
            request,
            namesrv,
            group="rmqtool-replay",
            send_timeout_ms=request.timeout_ms,
            retries=request.retries,
            retries_async=request.retries,
        )
        if raw and len(config.namesrv_addresses()) > 1:
            raise usage_error("--namesrv", "name one broker; --mode raw sends to no other")
        if config.tls is not None:
            tls_context(config.tls)  # unusable files are one error, not one per send
        return config

    def _sandbox(self) -> SandboxOptions | None:
        request = self._request
        if request.target is None:
            return None
        # ends with the run: accepts all messages in constant memory
        options = SandboxOptions(brokers=2, store_limit=_SANDBOX_STORE, drop_oldest=True)
        if request.faults is None:
            return options
        try:
            injections, seed = injections_of_file(Path(request.faults))
            check_options(replace(options, injections=injections))
        except SandboxError as error:
            raise CommandError(f"--faults: {error.reason}", error.hint, ExitStatus.USAGE) from None
        return replace(options, injections=injections, seed=options.seed if seed is None else seed)

    def _agreement(self, config: ProducerConfig, sandbox: bool) -> Agreement:
        """Return the allowed targets; ask about NameServers on a terminal."""
        request = self._request
        agreement = agreement_of(request.yes, request.allow)
        remote = [
            address for address in config.namesrv_addresses() if not agreement.covers(address)
        ]
        if sandbox or not remote:
            return agreement
        if not can_ask():
            raise CommandError(
                f"{', '.join(map(printable, remote))} is not loopback",
                "use --yes or --allow to send there, or --dry-run to see what would be sent",
                ExitStatus.USAGE,
            )
        self._ask(remote)
        agreement.add(remote)
        return agreement

    def _ask(self, remote: list[str]) -> None:
        """Show the sends with their target, and ask."""
        request = self._request
        lines = [
            f"Target: {', '.join(map(printable, remote))}, which is not loopback",
            f"Pace: {self._request.pace}, at most {request.in_flight} in flight",
        ]
        if not self._request.is_live:
            planned = plan_to_show(self._ready, self._survey)
            for _ in batches_of(planned):
                pass
            lines += summary_lines(planned, sent=False)
        answer = typed(TITLE, lines, "Send? Type yes", sys.stdin, sys.stderr)
        if answer.strip().lower() != "yes":
            raise CommandError("nothing was sent", "", ExitStatus.FAILURE)

    # -- journal --------------------------------------------------------------------------------

    def _journal(self) -> tuple[Path, Run]:
        request = self._request
        if request.resume is not None:
            return self._resumed(Path(request.resume))
        now = time_ns()
        name = text_of_time(now).replace(":", "").replace("-", "")[:15]  # 20261120T100000
        folder = Path(request.journal or f"replay-{name}")
        run = Run(
            run=f"{folder.name}-{os.urandom(3).hex()}",
            created=text_of_time(now),
            rmqtool=VERSION,
            sources=self._sources(),
            options=self._ready.stored_options(),
            target=request.target or request.namesrv or "",
        )
        with about("--journal"):
            try:
                create_journal(folder, run)
            except JournalError as error:
                exists = isinstance(error, JournalRefused)
                status = ExitStatus.USAGE if exists else ExitStatus.FAILURE
                raise CommandError(str(error), status=status) from None
        self._held.enter_context(locked_journal(folder))
        return folder, run

    def _sources(self) -> list[SourceEntry]:
        if self._request.interface is not None:
            return [SourceEntry(f"{INTERFACE}{self._request.interface}", 0, "")]
        return sources_of(expand_sources(self._ready.sources))

    def _resumed(self, folder: Path) -> tuple[Path, Run]:
        run = read_run(folder)
        self._held.enter_context(locked_journal(folder))
        self._before = Progressed()
        for row in self._before.receive(read_steps(folder)):
            assert isinstance(row, OutcomeEntry)
            self._comparison.add(row)
        self._before.skipped = count_skipped(folder)
        return folder, run

    # -- result ---------------------------------------------------------------------------------

    def _result(self, planned: PlannedRun, figures: Figures, folder: Path) -> None:
        request, pace = self._request, str(self._request.pace)
        if request.format.is_json:
            sys.stdout.buffer.write(result_json(self._comparison, planned, figures, folder, pace))
            sys.stdout.buffer.flush()
        else:
            terminal = terminal_of(sys.stdout, request.colour)
            print("\n".join(result_lines(self._comparison, planned, figures, terminal, pace)))
        note_cut_sources(planned)
        if request.quiet:
            return
        notes = [f"journal: {folder}/"]
        if figures.again:
            times = counted(figures.again, "send")
            notes.append(f"{times} of the earlier run had no known outcome and may be stored twice")
        if figures.held:
            more = "queue or --order none" if request.order == SendOrder.keep else "none"
            notes.append(
                f"{counted(figures.held, 'send')} started late, after waiting for earlier sends; "
                f"--order {more} does not wait"
            )
        notes += map(printable, dict.fromkeys((*self._budget.said(), *self._notes)))
        if self._killed:
            begun = "the other processes started no more sends"
            hint = f"continue with: rmqtool replay --resume {folder} …"
            notes.append(f"{self._killed}; {begun}; {hint}")
        elif self._stopped and not self._request.is_live:
            notes.append(f"stopped; continue with: rmqtool replay --resume {folder} …")
        for note in notes:
            print_note(note)

    def _status(self) -> ExitStatus:
        if self._killed:
            return ExitStatus.FAILURE
        # Ctrl-C is the usual end of a live capture.
        if self._stopped and self._request.interface is None:
            return ExitStatus.INTERRUPTED
        held = [item for item in self._request.fail_on if item.holds(self._comparison)]
        for condition in held:
            print_note(f"--fail-on {condition.text}: condition met")
        return ExitStatus.DIFFERENCES if held else ExitStatus.OK
