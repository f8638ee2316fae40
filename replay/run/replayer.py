"""Run a plan: send each step when it is due and its order allows it, and write down the outcome.

Rules: a step is in the journal before it can leave, and its outcome as soon as it is known. So many
are in flight at once and no more; what waits is bounded too, so that a slow target slows the
reading of the sources. After `stop` nothing further is begun, and what is in flight ends as it
does. Before a capture's next steps are sent its addresses are known to be no targets. A step
failed where a broker or the client refused it; it is `unknown` where no answer came.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from time import time_ns
from typing import Final

from dissectors.endpoint import endpoint_of_socket, split_endpoint
from dissectors.open_files import require_files

from ..async_producer import AsyncProducer
from ..captured.captured_send import SkipReason
from ..config import ProducerConfig
from ..errors import BrokerError, ClientError, ConfigError, SendFailed
from ..message import UNIQ_KEY, Attempt, Message, SendMode, SendResult
from ..plan.planner import PlannedSend, Skipped
from ..sandbox import Sandbox
from ..sending.attempt_record import record_of_attempt
from ..transport.names import addresses_of
from ..transport.problems import local_ip
from ..unique_id import UniqueIds
from .compare import captured_side
from .journal_rows import Begin, JournalError, OutcomeEntry, Result, SkippedRow
from .raw import RawSender
from .read_ahead import IN_FLIGHT, ReadAhead
from .replay_run import Figures, ReplayRun
from .resend import Resender, Sent


def outcome_of(step: PlannedSend, sent: Sent, late_ns: int, again: bool) -> OutcomeEntry:
    """Return the row of a step that has ended; `again`: it may have been sent by an earlier run
    too.
    """
    result, answer = sent.result, step.captured.answer
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
        code=_code_of(sent.error, last),
        reason=_reason_of(sent.error, last),
        late_us=max(0, late_ns) // 1000,
        attempts=max(1, len(sent.attempts)),
        maybe_twice=again or sent.maybe_stored_before,
        state=None if step.state is None else step.state.name.lower(),
        captured_code=answer.code,
        captured_result=captured_side(step.captured).result,
        captured_latency_us=answer.latency_us,
        captured_attempts=answer.attempts,
        captured_broker=answer.broker,
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
    """Return the response code; what never reached a broker has none."""
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
    found = []
    if row.result is not row.captured_result is not Result.not_captured:
        found.append(f"result {row.captured_result} → {row.result}")
    if row.code is not None and row.captured_code is not None and row.code != row.captured_code:
        found.append(f"code {row.captured_code} → {row.code}")
    if row.queue_id is not None and row.queue_id >= 0 and row.queue_id != captured_queue:
        found.append(f"queue {captured_queue} → {row.queue_id}")
    if row.attempts != row.captured_attempts:
        found.append(f"attempts {row.captured_attempts} → {row.attempts}")
    return found


class Place:
    """A step in its lanes."""

    __slots__ = ("ended", "followers", "step", "waited", "waits_for")

    def __init__(self, step: PlannedSend) -> None:
        self.step = step
        self.waits_for = 0
        """steps before it that have not ended"""
        self.waited = False
        """whether there was one when it was due"""
        self.followers: list[Place] = []
        """steps that wait for it"""
        self.ended = False


class OrderedLanes:
    """The steps that have not ended: each waits for those before it in its lanes.

    A lane is what must stay in order, such as the messages of one sharding key; a step may be in
    several, or in none. Steps are added in the order of the plan.
    """

    def __init__(self) -> None:
        self.waiting = 0
        """steps that wait for others"""
        self.bytes = 0
        """bytes of the bodies of all steps that have not ended"""
        self._last: dict[object, Place] = {}

    def add(self, step: PlannedSend) -> Place:
        """Return the next step of the plan; it may be sent at once where its place waits
        for none.
        """
        place = Place(step)
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
        """End a step; return those that may be sent now, in the order of the plan."""
        place.ended = True
        self.bytes -= place.step.size
        for lane in place.step.lanes:
            if self._last.get(lane) is place:
                del self._last[lane]
        ready = []
        for follower in place.followers:
            follower.waits_for -= 1
            if not follower.waits_for:
                self.waiting -= 1
                ready.append(follower)
        place.followers = []
        ready.sort(key=lambda one: one.step.number)
        return ready


MAX_GROUPS: Final = 256
"""producer groups, each a producer with connections of its own"""
_WAITING: Final = 1024
"""steps that wait for the order, at least"""
_LATE: Final = 100_000_000
"""ns after which a send counts as late"""
_SWITCH_SECONDS: Final = 0.0005
"""the sources are read by a thread of their own: how long a send may wait for it"""
_MS: Final = 1_000_000
_SECOND: Final = 1_000_000_000


def run_replay(
    run: ReplayRun, stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]]
) -> Figures:
    """Replay until the plan ends and nothing is in flight; returns how far it came.

    `stoppable` is given what stops it, which may be called by a signal handler. Raises
    TargetRefused, ConfigError, NameServerError where nothing can be sent at all, and what the
    sources raise.
    """
    require_files()
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        return asyncio.run(_run(run, stoppable))
    finally:
        sys.setswitchinterval(before)


async def _run(
    run: ReplayRun, stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]]
) -> Figures:
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

    async def run(
        self, stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]]
    ) -> Figures:
        """Send until the plan ends or `stop`."""
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
            self._stop_now()  # nothing that waits may leave while the connections end
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
        """Begin nothing further; may be called by a signal handler."""
        self._loop.call_soon_threadsafe(self._stop_now)

    def _stop_now(self) -> None:
        self._stopped.set()
        self._run.stop_reading()
        self._ahead.end()
        self._ready.clear()
        self._room.set()

    async def _close(self) -> None:
        producers = [one for one in self._producers.values() if isinstance(one, AsyncProducer)]
        await asyncio.gather(*(one.close() for one in producers), return_exceptions=True)
        if self._raw is not None:
            await self._raw.close()

    def _now(self) -> int:
        return int(self._loop.time() * _SECOND)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            self.figures.in_flight = len(self._tasks)
            self._run.tick(self.figures)

    # -- the plan -------------------------------------------------------------------------------

    async def _send_all(self) -> None:
        """Send what is read; meanwhile the next steps are read, of which some need a long look."""
        if self._run.paced:
            await self._ahead.fill()  # nothing is due before: reading much at once would delay it
        if self._run.start is not None:
            self._base = await self._run.start()
        while (one := await self._ahead.next()) is not None:
            if isinstance(one, Skipped):
                self._skip(one)
            elif self._run.is_own is not None and not self._run.is_own(one):
                self._pass_over(one)
            elif not await self._admit(one):
                return

    def _check_targets(self) -> None:
        """Check that no address of the capture is one that we send to. Raises TargetRefused."""
        run = self._run
        run.guard.learn(run.responders())
        for address in (*self._targets, *self._peers()):
            run.guard.check_captured(address)

    async def _resolved(self) -> list[str]:
        """Return the addresses that the names of the NameServers stand for, as far as they are
        known.
        """
        found: list[str] = []
        for address in self._config.namesrv_addresses():
            with suppress(OSError):
                host, port = split_endpoint(address) or (address, 0)
                answers = await addresses_of(host, port)
                found += [endpoint_of_socket(answer[4]) for answer in answers]
        return found

    def _peers(self) -> Iterator[str]:
        """Yield the other ends of all connections: an address may be learned while one is open."""
        for one in (*self._producers.values(), self._raw):
            if isinstance(one, (AsyncProducer, RawSender)):
                yield from one.peers

    def _skip(self, one: Skipped) -> None:
        if one.why is SkipReason.DONE or not self._run.writes_skipped:
            return
        origin = one.origin
        self._run.journal.write_skipped(
            SkippedRow(
                origin.capture, origin.packet, one.why.name, one.detail, one.topic, one.unique_key
            )
        )

    async def _admit(self, step: PlannedSend) -> bool:
        """Let a step wait for its time and its turn; False where nothing more is begun."""
        before = self._run.before
        if before is not None and before.is_done(step.number):
            self.figures.done_before += 1
            return True
        await self._prepare(step)
        await self._ask_consent(step)
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
        """Let another process send a step."""
        before = self._run.before
        if before is None or not before.is_done(step.number):
            self._note_first(step)

    def _note_first(self, step: PlannedSend) -> None:
        """Let the first step, or the first that is left, be due now, or when all have begun."""
        if self._shift is None:
            now = self._now() if self._base is None else self._base
            self._shift = step.due - (now - self._start)

    def _has_room(self, step: PlannedSend) -> bool:
        """Return whether a step may be added to those that wait or are in flight."""
        if len(self._tasks) + len(self._ready) >= self._run.in_flight:
            return False
        if self._lanes.waiting >= max(_WAITING, 4 * self._run.in_flight):
            return False
        if self._lanes.bytes and self._lanes.bytes + step.size > self._bodies.most:
            origin = step.captured.seen.origin
            self._bodies.end(f"at packet {origin.packet} of {origin.capture}")
            return False
        return True

    async def _is_due(self, due: int) -> bool:
        """Wait for the time of a step; False where the run was stopped before."""
        wait = (self._start + due - self._now()) / _SECOND
        if wait <= 0:
            return True
        try:
            await asyncio.wait_for(self._stopped.wait(), wait)
        except TimeoutError:
            return True
        return False

    async def _prepare(self, step: PlannedSend) -> None:
        """Make the producer of the step's group, or what sends requests as they are."""
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
        """Let the user agree to the brokers of a step's route; TargetRefused where he does not."""
        producer, consent = self._producers.get(step.group), self._run.consent
        if consent is not None and isinstance(producer, AsyncProducer):
            await consent(producer, step.messages[0].topic)

    # -- sending --------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Begin what is ready, and write what is known, at the end of this turn of the loop."""
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
            for message in step.messages:
                if UNIQ_KEY not in message.properties:
                    message.properties[UNIQ_KEY] = self._ids.next(time_ns() // _MS)
            again = self._is_again(step.number)
            journal.write(Begin(step.number, keys_of(step), again))
            begun.append((place, again))
        try:
            journal.flush(self._loop.time())
        except JournalError as problem:  # what is not written down is not sent
            self._fail(problem)
            return
        for place, again in begun:
            task = self._loop.create_task(self._send(place, again))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        self.figures.sent += sum(len(place.step.messages) for place, _ in begun)

    def _is_again(self, number: int) -> bool:
        """Return whether an earlier run may have sent a step already."""
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
        return await self._resender.send(producer, step, time_ns() // _MS)

    def _check_hope(self, sent: Sent) -> None:
        """End the run where no NameServer answers and nothing ever left: nothing will leave."""
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
            self._fail(problem)  # a defect, or a journal that cannot be written
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
