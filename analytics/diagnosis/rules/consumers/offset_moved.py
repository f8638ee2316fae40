"""A consumer requests an offset that the queue does not have; the broker corrects it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.row_facts.ext_fields import offsets_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import joined_key, keep, parts_of
from ...names import only
from ...problem import Case, ProblemSeverity, Subject, Tally, end_of, shown
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...spells import MAX_INTERVALS, Parts, span_of, spells
from .offset_reset import MOVED, OFFSET_RESET

MAX_QUEUES: Final = 1024
TOO_SMALL: Final = "OFFSET_TOO_SMALL"
"""GetMessageStatus.OFFSET_TOO_SMALL"""
_Offsets = tuple[int | None, int | None, int | None, int | None]


class _Moved:
    """Pulls in one spell."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.queues: dict[tuple[str, int], tuple[int, _Offsets]] = {}
        """(broker address, queue) -> time and offsets of the last response"""
        self.clients: set[str] = set()

    def join(self, other: _Moved) -> None:
        """Merge the pulls of another period."""
        self.tally.merge(other.tally)
        for queue, item in other.queues.items():
            self._note(queue, item)
        self.clients |= other.clients

    def _note(self, queue: tuple[str, int], response: tuple[int, _Offsets]) -> None:
        before = self.queues.get(queue)
        if before is None:
            if len(self.queues) < MAX_QUEUES:
                self.queues[queue] = response
        elif _order(response) > _order(before):  # None cannot be compared
            self.queues[queue] = response

    def add(self, row: ExchangeRecord) -> None:
        """Add a pull."""
        asked, following, least, most = offsets_in(row.facts)
        goes = f", continue at {following}" if following is not None else ""
        has = f"; the queue has {least} to {most}" if least is not None and most is not None else ""
        self.tally.add(
            shown(
                row,
                f"pull of queue {row.queue_id} at offset {asked} -> {row.response_name}:"
                f" {row.remark or 'no remark'}{goes}{has}",
            )
        )
        queue = (row.server_address, row.queue_id if row.queue_id is not None else -1)
        self._note(queue, (row.response_time or 0, (asked, following, least, most)))
        keep(self.clients, row.client_address, MAX_QUEUES)

    def span(self) -> tuple[int, int]:
        """Return the first and the last time."""
        return span_of(self.tally)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._moved: Parts[_Moved] = Parts(MAX_INTERVALS, lambda _: _Moved(), _Moved.join)

    def add_exchange(self, row: ExchangeRecord) -> None:
        self._moved.at(end_of(row), self.lasts).add(row)

    def cases(self, context: Context) -> Iterable[Case]:
        every = [moved for *_, moved in self._moved.items()]
        for spell in spells(every, _Moved.span, self.lasts):
            moved = _Moved()
            for part in spell:
                moved.join(part)
            yield self._case(moved, context)

    def _case(self, moved: _Moved, context: Context) -> Case:
        kind, group, topic = parts_of(self.key)
        kept = sorted(moved.queues.items())
        named = {context.broker(address) for address, _ in moved.queues}
        # A relay in front of a broker has its name, and would count each queue twice.
        queues = len({(context.broker(address), queue) for address, queue in moved.queues})
        where = f"{topic or '?'}" + (f" on {named.copy().pop()}" if len(named) == 1 else "")
        many = f"queue {kept[0][0][1]}" if queues == 1 else f"{queues} queues"
        severity = None
        details = []
        if kind == TOO_SMALL:
            lost = sum(
                max(0, (least if least is not None else following or 0) - asked)
                for _, (_, (asked, following, least, _)) in kept
                if asked is not None
            )
            title = (
                f"{group} asks {where} for messages that were already deleted, in {many}: {lost:,}"
                " messages were never consumed"
            )
        else:
            ends = [most for _, (_, (_, _, _, most)) in kept if most is not None]
            begins = [asked for _, (_, (asked, _, _, _)) in kept if asked is not None]
            at = f"at offset {max(begins):,}" if begins else "at an offset"
            end = " that the queue does not have"
            if ends:
                end = f" where the queue ends at {max(ends):,}"
            why = "the offset is outside the queue"
            # A pull consumer chooses its offset itself: no stored offset is at fault.
            if group in context.pulling:
                why = "its program asks for an offset that the queue does not have"
                severity = ProblemSeverity.WARNING
            title = f"{group} pulls {where} {at}{end}, in {many}: {why}"
        for (address, queue), (_, (asked, following, least, most)) in kept[:8]:
            details.append(
                f"{context.broker(address)} queue {queue}: asked for {asked}, has {least} to"
                f" {most}, redirected to {following}"
            )
        clients = {context.client(address) for address in moved.clients}
        case = moved.tally.case(
            title,
            Subject(
                broker=only(named),
                topic=topic or None,
                group=group or None,
                client=only(clients),
                queue=kept[0][0][1] if queues == 1 else None,
            ),
        )
        case.severity = severity
        case.details = details
        return case


def _order(response: tuple[int, _Offsets]) -> tuple[int, list[int]]:
    return response[0], [-1 if number is None else number for number in response[1]]


def _key(row: ExchangeRecord) -> str | None:
    remark = row.remark or ""
    # An administrator's reset uses the same code: `offset-reset` reports it.
    if OFFSET_RESET in remark:
        return None
    return joined_key(TOO_SMALL if TOO_SMALL in remark else "", row.group, row.topic)


RULE = DiagnosisRule(
    id="offset-moved",
    severity=ProblemSeverity.ERROR,
    title="A consumer asks for an offset that the queue does not have",
    searched=(
        "OFFSET_OVERFLOW_BADLY",
        "OFFSET_TOO_SMALL",
        "PULL_OFFSET_MOVED",
        "the pull request offset illegal",
        "fix the pull request offset",
    ),
    proof=(
        "Response code 21 (PULL_OFFSET_MOVED) to a pull. Its remark has the status of the store,"
        " and its header the bounds of the queue and the next offset."
    ),
    explanation=(
        "The group's stored offset lies outside the queue. OFFSET_TOO_SMALL: the messages were"
        " deleted, by age or because the disk was full, before the group read them; it cannot get"
        " them anymore. OFFSET_OVERFLOW_BADLY: the offset is beyond the end of the queue: the topic"
        " was deleted and created again, the broker lost data or was replaced, offsets were copied,"
        " or a slave with offsetCheckInSlave=true is far behind. A pull consumer may also request"
        " any offset. The consumer drops the queue, stores the offset from the response, and"
        " continues there; messages in between are skipped or consumed again."
    ),
    advice=(
        "Compare the offsets with mqadmin consumerProgress and topicStatus. Set the group's offset"
        " on purpose with mqadmin resetOffsetByTime. For deleted messages: consume faster, or keep"
        " them longer; fileReservedTime defaults to 72 hours, diskMaxUsedSpaceRatio to 75. A"
        " client before 5.2 waits 10 s before it continues, a later one continues immediately."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, requests=FETCHES, responses={MOVED}),),
    references=(
        "apache/rocketmq#7740",
        "apache/rocketmq#2181",
        "apache/rocketmq#10176",
        "apache/rocketmq#7634",
        "alibaba/rocketmq#210",
        "alibaba/rocketmq#512",
    ),
    limits="The capture does not show why the offset is wrong.",
    needs={Need.PULLS},
    consequence_of={"queue-truncated", "broker-name-twice"},
)
