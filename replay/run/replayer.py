"""Run a plan: send each step when it is due and its order allows it, and record the outcome.

Steps in flight and waiting are bounded, so a slow target slows down reading. After `stop` no step
is started, and those in flight end normally. A step failed if a broker or the client rejected it;
without a response it is `unknown`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from time import time_ns
from typing import Final

from dissectors.budget import Budget
from dissectors.endpoint import endpoint_of_socket, split_endpoint
from dissectors.open_files import require_files
from dissectors.times import SECOND

from ..async_producer import AsyncProducer
from ..captured.captured_send import SkipReason
from ..config import ProducerConfig
from ..errors import BrokerError, ClientError, ConfigError, SendFailed
from ..message import UNIQ_KEY, Attempt, Message, SendMode, SendResult
from ..plan.planner import PlannedSend, Skipped
from ..safety import Guard
from ..sandbox import Sandbox, SandboxOptions
from ..sending.attempt import record_of_attempt
from ..transport.names import addresses_of
from ..transport.problems import local_ip
from ..unique_id import UniqueIds
from ..wire.network import MS
from .compare import Comparison, captured_side
from .journal import JournalWriter, Progressed
from .journal_rows import Begin, JournalError, OutcomeEntry, Result, SkippedRow
from .read_ahead import DEPTH, IN_FLIGHT, ReadAhead
from .resend import RawSender, Resender, Sent

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


def outcome_of(step: PlannedSend, sent: Sent, late_ns: int, again: bool) -> OutcomeEntry:
    """Return the outcome row of a step; `again`: an earlier run may have sent it, too."""
    result, response = sent.result, step.captured.response
    last = sent.attempts[-1] if sent.attempts else None
    row = OutcomeEntry(
        step=step.number,
        capture=step.origin.capture,
        packet=step.origin.packet,
        conversation=step.origin.conversation,
        time=step.origin.time,
        topic=step.messages[0].topic,
        unique_keys=keys_of(step),
        captured_key=step.captured_key,
        messages=len(step.messages),
        mode=step.mode.value,
        result=_result_of(step, sent),
        status=result.status.value if result is not None and _is_answered(step) else None,
        # the code of a request that lacks its reply would say that all is well
        code=None if sent.lacks_reply else _code_of(sent.error, last),
        reason=_reason_of(sent.error, last),
        late_us=max(0, late_ns) // 1000,
        attempts=max(1, len(sent.attempts)),
        maybe_twice=again or sent.maybe_stored_before,
        state=None if step.state is None else step.state.name.lower(),
        captured_code=response.code,
        # only now, at the end of the send: later packets may have completed it
        captured_result=captured_side(step.captured).result,
        captured_latency_us=response.latency_us,
        captured_attempts=response.attempts,
        captured_broker=response.broker,
    )
    _add_place(row, result, last)
    row.differences = _differences(row, step.captured.place[1])
    return row


def keys_of(step: PlannedSend) -> list[str]:
    """Return the UNIQ_KEYs of a step's messages, as they are sent."""
    return [message.unique_key or "" for message in step.messages]


def _is_answered(step: PlannedSend) -> bool:
    return step.mode is not SendMode.ONEWAY or step.state is not None or step.wants_reply


def _result_of(step: PlannedSend, sent: Sent) -> Result:
    if sent.result is not None:
        return Result.stored if _is_answered(step) else Result.sent
    return Result.unknown if sent.is_unknown else Result.failed


def _code_of(error: ClientError | None, last: Attempt | None) -> int | None:
    """Return the response code; None if the step never reached a broker."""
    if last is not None:
        return last.code
    return error.code if isinstance(error, BrokerError) else None


def _reason_of(error: ClientError | None, last: Attempt | None) -> str | None:
    if error is None:
        return None
    cause = error.cause if isinstance(error, SendFailed) and error.cause is not None else error
    return (last.remark if last is not None else None) or cause.reason


def _add_place(row: OutcomeEntry, result: SendResult | None, last: Attempt | None) -> None:
    if last is not None:
        row.broker, row.address = last.queue.broker_name, last.address
        row.queue_id, row.queue_offset = last.queue.queue_id, last.queue_offset
        row.latency_us = last.latency_us
    if result is not None:
        row.broker, row.queue_id = result.queue.broker_name or row.broker, result.queue.queue_id
        row.queue_offset = result.queue_offset


def _differences(row: OutcomeEntry, captured_queue: int) -> list[str]:
    differences = []
    if row.result is not row.captured_result is not Result.not_captured:
        differences.append(f"result {row.captured_result} → {row.result}")
    if row.code is not None and row.captured_code is not None and row.code != row.captured_code:
        differences.append(f"code {row.captured_code} → {row.code}")
    if row.queue_id is not None and row.queue_id >= 0 and row.queue_id != captured_queue:
        differences.append(f"queue {captured_queue} → {row.queue_id}")
    if row.attempts != row.captured_attempts:
        differences.append(f"attempts {row.captured_attempts} → {row.attempts}")
    return differences


@dataclass(slots=True, eq=False)
class Place:
    """A step and its position in its lanes."""

    step: PlannedSend
    waits_for: int = 0
    """steps before it that have not ended"""
    waited: bool = False
    """whether there was one when it was due"""
    followers: list[Place] = field(default_factory=list)
    """steps that wait for it"""


class OrderedLanes:
    """The steps that have not ended: each waits for earlier steps in its lanes.

    Steps of one lane, such as those of one sharding key, stay in order; a step may be in several
    lanes, or in none. Steps are added in plan order.
    """

    def __init__(self) -> None:
        self.waiting = 0
        """steps that wait for others"""
        self.bytes = 0
        """bytes of the bodies of all steps that have not ended"""
        self._last: dict[object, Place] = {}

    def add(self, step: PlannedSend) -> Place:
        """Add the next step of the plan; return its place, which is ready if it waits for none."""
        place = Place(step)
        # without repeats: a step that is twice in a lane would wait for itself
        for lane in dict.fromkeys(step.lanes):
            before = self._last.get(lane)
            if before is not None:
                before.followers.append(place)
                place.waits_for += 1
            self._last[lane] = place
        place.waited = place.waits_for > 0
        self.waiting += place.waited
        self.bytes += step.size
        return place

    def end(self, place: Place) -> list[Place]:
        """End a step; return the places that became ready, in plan order."""
        self.bytes -= place.step.size
        for lane in place.step.lanes:
            # an idle lane has no entry, so that memory depends on the steps in flight alone
            if self._last.get(lane) is place:
                del self._last[lane]
        ready = []
        for follower in place.followers:
            follower.waits_for -= 1
            if not follower.waits_for:
                self.waiting -= 1
                ready.append(follower)
        place.followers = []
        ready.sort(key=lambda candidate: candidate.step.number)
        return ready


MAX_GROUPS: Final = 256
"""producer groups, each a producer with connections of its own"""
_WAITING: Final = 1024
"""steps that wait for the order, at least"""
_LATE: Final = 100_000_000
"""ns after which a send counts as late"""
_SWITCH_SECONDS: Final = 0.0005
"""the sources are read by a thread of their own: how long a send may wait for it"""


def run_replay(run: ReplayRun, stoppable: Stoppable) -> Figures:
    """Replay until the plan ends and nothing is in flight; return the figures.

    Raises TargetRefused, ConfigError, NameServerError if nothing can be sent at all, and errors of
    the sources.
    """
    require_files()
    before = sys.getswitchinterval()  # Python's default of 5 ms would make sends late
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        return asyncio.run(_run(run, stoppable))
    finally:
        sys.setswitchinterval(before)


async def _run(run: ReplayRun, stoppable: Stoppable) -> Figures:
    if run.sandbox is None:
        return await _Replayer(run, run.config).run(stoppable)
    async with Sandbox(run.sandbox) as sandbox:
        run.guard.exempt((sandbox.namesrv, *sandbox.addresses.values()))
        address = next(iter(sandbox.addresses.values())) if run.raw else sandbox.namesrv
        config = replace(run.config, namesrv=address)
        return await _Replayer(run, config).run(stoppable)


class _Replayer:
    """One run on one loop."""

    def __init__(self, run: ReplayRun, config: ProducerConfig) -> None:
        self.figures = Figures(target=";".join(config.namesrv_addresses()))
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._config = replace(
            config,
            on_attempt=self._note_attempt,
            guard=run.guard.why_not,
            budget=run.budget,
            # the run bounds the sends: the producers must not hold them back, too
            in_flight_least=max(config.in_flight_least, run.in_flight),
        )
        self._resender = Resender(1 + config.retries)
        self._producers: dict[str, AsyncProducer | ClientError] = {}
        self._raw: RawSender | None = None
        self._lanes = OrderedLanes()
        self._bodies = run.budget.bound(*IN_FLIGHT)
        self._ready: deque[Place] = deque()
        self._room = asyncio.Event()
        self._stopped = asyncio.Event()
        self._scheduled = False
        self._problem: BaseException | None = None
        self._left = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._ahead = ReadAhead(run.batches, run.read_ahead, self._check_targets, run.budget)
        self._targets = list(config.namesrv_addresses())
        self._start = 0
        self._shift: int | None = None
        self._base: int | None = None
        address = config.namesrv_addresses()[0]
        self._ids = UniqueIds(local_ip(address), os.getpid(), int.from_bytes(os.urandom(4), "big"))

    async def run(self, stoppable: Stoppable) -> Figures:
        """Send until the plan ends or `stop` is called."""
        # a captured address may be behind the name
        self._targets += await self._resolved()
        self._start = self._now()
        ticker = self._loop.create_task(self._tick())
        try:
            with stoppable(self._stop):
                await self._send_all()
                while self._tasks or self._ready:
                    self._room.clear()
                    await self._room.wait()
        except BaseException:
            self._stop_now()  # no waiting step may leave while the connections close
            raise
        finally:
            ticker.cancel()
            try:
                self._run.journal.flush()
            except JournalError as problem:
                self._problem = self._problem or problem
            self._run.stop_reading()
            self._ahead.end()
            await self._close()
            await self._ahead.ended()
        if self._problem is not None:
            raise self._problem
        return self.figures

    def _stop(self) -> None:
        """Start no further steps; may be called by a signal handler."""
        self._loop.call_soon_threadsafe(self._stop_now)

    def _stop_now(self) -> None:
        self._stopped.set()
        self._run.stop_reading()
        self._ahead.end()
        self._ready.clear()
        self._room.set()

    async def _close(self) -> None:
        producers = [
            producer for producer in self._producers.values() if isinstance(producer, AsyncProducer)
        ]
        await asyncio.gather(*(producer.close() for producer in producers), return_exceptions=True)
        if self._raw is not None:
            await self._raw.close()

    def _now(self) -> int:
        return int(self._loop.time() * SECOND)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            self.figures.in_flight = len(self._tasks)
            self._run.tick(self.figures)

    # -- the plan -------------------------------------------------------------------------------

    async def _send_all(self) -> None:
        """Send the steps read so far while a thread reads the next ones."""
        if self._run.paced:
            # fill the buffer before the first step is due: a large read would delay it
            await self._ahead.fill()
        if self._run.start is not None:
            self._base = await self._run.start()
        while (step := await self._ahead.next()) is not None:
            if isinstance(step, Skipped):
                self._skip(step)
            elif self._run.is_own is not None and not self._run.is_own(step):
                self._pass_over(step)
            elif not await self._admit(step):
                return

    def _check_targets(self) -> None:
        """Check that no target is a captured address. Raises TargetRefused."""
        run = self._run
        run.guard.learn(run.responders())
        for address in (*self._targets, *self._peers()):
            run.guard.check_captured(address)

    async def _resolved(self) -> list[str]:
        """Return the resolved addresses of the NameServers, as far as they are known."""
        addresses: list[str] = []
        for address in self._config.namesrv_addresses():
            with suppress(OSError):
                host, port = split_endpoint(address) or (address, 0)
                infos = await addresses_of(host, port)
                addresses += [endpoint_of_socket(info[4]) for info in infos]
        return addresses

    def _peers(self) -> Iterator[str]:
        """Yield the peers of all connections: an address may be learned while one is open."""
        for sender in (*self._producers.values(), self._raw):
            if isinstance(sender, (AsyncProducer, RawSender)):
                yield from sender.peers

    def _skip(self, skipped: Skipped) -> None:
        if skipped.why is SkipReason.DONE or not self._run.writes_skipped:
            return
        before = self._run.before
        if before is not None and before.skipped:
            before.skipped -= 1  # it is in the journal
            return
        origin = skipped.origin
        self._run.journal.write_skipped(
            SkippedRow(
                origin.capture,
                origin.packet,
                skipped.why.name,
                skipped.detail,
                skipped.topic,
                skipped.unique_key,
            )
        )

    async def _admit(self, step: PlannedSend) -> bool:
        """Wait for a step's due time and its turn; return False after a stop."""
        before = self._run.before
        if before is not None and before.is_done(step.number):
            self.figures.done_before += 1
            return True
        # before it is due, because a new producer takes time to start
        await self._prepare(step)
        await self._ask_consent(step)
        # after the first producer has started: its start makes no send late
        self._note_first(step)
        if not await self._is_due(step.due - (self._shift or 0)):
            return False
        while not self._has_room(step):
            self._room.clear()
            await self._room.wait()
            if self._stopped.is_set():
                return False
        place = self._lanes.add(step)
        if not place.waits_for:
            self._ready.append(place)
            self._schedule()
        return not self._stopped.is_set()

    def _pass_over(self, step: PlannedSend) -> None:
        """Leave a step to another process."""
        before = self._run.before
        if before is None or not before.is_done(step.number):
            self._note_first(step)

    def _note_first(self, step: PlannedSend) -> None:
        """Set the clock: the first remaining step is due now, or when all workers have started."""
        if self._shift is None:
            now = self._now() if self._base is None else self._base
            self._shift = step.due - (now - self._start)

    def _has_room(self, step: PlannedSend) -> bool:
        """Return whether there is room for another waiting or in-flight step."""
        if len(self._tasks) + len(self._ready) >= self._run.in_flight:
            return False
        if self._lanes.waiting >= max(_WAITING, 4 * self._run.in_flight):
            return False
        # a step that is larger than the limit is sent alone
        if self._lanes.bytes and self._lanes.bytes + step.size > self._bodies.most:
            self._bodies.end(f"at packet {step.origin.packet} of {step.origin.capture}")
            return False
        return True

    async def _is_due(self, due: int) -> bool:
        """Wait for the due time of a step; return False if the run was stopped."""
        wait = (self._start + due - self._now()) / SECOND
        if wait <= 0:
            return True
        try:
            await asyncio.wait_for(self._stopped.wait(), wait)
        except TimeoutError:
            return True
        return False

    async def _prepare(self, step: PlannedSend) -> None:
        """Create the producer of the step's group, or the raw sender."""
        if step.raw is not None:
            self._raw = self._raw or RawSender(self._config)
            return
        group = step.group
        if group in self._producers:
            return
        try:
            if len(self._producers) >= MAX_GROUPS:
                raise ConfigError(f"more than {MAX_GROUPS} producer groups", "--group gives one")
            producer = AsyncProducer(replace(self._config, group=group))
            await producer.start()
        except ClientError as error:
            self._producers[group] = error
        else:
            self._producers[group] = producer

    async def _ask_consent(self, step: PlannedSend) -> None:
        """Ask the user's consent to the brokers of a step's route; TargetRefused if refused."""
        producer, consent = self._producers.get(step.group), self._run.consent
        if consent is not None and isinstance(producer, AsyncProducer):
            await consent(producer, step.messages[0].topic)

    # -- sending --------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Schedule starting ready steps and writing outcomes at the end of this loop turn."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._begin_ready)

    def _begin_ready(self) -> None:
        self._scheduled = False
        journal = self._run.journal
        begun: list[tuple[Place, bool]] = []
        while self._ready and len(self._tasks) + len(begun) < self._run.in_flight:
            place = self._ready.popleft()
            step = place.step
            # The journal has the ids before anything leaves, so that a resumed run knows them.
            for message in step.messages:
                if UNIQ_KEY not in message.properties:
                    message.properties[UNIQ_KEY] = self._ids.next(time_ns() // MS)
            again = self._is_again(step.number)
            journal.write(Begin(step.number, keys_of(step), again))
            begun.append((place, again))
        try:
            journal.flush(self._loop.time())
        except JournalError as problem:  # a step that is not in the journal is not sent
            self._fail(problem)
            return
        for place, again in begun:
            task = self._loop.create_task(self._send(place, again))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        self.figures.sent += sum(len(place.step.messages) for place, _ in begun)

    def _is_again(self, number: int) -> bool:
        """Return whether an earlier run may have sent a step."""
        before = self._run.before
        if before is None:
            return False
        again = number in before.open or before.failed.get(number, False)
        self.figures.again += again
        return again

    async def _send(self, place: Place, again: bool) -> None:
        step = place.step
        late = 0
        if self._run.paced:
            late = self._now() - self._start - (step.due - (self._shift or 0))
            self.figures.held += place.waited and late > _LATE
        sent = await self._sent(step)
        self._note(outcome_of(step, sent, late, again))
        self._check_hope(sent)
        for follower in self._lanes.end(place):
            if not self._stopped.is_set():
                self._ready.append(follower)

    async def _sent(self, step: PlannedSend) -> Sent:
        if step.raw is not None and self._raw is not None:
            return await self._raw.send(step)
        producer = self._producers[step.group]
        if isinstance(producer, ClientError):
            return Sent(None, producer, ())
        return await self._resender.send(producer, step, time_ns() // MS)

    def _check_hope(self, sent: Sent) -> None:
        """End the run if no NameServer responds and nothing was ever sent."""
        self._left = self._left or sent.has_left
        if sent.unreachable is not None and not self._left:
            self._fail(sent.unreachable)

    def _fail(self, problem: BaseException) -> None:
        self._problem = self._problem or problem
        self._stop_now()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            self._fail(problem)  # a bug, or a journal that cannot be written
        self._room.set()
        self._schedule()

    def _note(self, row: OutcomeEntry) -> None:
        figures = self.figures
        figures.ended += row.messages
        figures.failed += row.result in ("failed", "unknown")
        figures.late_us = row.late_us
        self._run.journal.write(row)
        self._run.comparison.add(row)

    def _note_attempt(self, message: Message, attempt: Attempt) -> None:
        self._run.journal.write_attempt(record_of_attempt(message, attempt, self._run.run))
