"""A topic has fewer queues than before: messages left in the others are not delivered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.foreign import natural_of
from dissectors.quantities import counted
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import answered_route
from ...context import Context, Need
from ...keys import ROUTE, Add, Flow, keep, state_in, user_topic
from ...names import MAX_NAMED, listed
from ...problem import (
    Case,
    ProblemSeverity,
    Subject,
    Tally,
    clock,
    clock_after,
    end_of,
    shown,
)
from ...rule import PROXY_CHOOSES, DiagnosisRule, Exchanges, Fold

MAX_SIZES: Final = 64
"""maximum different queue counts of one broker"""
_CODES: Final = frozenset((int(ResponseCode.SYSTEM_ERROR), int(ResponseCode.INVALID_PARAMETER)))
_ILLEGAL: Final = re.compile(r"^queueId\[(\d{1,9})\] is illegal.*readQueueNums:\[(\d{1,9})\]")
"""PullMessageProcessor: a queue that the topic does not have"""


class _Broker:
    """Routes and refused pulls of one broker."""

    def __init__(self) -> None:
        self.first: dict[int, ExchangeRecord] = {}
        """number of read queues -> the first route with it"""
        self.last: dict[int, ExchangeRecord] = {}
        self.refused = Tally()
        self.queues: set[int] = set()
        """queues whose pulls were refused"""
        self.left = 0
        """queue count reported by the broker"""
        self.groups: set[str] = set()

    def take_route(self, queues: int, row: ExchangeRecord) -> None:
        """Add a route."""
        last = self.last.get(queues)
        if last is None:
            if len(self.last) < MAX_SIZES:
                self.first[queues] = self.last[queues] = row
            return
        end, before = end_of(row), end_of(last)
        if end > before:
            self.last[queues] = row
        elif end == before:
            self.last[queues] = max(last, row, key=_place)
        elif end <= end_of(first := self.first[queues]):
            self.first[queues] = min(first, row, key=_place)

    def take_refusal(self, row: ExchangeRecord, queue: int, left: int) -> None:
        """Add a pull of a nonexistent queue."""
        self.refused.add(shown(row))
        keep(self.queues, queue, MAX_NAMED)
        self.left = max(self.left, left)
        if row.group:
            keep(self.groups, row.group, MAX_NAMED)

    def reduction(self) -> tuple[int, int] | None:
        """Return the former and current queue counts; None if no route shows a reduction."""
        if not self.last:
            return None
        has = max(self.last, key=lambda item: _place(self.last[item]))
        time = end_of(self.first[has])
        # Only counts that were last seen before the current one: others are still returned.
        had = max((one for one, row in self.last.items() if end_of(row) <= time), default=has)
        return (had, has) if had > has > 0 else None


class _Fold(Fold):
    """One topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._routed: dict[tuple[str, str], _Broker] = {}
        """by name and NameServer: two of them may differ"""
        self._refusing: dict[str, _Broker] = {}
        """by address"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        match = _ILLEGAL.search(row.remark or "")
        queue, left = (natural_of(text) for text in match.groups()) if match else (None, None)
        broker = state_in(self._refusing, row.server_address, _Broker, MAX_NAMED)
        if broker is not None and queue is not None and left is not None:
            broker.take_refusal(row, queue, left)

    def adder_of(self, flow: Flow) -> Add:
        """Return the function that adds routes from one NameServer to one client."""
        namesrv = flow.server_address

        def add(rows: Sequence[ExchangeRecord]) -> None:
            facts: list[str] | None = None
            counts: list[tuple[_Broker, int]] = []
            for row in rows:
                if row.facts != facts:  # clients get the same response all the time
                    facts = row.facts
                    counts = [
                        (broker, routed.read_queues)
                        for routed in answered_route(row).brokers
                        if routed.perm is not None
                        and (broker := self._routed_at(namesrv, routed.name)) is not None
                    ]
                for broker, queues in counts:
                    broker.take_route(queues, row)

        return add

    def _routed_at(self, namesrv: str, name: str) -> _Broker | None:
        return state_in(self._routed, (name, namesrv), _Broker, MAX_NAMED)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case per broker with fewer queues than before or than requested."""
        refusing: dict[str, list[_Broker]] = {}
        for address, broker in sorted(self._refusing.items()):
            if broker.queues:
                refusing.setdefault(context.broker(address), []).append(broker)
        reduced: dict[str, _Broker] = {}
        for (name, _), broker in sorted(self._routed.items()):
            if broker.reduction() is not None:
                reduced.setdefault(name, broker)
        for name in sorted({*reduced, *refusing}):
            routed = reduced.get(name, _Broker())
            yield self._case(name, routed, routed.reduction(), refusing.get(name, []))

    def _case(
        self,
        name: str,
        routed: _Broker,
        reduced: tuple[int, int] | None,
        refused: list[_Broker],
    ) -> Case:
        tally = Tally()
        if reduced is not None:
            had, has = reduced
            for row, number in ((routed.last[had], had), (routed.first[has], has)):
                what = f"route of {self.key}: {name} has {counted(number, 'queue')} to read"
                tally.add(shown(row, what), count=0)
            left = f"{had - 1}" if had - has == 1 else f"{has} to {had - 1}"
            text = (
                f"{name} now has {counted(has, 'queue')} of topic {self.key} instead of {had}:"
                f" messages left in queue{'' if had - has == 1 else 's'} {left} are not delivered"
            )
        else:
            has = max(pull.left for pull in refused)
            queues = sorted({queue for pull in refused for queue in pull.queues})
            which = (
                f"queue {queues[0]}" if len(queues) == 1 else f"queues {queues[0]} to {queues[-1]}"
            )
            text = (
                f"consumers pull {which} of topic {self.key} that"
                f" {name} does not have: it has {counted(has, 'queue')}"
            )
        for pull in refused:
            tally.merge(pull.refused)
        pulls = tally.count
        tally.count = max(1, pulls)
        case = tally.case(text, Subject(broker=name, topic=self.key))
        if refused:
            groups = listed(group for pull in refused for group in pull.groups)
            case.details.append(f"{counted(pulls, 'pull')} of {groups or 'consumers'} refused")
        if reduced is None:
            case.doubt("no route shows that it had more queues before")
        else:
            before, after = end_of(routed.last[reduced[0]]), end_of(routed.first[reduced[1]])
            case.details.append(
                f"routes say {reduced[0]} until {clock(before)} and {reduced[1]} from"
                f" {clock_after(before, after)} UTC on"
            )
            case.details.append("the capture does not show whether messages are left there")
        return case


def _place(row: ExchangeRecord) -> tuple[int, str, int, int]:
    return end_of(row), row.capture, row.response_packet or 0, row.conversation


def _refused_topic(row: ExchangeRecord) -> str | None:
    return user_topic(row) if _ILLEGAL.search(row.remark or "") else None


RULE = DiagnosisRule(
    id="queues-reduced",
    severity=ProblemSeverity.WARNING,
    title=(
        "A topic has fewer queues than before, and messages in the removed ones are not delivered"
    ),
    searched=("queueId[N] is illegal", "readQueueNums", "updateTopic reduce queue number"),
    proof=(
        "Routes (105) of a topic name fewer read queues of a broker than before, or pulls get code"
        " 1 or 29 and `queueId[N] is illegal`."
    ),
    explanation=(
        "The number of queues of the topic was lowered (mqadmin updateTopic -r -w). Consumers"
        " divide only the queues in the route among themselves. No client pulls the removed queues"
        " anymore, and their messages wait until they are deleted. Clients with the old route keep"
        " using the old queues for up to 30 s and are refused."
    ),
    advice=(
        "Raise the number again, and let the groups consume the rest (mqadmin consumerProgress)."
        " Then lower it in two steps: first the write queues (-w), and the read queues (-r) once"
        " the removed ones are empty."
    ),
    grpc=PROXY_CHOOSES,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=user_topic,
            requests={ROUTE},
            responses={ResponseCode.SUCCESS},
            with_facts=True,
            of_flow=True,
        ),
        Exchanges(
            key=_refused_topic,
            requests=PULLS,
            responses=_CODES,
        ),
    ),
    limits=(
        "It is unknown whether messages are left in those queues, because no client pulls them"
        " anymore."
    ),
    lasts=None,
    needs={Need.ROUTES},
)
