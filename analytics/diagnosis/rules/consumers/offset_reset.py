"""An administrator resets the offsets of a group: messages are skipped, or delivered again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.ext_fields import following_in, offsets_in
from dissectors.rows.record import ONEWAY, ExchangeRecord

from ...context import Context, Need
from ...keys import SUCCESS, Add, Flow, joined_key, parts_of, state_in
from ...names import only
from ...problem import (
    Case,
    Evidence,
    Impact,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    place_of,
    time_of,
)
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...spells import spells

MAX_QUEUES: Final = 1_024
MAX_RESETS: Final = 1_024
MAX_PULLS: Final = 16
"""maximum pulls of one queue, the latest; those with messages that continue each other are one"""
WITHIN: Final = 60_000_000_000
"""ns from a reset to its effect: consumers pause for 10 s, and a long poll takes up to 30 s"""
MOST_NAMED: Final = 8
OFFSET_RESET: Final = "OFFSET_RESET"
"""GetMessageStatus.OFFSET_RESET: the broker redirects a pull to the new offset (5.x)"""
RESETS: Final = frozenset(
    (
        int(RequestCode.RESET_CONSUMER_CLIENT_OFFSET),
        int(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET),
        int(RequestCode.RESET_CONSUMER_OFFSET_IN_BROKER),
        int(RequestCode.RESET_CONSUMER_OFFSET_IN_CONSUMER),
    )
)
MOVED: Final = int(ResponseCode.PULL_OFFSET_MOVED)


class _Queue(NamedTuple):
    address: str
    """broker `address:port`"""
    number: int


@dataclass(slots=True, order=True)
class _Pulled:
    """A pull of a queue, or several with messages that each continue the previous one."""

    first: int
    """time of the first one, ns; of its response if the broker redirected it after a reset"""
    last: int
    offset: int
    following: int
    """next fetch offset of the last one"""
    is_redirected: bool
    client: str
    """`address:port`"""
    capture: str
    packet: int
    """of the first one; 0: unknown"""
    conversation: int

    def has_taken(self, other: _Pulled) -> bool:
        """Add a later pull if it continues at the offset reached; return whether it does."""
        # Rows come by flow: those of a reset may be missing still. They are between pulls without
        # messages, which stay at an offset, but not between those that continue each other.
        continues = self.offset < self.following == other.offset < other.following
        if not continues or self.is_redirected or other.is_redirected:
            return False
        if self.client != other.client:
            return False
        self.last, self.following = other.last, other.following
        return True

    def is_idle_at(self, other: _Pulled) -> bool:
        """Return whether it found no message, at the offset of another pull of its client."""
        found = self.following - self.offset or self.is_redirected
        return not found and (self.offset, self.client) == (other.offset, other.client)

    def contains(self, other: _Pulled) -> bool:
        """Return whether a pull is one of these, although it was added late."""
        return other.last <= self.last and self.offset <= other.offset <= self.following

    def evidence(self, number: int) -> Evidence:
        """Return the first pull as evidence."""
        what = f"queue {number} pulled from offset {self.offset}"
        if self.is_redirected:
            what += f", redirected to {self.following}"
        return Evidence(self.capture, self.packet or None, self.first, self.conversation, what)


class _Jump(NamedTuple):
    """The first pull of a queue at another offset than the one reached before."""

    before: int
    after: int
    evidence: Evidence


class _Pulls:
    """Pulls of one queue."""

    def __init__(self) -> None:
        self._pulls: list[_Pulled] = []
        self._latest: _Pulled | None = None

    def has_taken(self, row: ExchangeRecord, offset: int) -> bool:
        """Add a pull with messages if it continues the latest one; return whether it does.

        Almost all pulls do: no object is made for them.
        """
        latest, time = self._latest, row.request_time
        if latest is None or latest.following != offset or time is None or time < latest.last:
            return False
        following = following_in(row.facts)
        if following is None or not latest.offset < offset < following or latest.is_redirected:
            return False
        if latest.client != row.client_address:
            return False
        latest.last, latest.following = time, following
        return True

    def add(self, pull: _Pulled) -> None:
        """Add a pull."""
        self._latest = pull
        pulls = self._pulls
        # An idle consumer polls the same offset all day: otherwise, its polls would push out the
        # pulls around a reset.
        if len(pulls) > 1 and all(one.is_idle_at(pull) for one in (*pulls[-2:], pull)):
            pulls.pop()  # the first and the last of them show the same
        pulls.append(pull)
        if len(pulls) > 2 * MAX_PULLS:
            # By their ends: whatever ended before those that are kept is dropped.
            self._pulls = sorted(self.joined(), key=lambda one: one.last)[-MAX_PULLS:]
            self._latest = None

    def joined(self) -> list[_Pulled]:
        """Return the pulls by time; those with messages that continue each other are one."""
        joined: list[_Pulled] = []
        for pull in sorted(self._pulls):
            if not joined or not (joined[-1].has_taken(pull) or joined[-1].contains(pull)):
                joined.append(replace(pull))
        return joined

    def jump(self, queue: _Queue, since: int, until: int) -> _Jump | None:
        """Return the first jump between two times, ns; None also if several clients pulled."""
        reached: int | None = None
        pulls = self.joined()
        # A new owner starts at the stored offset, which also looks like a jump.
        if len({pull.client for pull in pulls if pull.last >= since and pull.first <= until}) > 1:
            return None
        for pull in pulls:
            if since <= pull.first <= until:
                if reached is not None and pull.offset != reached:
                    return _Jump(reached, pull.offset, pull.evidence(queue.number))
                if pull.is_redirected and pull.following != pull.offset:
                    return _Jump(pull.offset, pull.following, pull.evidence(queue.number))
            reached = pull.following
        return None


class _Reset(NamedTuple):
    time: int
    evidence: Evidence
    address: str | None
    """broker `address:port`"""


class _Fold(Fold):
    """One group and topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._resets: list[_Reset] = []
        self.queues: dict[_Queue, _Pulls] = {}

    def adder_of(self, flow: Flow) -> Add:
        return self._add_resets if flow.request_code in RESETS else self._add_pulls

    def _add_resets(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            if row.response_code == SUCCESS or row.status == ONEWAY:
                # The others may go to a consumer: then the server of the row is no broker.
                of_broker = row.request_code == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
                address = row.server_address if of_broker else None
                what = (
                    f"{row.client_address} sends {row.request_name} for {row.group} and {row.topic}"
                )
                self._note(_Reset(time_of(row), asked(row, what), address))

    def _add_pulls(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add pulls of one flow."""
        server, queues = rows[0].server_address, self.queues
        for row in rows:
            number, offset = row.queue_id, row.queue_offset
            if number is None or number < 0 or offset is None:
                continue
            queue = _Queue(server, number)
            pulls = queues.get(queue) or state_in(queues, queue, _Pulls, MAX_QUEUES)
            if pulls is None:
                continue
            if row.response_code == MOVED or not pulls.has_taken(row, offset):
                self._add_pull(row, offset, number, pulls)

    def _add_pull(self, row: ExchangeRecord, offset: int, number: int, pulls: _Pulls) -> None:
        following = offsets_in(row.facts)[1]
        if following is None:
            return
        is_redirected = row.response_code == MOVED and OFFSET_RESET in (row.remark or "")
        # A pull that waited at the broker was sent before the reset: only its response shows it.
        time = (row.response_time if is_redirected else row.request_time) or 0
        packet = (row.response_packet if is_redirected else row.request_packet) or 0
        place = row.client_address, row.capture, packet, row.conversation
        pull = _Pulled(time, time, offset, following, is_redirected, *place)
        if is_redirected:
            self._note(_Reset(time, pull.evidence(number), row.server_address))
        pulls.add(pull)

    def _note(self, reset: _Reset) -> None:
        self._resets.append(reset)
        if len(self._resets) > 2 * MAX_RESETS:
            self._resets.sort(key=_place)
            del self._resets[MAX_RESETS:]

    def cases(self, context: Context) -> Iterable[Case]:
        resets = sorted(self._resets, key=_place)[:MAX_RESETS]
        for spell in spells(resets, lambda reset: (reset.time, reset.time), self.lasts):
            yield self._case(spell, context)

    def _jumps(self, since: int, until: int, context: Context) -> dict[tuple[str, int], _Jump]:
        """Return the jump of each queue by broker and number, where it is certain."""
        found: dict[tuple[str, int], list[_Jump | None]] = {}
        for queue, pulls in sorted(self.queues.items()):
            place = context.broker(queue.address), queue.number
            found.setdefault(place, []).append(pulls.jump(queue, since, until))
        return {
            place: jumps[0]
            for place, jumps in found.items()
            # A broker's master and slave, or a relay in front of it, have its name: if the queue
            # was pulled from both, both must show the same.
            if jumps[0] is not None and len({jump and jump[:2] for jump in jumps}) == 1
        }

    def _case(self, spell: list[_Reset], context: Context) -> Case:
        group, topic = parts_of(self.key)
        jumps = self._jumps(spell[0].time, spell[-1].time + WITHIN, context)
        if group in context.broadcasting:  # each member has offsets of its own
            jumps = {}
        skipped = sum(max(0, jump.after - jump.before) for jump in jumps.values())
        again = sum(max(0, jump.before - jump.after) for jump in jumps.values())
        effects = [
            text
            for count, text in (
                (skipped, f"{counted(skipped, 'message')} skipped"),
                (again, f"up to {counted(again, 'message')} redelivered"),
            )
            if count
        ]
        tally = Tally.of(reset.evidence for reset in spell)
        for jump in jumps.values():
            if jump.evidence not in tally.evidence:
                tally.add(jump.evidence)
        brokers = {context.broker(reset.address) for reset in spell if reset.address is not None}
        case = tally.case(
            f"an administrator reset the offsets of {group} in {topic}"
            f"{': ' if effects else ''}{', '.join(effects)}",
            Subject(broker=only(brokers), topic=topic or None, group=group or None),
        )
        case.count = skipped + again or len(spell)
        case.impact = {Impact.SKIPPED: skipped, Impact.REDELIVERED: again}
        if not skipped:
            case.severity = ProblemSeverity.INFO
        case.details = [
            f"queue {number} of {broker}: offset {jump.before:,} → {jump.after:,}"
            for (broker, number), jump in sorted(jumps.items())[:MOST_NAMED]
        ]
        if not jumps:
            case.details.append(
                "the capture does not show how many messages that skips or redelivers"
            )
        return case


def _place(reset: _Reset) -> tuple[int, str, int, int, str]:
    return place_of(reset.evidence)


def _key(row: ExchangeRecord) -> str | None:
    return joined_key(row.group, row.topic) if row.group and row.topic else None


RULE = DiagnosisRule(
    id="offset-reset",
    severity=ProblemSeverity.WARNING,
    title="An administrator resets the offsets of a group",
    searched=(
        "resetOffsetByTime",
        "skipAccumulatedMessage",
        "OFFSET_RESET",
        "messages skipped after an offset reset",
    ),
    proof=(
        "A successful INVOKE_BROKER_TO_RESET_OFFSET (222), a RESET_CONSUMER_CLIENT_OFFSET (220)"
        " from a broker to a consumer, or a response to a pull with OFFSET_RESET in its remark."
        " Pulls that continue at another offset afterwards show how many messages were skipped or"
        " are redelivered."
    ),
    explanation=(
        "mqadmin resetOffsetByTime or skipAccumulatedMessage, or the dashboard, told the brokers to"
        " move the group to the offsets of a point in time. A broker before 5.2 passes them to the"
        " consumers, which stop for about 10 s and continue there. A later one stores them and"
        " redirects the next pull."
    ),
    advice=(
        "Find out who runs mqadmin or the dashboard at the client address of the request. To get"
        " skipped messages back, reset the group to a time before the first skipped message:"
        " mqadmin resetOffsetByTime -s TIME. Use ACLs to restrict who can reset offsets."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests=RESETS, of_flow=True),
        Exchanges(key=_key, requests=FETCHES, statuses={"answered"}, of_flow=True),
    ),
    limits=(
        "With brokers before 5.2, mqadmin resets a group without members by committing offsets"
        " (15), which looks like a consumer. The message counts include messages that do not match"
        " the subscription."
    ),
    needs={Need.GROUPS},
)
