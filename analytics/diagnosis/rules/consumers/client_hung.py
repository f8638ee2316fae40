"""A consumer process hangs for seconds while its connections stay open.

Java consumers store their offsets every 5 s by a timer that catches up, so several rounds at once
after a silence prove that the process stood still. Without them, and with gRPC, only a silence that
no live consumer has counts.
RocketMQ: MQClientInstance.startScheduledTask; ClientManagerImpl, PushConsumerImpl of
rocketmq-clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from dissectors.endpoint import host_of
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import left_at, stalls_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.outcome import LONG_POLLS, RECEIVE_CALLS
from dissectors.rows.record import ANSWERED, UNANSWERED, ExchangeRecord

from ...context import Context, Need
from ...keys import COMMIT, Add, Flow, ignore, slowest_of, state_in
from ...names import and_again, called, only
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    clock,
    duration,
    period,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...silences import OF_CLIENTS
from ...spells import spells

PER_SECOND: Final = 8
TICK: Final = 1_000_000_000 // PER_SECOND
"""ns"""
CHUNK: Final = 1024
"""ticks per chunk"""
MAX_CHUNKS: Final = 8192
"""twelve days; later ticks are not kept"""

MANY_CHUNKS: Final = 16
"""half an hour; `forget` shortens longer sets"""


class Ticks:
    """A set of ticks since the epoch."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: dict[int, int] = {}

    @property
    def full(self) -> bool:
        """Whether later ticks may be missing."""
        return len(self._chunks) >= MAX_CHUNKS

    def add(self, ticks: Iterable[int]) -> None:
        """Add ticks."""
        chunks = self._chunks
        for tick in ticks:
            number, bit = divmod(tick, CHUNK)
            known = chunks.get(number)
            if known is not None:
                chunks[number] = known | 1 << bit
            elif len(chunks) < MAX_CHUNKS:
                chunks[number] = 1 << bit

    def merge(self, other: Ticks) -> None:
        """Add the ticks of another set."""
        for number, bits in other._chunks.items():
            known = self._chunks.get(number)
            if known is not None or len(self._chunks) < MAX_CHUNKS:
                self._chunks[number] = bits | (known or 0)

    def forget(self) -> None:
        """Drop the earlier half of a long set."""
        if len(self._chunks) > MANY_CHUNKS:
            for number in sorted(self._chunks)[: MANY_CHUNKS // 2]:
                del self._chunks[number]

    def __contains__(self, tick: int) -> bool:
        number, bit = divmod(tick, CHUNK)
        return bool(self._chunks.get(number, 0) >> bit & 1)

    def __iter__(self) -> Iterator[int]:
        """Yield the ticks in ascending order."""
        for number, bits in sorted(self._chunks.items()):
            while bits:
                lowest = bits & -bits  # the lowest bit alone
                yield number * CHUNK + lowest.bit_length() - 1
                bits ^= lowest

    def last_before(self, tick: int) -> int | None:
        """Return the last earlier tick, or None."""
        number, bit = divmod(tick, CHUNK)
        bits = self._chunks.get(number, 0) & ((1 << bit) - 1)
        # Almost always in the chunk before: only a long gap needs the search through all of them.
        if not bits and number - 1 in self._chunks:
            number -= 1
            bits = self._chunks[number]
        if not bits:
            earlier = [one for one in self._chunks if one < number]
            if not earlier:
                return None
            number = max(earlier)
            bits = self._chunks[number]
        return number * CHUNK + bits.bit_length() - 1


LEAST: Final = 8 * PER_SECOND
"""ticks: one round of offsets, due every 5 s, and a good part of the next one"""
# Members query the group every 20 s and send heartbeats every 30 s.
LEAST_ALONE: Final = 35 * PER_SECOND
"""silent ticks required without catch-up rounds"""
APART: Final = 3 * PER_SECOND
"""minimum ticks between two rounds"""
BEFORE: Final = 12 * PER_SECOND
"""ticks before a silence that contain two rounds"""
LEAST_CALLS: Final = 15 * PER_SECOND
"""silent ticks of a client that calls QueryAssignment every 5 s"""
LEAST_BEATS: Final = 25 * PER_SECOND
"""silent ticks of a client that only sends a Heartbeat every 10 s"""
BEFORE_BEATS: Final = 22 * PER_SECOND
"""`BEFORE` for a client with heartbeats only"""
ASSIGNMENT: Final = "QueryAssignment"
_ROUNDS: Final = frozenset((ASSIGNMENT, "Heartbeat"))
"""calls by a client timer"""
MAX_ENDPOINTS: Final = 1024
"""maximum connections of one host"""
MAX_ROUNDS: Final = 1024
"""maximum rounds of offsets of a connection kept as evidence"""
NEWEST: Final = 64
LEAST_WAIT_US: Final = LEAST * TICK // 1000
SLACK: Final = 1_000_000_000
"""maximum ns between the start or end of a pause and that of the request that its timer waited for
"""
WAITED: Final = (ANSWERED, UNANSWERED)
_ASKS: Final = OF_CLIENTS | {int(RequestCode.UNREGISTER_CLIENT)}
_STORED: Final = "stores its last offset before that", "stores offsets again"
_CALLED: Final = "makes its last call before that", "calls again"
_Round = tuple[int, str, int, int]
"""time, capture, packet, conversation of the first offset stored in a tick"""


@dataclass(slots=True)
class _Pause:
    """A period without client requests; ns."""

    begin: int
    end: int
    back: bool
    """requests followed it"""
    made_up: bool
    """offsets of one queue were then stored several times at once"""
    heard: bool
    """responses reached the client during it"""
    calls: bool
    """the client speaks gRPC"""
    rounds: list[_Round]
    dead: list[int] = field(default_factory=list)
    """times at which brokers closed its connections during it"""

    def span(self) -> tuple[int, int]:
        return self.begin, self.end


class _Endpoint:
    """One connection of a client."""

    __slots__ = (
        "answered", "asked", "assigns", "calls", "committed", "groups", "once", "rounds", "twice",
        "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls = False
        """a client timer makes gRPC calls on it"""
        self.assigns = False
        """it carries QueryAssignment calls"""
        self.asked = Ticks()
        self.answered = Ticks()
        self.committed = Ticks()
        self.twice = Ticks()
        """ticks at which the offset of one queue was stored more than once"""
        self.once: dict[tuple[str | None, str | None, int | None], Ticks] = {}
        self.rounds: dict[int, _Round] = {}
        self.groups: set[str] = set()
        self.waits: list[tuple[int, int | None]] = []
        """start and end of long waits; None: no response"""

    def add(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add requests."""
        self.asked.add({row.request_time // TICK for row in rows if row.request_time is not None})
        # None if a response is missing: such a request may have waited for any time.
        slowest = slowest_of(rows)
        if slowest is None or slowest >= LEAST_WAIT_US:
            self.add_waits(rows)

    def add_waits(self, rows: Sequence[ExchangeRecord]) -> None:
        """Record requests with a long wait: the client timer waits for some of them."""
        for row in rows:
            latency = row.latency_us
            if row.status not in WAITED or (latency is not None and latency < LEAST_WAIT_US):
                continue
            # Long polls wait on purpose, and no timer waits for them.
            is_timed = row.request_time is not None and row.request_name not in LONG_POLLS
            if is_timed and len(self.waits) < MAX_ROUNDS:
                self.waits.append((row.request_time or 0, row.response_time))

    def add_fetches(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add fetch requests, whose response times are relevant as well."""
        self.add(rows)
        self.answered.add(
            {row.response_time // TICK for row in rows if row.response_time is not None}
        )

    def add_commits(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add requests that store offsets."""
        self.add(rows)
        for row in rows:
            if row.request_time is None:
                continue
            tick = row.request_time // TICK
            self.committed.add((tick,))
            queue = row.group, row.topic, row.queue_id
            once = self.once.get(queue) or state_in(self.once, queue, Ticks, MAX_ROUNDS)
            if once is None:
                continue
            # Two rounds at once: the timer made up for those that it missed.
            if tick in once or tick - 1 in once or tick + 1 in once:
                self.twice.add((tick - 1, tick, tick + 1))
            once.add((tick,))
            # Only neighbors matter: what is older than half an hour needs no memory.
            once.forget()
            self._note_round(row, tick)
        if len(self.rounds) > MAX_ROUNDS:
            self._forget()

    def add_calls(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add gRPC calls; calls by a timer are rounds."""
        self.add_fetches([row for row in rows if row.request_name in RECEIVE_CALLS])
        self.add([row for row in rows if row.request_name not in RECEIVE_CALLS])
        for row in rows:
            if row.request_name not in _ROUNDS or row.request_time is None:
                continue
            tick = row.request_time // TICK
            self.committed.add((tick,))
            self._note_round(row, tick)
            self.calls = True
            self.assigns = self.assigns or row.request_name == ASSIGNMENT
        if len(self.rounds) > MAX_ROUNDS:
            self._forget()

    def _note_round(self, row: ExchangeRecord, tick: int) -> None:
        one = row.request_time or 0, row.capture, row.request_packet or 0, row.conversation
        self.rounds[tick] = min(one, self.rounds.get(tick, one))
        if row.group and len(self.groups) < MAX_ROUNDS:
            self.groups.add(row.group)

    def alone(self) -> tuple[int, int]:
        """Return the required silent ticks, and how many ticks before must have two rounds."""
        if not self.calls:
            return LEAST_ALONE, BEFORE
        return (LEAST_CALLS, BEFORE) if self.assigns else (LEAST_BEATS, BEFORE_BEATS)

    def _forget(self) -> None:
        """Drop rounds that are no evidence: those in a regular rhythm."""
        every = sorted(self.rounds)
        kept = {round_ for round_ in every if round_ in self.twice}
        kept.update(
            round_ for pair in pairwise(every) if pair[1] - pair[0] >= LEAST for round_ in pair
        )
        # Rounds of a pause that is not over yet have no successor to prove it.
        kept.update(every[-NEWEST:])
        self.rounds = {round_: self.rounds[round_] for round_ in sorted(kept)[-MAX_ROUNDS:]}


class _Fold(Fold):
    """Clients of one host."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._endpoints: dict[str, _Endpoint] = {}
        self._stalls: dict[str, list[tuple[int, int]]] = {}
        """endpoint -> periods of unacknowledged packets on its connection"""
        self._ended: dict[str, int] = {}
        """endpoint -> when its connection was closed; 0: by the client"""

    def adder_of(self, flow: Flow) -> Add:
        """Return the function that adds requests of one connection."""
        endpoint = state_in(self._endpoints, flow.client_address, _Endpoint, MAX_ENDPOINTS)
        if endpoint is None:
            return ignore  # there are too many connections
        if flow.request_code is None:
            return endpoint.add_calls
        if flow.request_code == COMMIT:
            return endpoint.add_commits
        return endpoint.add_fetches if flow.request_code in FETCHES else endpoint.add

    def add_connection(self, row: ConversationRecord) -> None:
        if row.end != tcp.OPEN and len(self._ended) < MAX_ENDPOINTS:
            self._ended[row.client_address] = _ended_at(row)
        stalls = [(stall.first, stall.last) for stall in stalls_in(row)]
        if stalls and len(self._stalls) < MAX_ENDPOINTS:
            self._stalls.setdefault(row.client_address, []).extend(stalls)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the periods in which a client stood still, per spell."""
        ended = self._ended | {
            row.client_address: _ended_at(row) for row in self.unended if row.end != tcp.OPEN
        }
        by_client: dict[str, list[str]] = {}
        for endpoint in sorted(self._endpoints):
            by_client.setdefault(context.clients.get(endpoint, endpoint), []).append(endpoint)
        for client, endpoints in sorted(by_client.items()):
            groups = {name for one in endpoints for name in self._endpoints[one].groups}
            if not groups or groups & context.pulling:
                continue  # applications of pull consumers store offsets at any time
            pauses = list(self._pauses(endpoints, ended, context))
            name = context.client(client) if client in self._endpoints else client
            for found in spells(pauses, _Pause.span, self.lasts):
                yield _case(name, sorted(groups), found)

    def _pauses(
        self, endpoints: list[str], ended_at: Mapping[str, int], context: Context
    ) -> Iterator[_Pause]:
        asked, answered = Ticks(), Ticks()
        for one in endpoints:
            asked.merge(self._endpoints[one].asked)
            answered.merge(self._endpoints[one].answered)
        stalls = [stall for name in endpoints for stall in self._stalls.get(name, ())]
        waits = [wait for name in endpoints for wait in self._endpoints[name].waits]
        waits += [
            (row.request_time, None)
            for row in self.pending
            if row.client_address in endpoints and row.request_time is not None
            if row.request_name not in LONG_POLLS
        ]
        for row in self.unended:
            if row.client_address in endpoints:
                stalls += [(stall.first, stall.last) for stall in stalls_in(row)]
        pauses: set[int] = set()
        for name in endpoints:
            state = self._endpoints[name]
            if not state.groups:
                continue
            committed = list(state.committed)
            last = committed[-1]
            ends = [two for one, two in pairwise((0, *committed)) if two - one >= LEAST]
            # Of a client that was seen for more than twelve days, the end is not known.
            seen = None if asked.full or state.committed.full else context.last_time
            if seen is not None and name not in ended_at and seen // TICK - last >= LEAST:
                ends.append(seen // TICK)
            for end in ends:
                pause = _pause(state, asked, answered, end, last)
                # Each connection of the client ends the same pause: it counts once.
                if pause is None or pause.begin in pauses:
                    continue
                if any(a <= pause.end and b >= pause.begin for a, b in stalls):
                    continue  # its packets were lost
                if any(_covers(wait, pause) for wait in waits):
                    continue  # its timer waited for a broker
                pauses.add(pause.begin)
                ended = [ended_at.get(name, 0) for name in endpoints]
                pause.dead = [time for time in ended if pause.begin < time < pause.end]
                yield pause


def _covers(wait: tuple[int, int | None], pause: _Pause) -> bool:
    """Return whether a request waited from the start to the end of a pause."""
    begin, end = wait
    ends_then = end is None or end >= pause.end - SLACK
    return abs(begin - pause.begin) <= SLACK and ends_then


def _ended_at(row: ConversationRecord) -> int:
    """Return when a server closed a connection; 0: the client closed it."""
    return left_at(row) if row.ended_by == tcp.SERVER else 0


def _pause(state: _Endpoint, asked: Ticks, answered: Ticks, end: int, last: int) -> _Pause | None:
    """Return the silence of all connections of a client up to a tick, if it is significant.

    `last` is the tick of the last round of offsets.
    """
    before = asked.last_before(end)
    if before is not None and before == end - 1:
        end = before  # it was active until the end of a tick
        before = asked.last_before(end)
    if before is None or end - before < LEAST:
        return None
    back = end <= last
    made_up = back and (end in state.twice or end + 1 in state.twice)
    heard = (answered.last_before(end) or 0) > before
    round_before = state.committed.last_before(before + 1)
    in_rhythm = False
    alone, rhythm = state.alone()
    if round_before is not None:
        earlier = state.committed.last_before(round_before - APART)
        in_rhythm = earlier is not None and earlier >= before - rhythm
    # Without two rounds right before, the timer may not have run yet, and the silence is none. What
    # was made up for proves the pause; otherwise it must outlast every usual gap.
    if not (in_rhythm or (heard and made_up)) or not (made_up or end - before >= alone):
        return None
    rounds = [state.rounds[one] for one in (end, end + 1) if back and one in state.rounds][:1]
    until = rounds[0][0] if rounds else end * TICK
    if round_before in state.rounds:
        rounds.insert(0, state.rounds[round_before])
    return _Pause((before + 1) * TICK, until, back, made_up, heard, state.calls, rounds)


def _case(client: str, groups: list[str], pauses: list[_Pause]) -> Case:
    tally = Tally()
    for pause in pauses:
        for time, capture, packet, conversation in pause.rounds:
            did = _CALLED if pause.calls else _STORED
            said = f"{client} {did[time >= pause.end]}"
            evidence = Evidence(capture, packet or None, time, conversation, said)
            tally.add(evidence, count=0)
    longest = max(pauses, key=lambda pause: pause.end - pause.begin)
    length = duration(longest.end - longest.begin)
    when = f"from {period(longest.begin, longest.end)} UTC ({length})"
    how = ", then committed all overdue offsets at once" if longest.made_up else ""
    case = tally.case(
        f"consumer {client} of {called('group', groups)} hung: it sent no requests"
        f" {when}{and_again(pauses)}{how}",
        Subject(client=client, group=only(groups)),
    )
    case.grpc = all(pause.calls for pause in pauses)
    case.count = len(pauses)
    case.cover([pause.span() for pause in pauses])
    case.state = ProblemState.OVER if all(pause.back for pause in pauses) else ProblemState.GOING_ON
    if len(pauses) > 1:
        spans = (period(pause.begin, pause.end) for pause in pauses[:8])
        case.details.append(f"it sent nothing from {', '.join(spans)} UTC")
    if any(pause.heard for pause in pauses):
        case.details.append("responses reached its host meanwhile: the network worked")
    if dead := [time for pause in pauses for time in pause.dead]:
        case.details.append(
            f"a broker considered it dead at {clock(min(dead))} UTC and ended its connection"
        )
    if not all(pause.heard and pause.made_up for pause in pauses):
        case.doubt(
            "nothing was sent to it meanwhile, so its network may have failed"
            if not all(pause.heard for pause in pauses)
            else "only its silence is visible"
        )
    return case


def _host(row: ExchangeRecord) -> str:
    return host_of(row.client_address)


def _host_of_caller(row: ExchangeRecord) -> str | None:
    return host_of(row.client_address) if row.request_code is None else None


RULE = DiagnosisRule(
    id="client-hung",
    severity=ProblemSeverity.WARNING,
    title="A consumer's process hangs for seconds while its connections stay open",
    searched=(
        "consumer stops consuming for a while",
        "consumer hang",
        "stop the world",
        "long GC pause consumer",
    ),
    proof=(
        "A consumer that commits its offsets every 5 s sends no requests for 8 s or longer, then"
        " commits one queue's offset several times within a second. Or it sends none for 35 s,"
        " although members request the member list every 20 s and send heartbeats every 30 s. With"
        " gRPC: no call for 15 s from a push consumer that calls QueryAssignment every 5 s, or for"
        " 25 s from one that sends a Heartbeat every 10 s. No packet to it stays unacknowledged."
    ),
    explanation=(
        "The whole program was paused, not only the code that handles messages: a timer of the"
        " client stores the offsets independently of that code. Possible causes are a long garbage"
        " collection, a paused virtual machine or container, CPU throttling, swapping, or a"
        " debugger. The operating system keeps the connections open, so broker and other members"
        " notice nothing: its queues are not reassigned, and their messages wait."
    ),
    advice=(
        "Look for pauses of that program at that time: garbage collection log (safepoints), CPU"
        " throttling of the container, the hypervisor, swapping. A broker assigns the queues of a"
        " silent client to other members only after 120 s."
    ),
    grpc_explanation=(
        "The whole program was paused, not only the code that handles messages: a timer of the"
        " client sends heartbeats independently of that code. Possible causes are a long garbage"
        " collection, a paused virtual machine or container, CPU throttling, swapping, or a"
        " debugger. The operating system keeps the connections open, so the proxy notices nothing:"
        " the messages that the program holds wait, and other members do not get them."
    ),
    grpc_advice=(
        "Look for pauses of that program at that time: garbage collection log (safepoints), CPU"
        " throttling of the container, the hypervisor, swapping. A proxy gives the messages of a"
        " silent client to other members only after 120 s (channelExpiredTimeout)."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_host, requests=_ASKS, of_flow=True),
        Exchanges(key=_host_of_caller, of_flow=True),
    ),
    connections=lambda row: host_of(row.client_address) if row.commands else None,
    takes_pending=True,
    limits=(
        "A shorter silence, or one that ends differently, is not detected. A relay that holds"
        " packets back looks the same. Consumers that store no offsets (broadcasting, POP) and pull"
        " consumers, which store them when they want, are ignored. So are producers: they may have"
        " nothing to send."
    ),
    needs={Need.PULLS, Need.GROUPS, Need.CONNECTIONS},
    rests_on_absence=True,
)
