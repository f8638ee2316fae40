"""Keep the packets around problems: selects their time range and connections.

Rules: a storm of problems is one incident, and the same problem is kept again only after a pause. A
separate process (`incident_capture`) copies and diagnoses the packets, so nothing here blocks.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from analytics.diagnosis.context import Context
from analytics.diagnosis.problem import Problem, ProblemSeverity, Subject
from dissectors.endpoint import host_of
from dissectors.foreign import Unreadable, json_of
from dissectors.processes.children import start_module
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.tables import encodable_value
from dissectors.times import SECOND, text_of_time

from ..summary.watch import ProblemChange, ProblemEvent
from ..ui.errors import reason_of

MOST_CONNECTIONS: Final = 50_000
"""connections that are remembered; the oldest are dropped first"""


class KnownConnections:
    """The ends of the latest connections."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[str, str]] = {}

    def note(self, rows: Sequence[ExchangeRecord], ended: Sequence[ConversationRecord]) -> None:
        """Add decoded rows."""
        ends = self._ends
        for row in rows:
            if row.conversation not in ends:
                ends[row.conversation] = row.client_address, row.server_address
        for connection in ended:
            ends.setdefault(
                connection.conversation, (connection.client_address, connection.server_address)
            )
        if len(ends) > MOST_CONNECTIONS:
            # Half of them at once, so that not each further row copies the list.
            for number in list(ends)[: MOST_CONNECTIONS // 2]:
                del ends[number]

    def forget(self) -> None:
        """Drop all connections, because numbering restarts."""
        self._ends.clear()

    def of(self, problem: Problem) -> list[tuple[str, str]]:
        """Return client and server of the connections that prove a problem."""
        numbers = dict.fromkeys(evidence.conversation for evidence in problem.evidence)
        return [self._ends[number] for number in numbers if number in self._ends]


Item = TypeVar("Item")
MOST_JOINED: Final = 300 * SECOND
"""ns by which joining problems may extend an incident"""
LONGEST_LEAD: Final = 300 * SECOND
"""ns before the start within which a problem's first sign is kept, besides `--before`"""
AGAIN: Final = 600 * SECOND
"""ns before a problem with the same rule and subject is kept again"""
MOST_NAMED: Final = 1000
"""connections, servers and hosts of one incident"""
MOST_REMEMBERED: Final = 10_000
PATIENCE: Final = 30.0
"""seconds that `finish` waits for an incident with its diagnosis"""
GRACE: Final = 10.0
"""further seconds for its packets alone"""
_MODULE: Final = "rmqtool.watch.incident_capture"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9-]+")


class IncidentOrder(msgspec.Struct, kw_only=True):
    """An incident whose packets are still coming, and then the order for the capture process."""

    files: list[str] = []
    """of the ring, in their order"""
    begin: int
    """ns since the epoch"""
    end: int
    connections: list[tuple[str, str]] = []
    """client and server, `address:port`, whose packets are kept"""
    servers: list[str] = []
    """servers whose connections are all kept"""
    clients: list[str] = []
    """hosts whose connections to any of `known` are kept"""
    known: list[str] = []
    """servers of RocketMQ"""
    problems: list[object] = []
    """events of the problems that caused the incident"""
    folder: str
    """folder of all incidents"""
    name: str
    """name of the new folder"""
    most: int
    """incidents that may be kept"""
    size: int
    """total bytes of all incidents"""
    decode_as: list[int] = []
    tls_keylog: str = ""


class KeptIncident(msgspec.Struct):
    """The outcome of an order."""

    path: str = ""
    packets: int = 0
    bytes: int = 0
    problems: int = 0
    diagnosed: bool = True
    """False: the diagnosis took too long and was left out"""
    removed: int = 0
    """older incidents that were removed"""
    cut: bool = False
    """cut at the size limit of an incident"""
    missing: int = 0
    """files of the ring that were removed before they were read"""
    error: str = ""


class IncidentKeeper:
    """Orders captures of problems once their packets have arrived."""

    def __init__(
        self,
        folder: Path,
        severity: ProblemSeverity,
        before: int,
        after: int,
        most: int,
        size: int,
        files: Callable[[int, int], list[Path]],
        connections: KnownConnections,
        decode_as: Iterable[int] = (),
        tls_keylog: str = "",
    ) -> None:
        """`before`, `after` in ns; `files` returns the ring files of a time range.

        Raise OSError if the folder cannot be created.
        """
        folder.mkdir(0o700, parents=True, exist_ok=True)
        self.kept = 0
        """incidents"""
        self.failed = 0
        self._folder, self._severity = folder, severity
        self._before, self._after = before, after
        self._files = files
        self._connections = connections
        self._order = partial(
            IncidentOrder,
            folder=str(folder),
            most=most,
            size=size,
            decode_as=sorted(decode_as),
            tls_keylog=tls_keylog,
        )
        self._known: list[str] = []
        self._last: dict[tuple[str, Subject], int] = {}
        self._waiting: IncidentOrder | None = None
        self._latest = 0
        """latest end of the waiting incident"""
        self._running: subprocess.Popen[bytes] | None = None
        self._refused: KeptIncident | None = None

    def take(self, events: Sequence[ProblemEvent], context: Context) -> None:
        """Schedule captures for problems that started."""
        for event in events:
            problem = event.problem
            if event.kind is not ProblemChange.STARTED or problem.severity < self._severity:
                continue
            key = problem.rule, problem.subject
            # Not negative: the clock of the capture was set back since.
            if 0 <= event.time - self._last.get(key, -AGAIN) < AGAIN:
                continue
            if len(self._last) >= MOST_REMEMBERED:
                self._last.clear()  # at worst some problems are kept again too early
            self._last[key] = event.time
            self._known = [*context.servers, *context.endpoints][:MOST_REMEMBERED]
            self._add(event)

    def look(self, now: int) -> KeptIncident | None:
        """Start the incident due at `now` (ns); return a finished one."""
        done = self._finished(None)
        waiting = self._waiting
        # Its end never comes if the clock of the capture was set back.
        is_due = waiting is not None and (now >= waiting.end or 0 < now < waiting.begin)
        if waiting is not None and self._running is None and is_due:
            self._start(waiting)
        return done

    def finish(self) -> list[KeptIncident]:
        """Write the pending incident with the packets so far, and wait for it."""
        done = [self._finished(PATIENCE)]
        if self._waiting is not None:
            self._start(self._waiting)
            done.append(self._finished(PATIENCE))
        return [kept for kept in done if kept is not None]

    def _add(self, event: ProblemEvent) -> None:
        problem, now = event.problem, event.time
        first = max(min(problem.first_time, now), now - LONGEST_LEAD) - self._before
        waiting = self._waiting
        if waiting is None:  # later problems join this incident
            time_text = re.sub(r"[-:]|\.\d+", "", text_of_time(now))
            name = f"{time_text}-{_NOT_IN_NAMES.sub('-', problem.rule)}"
            self._latest = now + self._after + MOST_JOINED
            waiting = self._waiting = self._order(begin=first, end=now + self._after, name=name)
        waiting.begin = min(waiting.begin, first)
        waiting.end = min(max(waiting.end, now + self._after), self._latest)
        if len(waiting.problems) < MOST_NAMED:
            # evidence names the capture, whose name may be any bytes
            waiting.problems.append(encodable_value(event.as_json()))
        for client, server in self._connections.of(problem):
            if len(waiting.connections) >= MOST_NAMED:
                break
            _add_new(waiting.connections, (client, server))
            _add_new(waiting.clients, host_of(client))
            if problem.subject.client is None:  # other clients of the server show it, too
                _add_new(waiting.servers, server)

    def _start(self, order: IncidentOrder) -> None:
        self._waiting = None
        order.files = list(map(str, self._files(order.begin, order.end)))
        order.known = self._known
        try:
            # A file, not a pipe, so that nothing here blocks until the process has started.
            with tempfile.TemporaryFile(dir=self._folder) as asked:
                asked.write(msgspec.json.encode(order))
                asked.seek(0)
                self._running = start_module(
                    _MODULE, stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
        except OSError as error:
            self.failed += 1
            self._refused = KeptIncident(error=reason_of(error))

    def _finished(self, patience: float | None) -> KeptIncident | None:
        """Return the outcome of the process, or None if there is none or it is still running."""
        refused, self._refused = self._refused, None
        if refused is not None:
            return refused
        running = self._running
        if running is None or (patience is None and running.poll() is None):
            return None
        try:
            running.wait(patience)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGALRM)  # without the diagnosis
            try:
                running.wait(GRACE)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
        self._running = None
        assert running.stdout is not None
        with running.stdout:
            text = running.stdout.read()
        try:
            kept = json_of(_DECODER, text)
        except Unreadable:
            kept = KeptIncident(error=f"its process ended with status {running.returncode}")
        self.kept += not kept.error
        self.failed += bool(kept.error)
        return kept


def _add_new(items: list[Item], item: Item) -> None:
    if item not in items:
        items.append(item)


_DECODER: Final = msgspec.json.Decoder(KeptIncident)
