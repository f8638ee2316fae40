"""A consumer's program stands still for seconds while its connections live.

Rules: consumers of Java store their offsets every 5 s by a timer that makes up for what it missed,
so several rounds at once after a silence prove that the program stood still. Without that only a
silence counts that no live consumer has: members ask for the group every 20 s and send heartbeats
every 30 s. What is kept of a connection is a bit for each eighth of a second, and its rounds of
stored offsets.
RocketMQ: MQClientInstance.startScheduledTask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from dissectors.endpoint import host_of
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import left_at, stalls_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.outcome import LONG_POLLS
from dissectors.rows.record import ANSWERED, UNANSWERED, ExchangeRecord

from ...context import Context
from ...keys import Add, Flow, flow_of, slowest_of
from ...need import Need
from ...problem import (
    Case,
    Confidence,
    Evidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    clock,
    period,
    seconds,
)
from ...refusals import called, only, times
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...spells import spells
from .active_ticks import PER_SECOND, TICK, Ticks

COMMIT: Final = int(RequestCode.UPDATE_CONSUMER_OFFSET)
LEAST: Final = 8 * PER_SECOND
"""ticks: one round of offsets, which is due every 5 s, and a good part of the next one"""
LEAST_ALONE: Final = 35 * PER_SECOND
"""ticks without anything where no rounds are made up for"""
APART: Final = 3 * PER_SECOND
"""ticks between two rounds at least"""
BEFORE: Final = 12 * PER_SECOND
"""ticks before a silence in which two rounds were seen"""
MAX_ENDPOINTS: Final = 1024
"""connections of one host that are looked at"""
MAX_ROUNDS: Final = 1024
"""rounds of offsets of a connection that are kept as evidence"""
NEWEST: Final = 64
LEAST_WAIT_US: Final = LEAST * TICK // 1000
SLACK: Final = 1_000_000_000
"""ns between the begin or end of a pause and that of the request that its timer waited for"""
WAITED: Final = (ANSWERED, UNANSWERED)
_ASKS: Final = (
    SENDS
    | FETCHES
    | frozenset(
        (
            RequestCode.HEART_BEAT,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            RequestCode.QUERY_CONSUMER_OFFSET,
            RequestCode.UPDATE_CONSUMER_OFFSET,
            RequestCode.CONSUMER_SEND_MSG_BACK,
            RequestCode.LOCK_BATCH_MQ,
            RequestCode.GET_MAX_OFFSET,
            RequestCode.GET_MIN_OFFSET,
            RequestCode.QUERY_ASSIGNMENT,
            RequestCode.ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
            RequestCode.UNREGISTER_CLIENT,
        )
    )
)
_Round = tuple[int, str, int, int]
"""time, capture, packet, conversation of the first offset that was stored in a tick"""


@dataclass(slots=True)
class _Pause:
    """A time in which a client asked nothing; ns."""

    begin: int
    end: int
    back: bool
    """it asked again afterwards"""
    made_up: bool
    """it then stored offsets of one queue several times at once"""
    heard: bool
    """answers reached it meanwhile"""
    rounds: list[_Round]
    dead: list[int] = field(default_factory=list)
    """when brokers ended its connections meanwhile"""

    def span(self) -> tuple[int, int]:
        return self.begin, self.end


class _Endpoint:
    """One connection of a client."""

    __slots__ = (
        "answered", "asked", "committed", "groups", "once", "open", "rounds", "twice", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.asked = Ticks()
        self.answered = Ticks()
        self.committed = Ticks()
        self.twice = Ticks()
        """ticks around which the offset of one queue was stored more than once"""
        self.once: dict[tuple[str | None, str | None, int | None], Ticks] = {}
        self.rounds: dict[int, _Round] = {}
        self.groups: set[str] = set()
        self.waits: list[tuple[int, int | None]] = []
        """when requests began to wait for long, and until when; None: without response"""
        self.open = True
        """its end was not seen"""

    def add(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take requests."""
        self.asked.add({row.request_time // TICK for row in rows if row.request_time is not None})
        slowest = slowest_of(rows)
        if slowest is None or slowest >= LEAST_WAIT_US:
            self.add_waits(rows)

    def add_waits(self, rows: Sequence[ExchangeRecord]) -> None:
        """Note which requests waited for long: the timer of the client waits for some of them."""
        for row in rows:
            latency = row.latency_us
            if row.status not in WAITED or (latency is not None and latency < LEAST_WAIT_US):
                continue
            told = row.request_time is not None and row.request_name not in LONG_POLLS
            if told and len(self.waits) < MAX_ROUNDS:
                self.waits.append((row.request_time or 0, row.response_time))

    def add_fetches(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take requests for messages; when they were answered tells more than of others."""
        self.add(rows)
        self.answered.add(
            {row.response_time // TICK for row in rows if row.response_time is not None}
        )

    def add_commits(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take requests that store offsets."""
        self.add(rows)
        for row in rows:
            if row.request_time is None:
                continue
            tick = row.request_time // TICK
            self.committed.add((tick,))
            queue = row.group, row.topic, row.queue_id
            once = self.once.get(queue)
            if once is None:
                if len(self.once) >= MAX_ROUNDS:
                    continue
                once = self.once[queue] = Ticks()
            if tick in once or tick - 1 in once or tick + 1 in once:
                self.twice.add((tick - 1, tick, tick + 1))
            once.add((tick,))
            once.forget()
            one = row.request_time, row.capture, row.request_packet or 0, row.conversation
            self.rounds[tick] = min(one, self.rounds.get(tick, one))
            if row.group and len(self.groups) < MAX_ROUNDS:
                self.groups.add(row.group)
        if len(self.rounds) > MAX_ROUNDS:
            self._forget()

    def _forget(self) -> None:
        """Let go of rounds that are no evidence: those of a rhythm that was kept."""
        every = sorted(self.rounds)
        kept = {one for one in every if one in self.twice}
        kept.update(one for pair in pairwise(every) if pair[1] - pair[0] >= LEAST for one in pair)
        kept.update(every[-NEWEST:])
        self.rounds = {one: self.rounds[one] for one in sorted(kept)[-MAX_ROUNDS:]}


class _Fold(Fold):
    """Clients of one host."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._endpoints: dict[str, _Endpoint] = {}
        self._stalls: dict[str, list[tuple[int, int]]] = {}
        """endpoint -> times in which packets of its connection were not acknowledged"""
        self._ended: dict[str, int] = {}
        """endpoint -> when its connection was ended; 0: by the client"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.adder_of(flow_of(row))((row,))

    def adder_of(self, flow: Flow) -> Add:
        """Return what takes requests of one connection."""
        one = self._endpoints.get(flow.requester)
        if one is None:
            if len(self._endpoints) >= MAX_ENDPOINTS:
                return _pass_over
            one = self._endpoints[flow.requester] = _Endpoint()
        if flow.request_code == COMMIT:
            return one.add_commits
        return one.add_fetches if flow.request_code in FETCHES else one.add

    def add_connection(self, row: ConversationRecord) -> None:
        if row.end != tcp.OPEN and len(self._ended) < MAX_ENDPOINTS:
            self._ended[row.client] = _ended_at(row)
        stalls = [(one.first, one.last) for one in stalls_in(row)]
        if stalls and len(self._stalls) < MAX_ENDPOINTS:
            self._stalls.setdefault(row.client, []).extend(stalls)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the times in which a client stood still, for each spell."""
        ended = self._ended | {
            row.client: _ended_at(row) for row in self.unended if row.end != tcp.OPEN
        }
        by_client: dict[str, list[str]] = {}
        for endpoint in sorted(self._endpoints):
            by_client.setdefault(context.clients.get(endpoint, endpoint), []).append(endpoint)
        for client, endpoints in sorted(by_client.items()):
            groups = {name for one in endpoints for name in self._endpoints[one].groups}
            if not groups or groups & context.pulling:
                continue  # programs of pull consumers store offsets when they want
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
        stalls = [one for name in endpoints for one in self._stalls.get(name, ())]
        waits = [one for name in endpoints for one in self._endpoints[name].waits]
        waits += [
            (row.request_time, None)
            for row in self.pending
            if row.requester in endpoints and row.request_time is not None
            if row.request_name not in LONG_POLLS
        ]
        for row in self.unended:
            if row.client in endpoints:
                stalls += [(one.first, one.last) for one in stalls_in(row)]
        found: set[int] = set()
        for name in endpoints:
            state = self._endpoints[name]
            if not state.groups:
                continue
            committed = list(state.committed)
            last = committed[-1]
            ends = [two for one, two in pairwise((0, *committed)) if two - one >= LEAST]
            seen = context.last_time
            if seen is not None and name not in ended_at and seen // TICK - last >= LEAST:
                ends.append(seen // TICK)
            for end in ends:
                pause = _pause(state, asked, answered, end, last)
                if pause is None or pause.begin in found:
                    continue
                if any(a <= pause.end and b >= pause.begin for a, b in stalls):
                    continue  # its packets were lost
                if any(_covers(wait, pause) for wait in waits):
                    continue  # its timer waited for a broker
                found.add(pause.begin)
                ended = [ended_at.get(one, 0) for one in endpoints]
                pause.dead = [one for one in ended if pause.begin < one < pause.end]
                yield pause


def _covers(wait: tuple[int, int | None], pause: _Pause) -> bool:
    """Return whether a request waited from the begin of a pause to its end."""
    begin, end = wait
    ends_then = end is None or end >= pause.end - SLACK
    return abs(begin - pause.begin) <= SLACK and ends_then


def _ended_at(row: ConversationRecord) -> int:
    """Return when a server ended a connection; 0: the client did."""
    return left_at(row) if row.ended_by == tcp.SERVER else 0


def _pause(state: _Endpoint, asked: Ticks, answered: Ticks, end: int, last: int) -> _Pause | None:
    """Return the silence of all connections of a client up to a tick, if it tells anything.

    `last` is the tick of the last round of offsets.
    """
    before = asked.last_before(end)
    if before is not None and before == end - 1:
        end = before  # it went on at the end of a tick
        before = asked.last_before(end)
    if before is None or end - before < LEAST:
        return None
    back = end <= last
    made_up = back and (end in state.twice or end + 1 in state.twice)
    heard = (answered.last_before(end) or 0) > before
    round_before = state.committed.last_before(before + 1)
    in_rhythm = False
    if round_before is not None:
        earlier = state.committed.last_before(round_before - APART)
        in_rhythm = earlier is not None and earlier >= before - BEFORE
    if not (in_rhythm or (heard and made_up)) or not (made_up or end - before >= LEAST_ALONE):
        return None
    rounds = [state.rounds[one] for one in (end, end + 1) if back and one in state.rounds][:1]
    until = rounds[0][0] if rounds else end * TICK
    if round_before in state.rounds:
        rounds.insert(0, state.rounds[round_before])
    return _Pause((before + 1) * TICK, until, back, made_up, heard, rounds)


def _pass_over(rows: Sequence[ExchangeRecord]) -> None:
    """Take nothing: there are too many connections."""


def _case(client: str, groups: list[str], pauses: list[_Pause]) -> Case:
    tally = Tally()
    for one in pauses:
        for time, capture, packet, conversation in one.rounds:
            which = "offsets again" if time >= one.end else "its last offset before that"
            said = f"{client} stores {which}"
            evidence = Evidence(capture, packet or None, time, conversation, said)
            tally.add(evidence, count=0)
    longest = max(pauses, key=lambda one: one.end - one.begin)
    again = f", and {times(len(pauses) - 1)} more" if len(pauses) > 1 else ""
    length = seconds(longest.end - longest.begin)
    when = f"from {period(longest.begin, longest.end)} UTC ({length})"
    how = ", then stored the offsets that were overdue all at once" if longest.made_up else ""
    case = tally.case(
        f"consumer {client} of {called('group', groups)} stood still: it asked nothing at all"
        f" {when}{again}{how}",
        Subject(client=client, group=only(groups)),
    )
    case.count = len(pauses)
    case.first_time = min(one.begin for one in pauses)
    case.last_time = max(one.end for one in pauses)
    case.spans = [one.span() for one in pauses]
    case.state = ProblemState.OVER if all(one.back for one in pauses) else ProblemState.GOING_ON
    if len(pauses) > 1:
        spans = (period(one.begin, one.end) for one in pauses[:8])
        case.details.append(f"it asked nothing from {', '.join(spans)} UTC")
    if any(one.heard for one in pauses):
        case.details.append("answers reached its host meanwhile: the network was well")
    if dead := [time for one in pauses for time in one.dead]:
        case.details.append(
            f"a broker took it for dead at {clock(min(dead))} UTC and ended its connection"
        )
    if not all(one.heard and one.made_up for one in pauses):
        case.confidence = Confidence.LIKELY
        case.reason = (
            "nothing was sent to it meanwhile, so that its network may have been at fault"
            if not all(one.heard for one in pauses)
            else "only that it was silent is seen"
        )
    return case


def _host(row: ExchangeRecord) -> str:
    return host_of(row.requester)


RULE = DiagnosisRule(
    id="client-hung",
    severity=ProblemSeverity.WARNING,
    title="A consumer's program stands still for seconds while its connections live",
    searched=(
        "consumer stops consuming for a while",
        "consumer hang",
        "stop the world",
        "long GC pause consumer",
    ),
    proof=(
        "A consumer that stores its offsets every 5 s asks nothing of any broker for 8 s or longer,"
        " and then stores those of one queue several times within a second. Or it asks nothing for"
        " 35 s, though members ask for their group every 20 s and send heartbeats every 30 s. Its"
        " packets were acknowledged meanwhile."
    ),
    explanation=(
        "The whole program stood still, not only the code that handles messages: a timer of the"
        " client stores the offsets whatever that code does. A long garbage collection, a paused"
        " virtual machine or container, a limit of CPU time, swapping or a debugger does that. The"
        " operating system keeps the connections, so that broker and other members of the group"
        " notice nothing: its queues are not given to others, and their messages wait."
    ),
    advice=(
        "Look for pauses of that program at that time: garbage collection log (safepoints),"
        " throttled CPU of the container, the hypervisor, swapping. A broker takes a silent client"
        " for dead, and gives its queues to other members, after 120 s only."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=_host, requests=_ASKS, of_flow=True),),
    connections=lambda row: host_of(row.client) if row.commands else None,
    takes_pending=True,
    limits=(
        "A silence that ends otherwise, or is shorter, is not seen. A relay between that holds"
        " packets back looks the same. Consumers that store no offsets (broadcasting, POP) and pull"
        " consumers, whose program stores them when it wants, are not judged, nor are producers:"
        " they may have nothing to send."
    ),
    needs=frozenset((Need.PULLS, Need.GROUPS, Need.CONNECTIONS)),
    rests_on_absence=True,
)
