"""A broker never answers a pull, although its connection gets other responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.remoting.row_facts.names import SUSPEND_MS
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import Case, ProblemSeverity, Subject, Tally, asked, clock, seconds
from ...refusals import counted, listed, only
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold

MAX_PULLS: Final = 4_096
MAX_CONNECTIONS: Final = 10_000
UNKNOWN_MS: Final = 30_000
"""ms that a broker holds a pull whose suspendTimeoutMillis is not known, at the most"""
SLACK_MS: Final = 7_000
"""ms after that in which a response is due: brokers look every 5 s, and may be late"""
_MS: Final = 1_000_000
_OTHERS: Final = frozenset(
    (
        RequestCode.HEART_BEAT,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.QUERY_CONSUMER_OFFSET,
    )
)
_Place = tuple[str, int]


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._waiting: list[ExchangeRecord] = []
        self._answered: dict[_Place, int] = {}
        """connection -> time of its last response, ns"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.add_exchanges((row,))

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        first = rows[0]
        if first.status == UNANSWERED:
            if first.request_code in PULLS:
                self._waiting += rows[: max(0, MAX_PULLS - len(self._waiting))]
            return
        for row in rows:
            place, time = (row.capture, row.conversation), row.response_time or 0
            before = self._answered.get(place)
            if before is None:
                if len(self._answered) < MAX_CONNECTIONS:
                    self._answered[place] = time
            elif time > before:
                self._answered[place] = time

    def cases(self, context: Context) -> Iterable[Case]:
        lost: dict[tuple[str, str, str], list[tuple[ExchangeRecord, int]]] = {}
        for row in self._waiting:
            until = self._answered.get((row.capture, row.conversation), 0)
            if row.request_time is not None and until - row.request_time >= _patience(row):
                place = context.broker(row.responder), row.group or "", row.topic or ""
                lost.setdefault(place, []).append((row, until))
        for (broker, group, topic), found in sorted(lost.items()):
            yield _case(broker, group, topic, found, context)


def _patience(row: ExchangeRecord) -> int:
    """Return the ns after which the broker should have answered a pull."""
    held = number_in(row.facts, SUSPEND_MS)
    return ((UNKNOWN_MS if held is None or held < 0 else held) + SLACK_MS) * _MS


def _case(
    broker: str,
    group: str,
    topic: str,
    found: list[tuple[ExchangeRecord, int]],
    context: Context,
) -> Case:
    tally = Tally()
    for row, until in found:
        tally.add(asked(row, f"pull of queue {row.queue_id} is never answered"), last=until)
    longest = max(until - (row.request_time or until) for row, until in found)
    queues = {row.queue_id for row, _ in found if row.queue_id is not None}
    clients = {context.client(row.requester) for row, _ in found}
    numbers = listed(str(one) for one in queues)
    case = tally.case(
        f"{broker} never answered {counted(len(found), 'pull')} of group {group} for"
        f" {'queue' if len(queues) == 1 else 'queues'} {numbers} of {topic}: no response for"
        f" {seconds(longest)} since {clock(tally.first)} UTC, while the connection got others",
        Subject(
            broker=broker,
            topic=topic,
            group=group,
            client=only(clients),
            queue=queues.pop() if len(queues) == 1 else None,
        ),
    )
    case.details = [f"clients: {listed(clients)}"]
    return case


RULE = DiagnosisRule(
    id="long-poll-lost",
    severity=ProblemSeverity.WARNING,
    title="A broker never answers a pull",
    searched=(
        "consumer stops pulling one queue",
        "long polling never returns",
        "PullRequestHoldService lost pull request",
    ),
    proof=(
        "A pull has no response 7 s after its suspendTimeoutMillis is over, and its connection got"
        " other responses until then. A broker ends a long poll at that time, give or take the 5 s"
        " between two looks."
    ),
    explanation=(
        "At the end of a queue, a broker holds a pull until a message comes or its time is over."
        " Nobody repeats a response that got lost inside the broker or a relay. A Java client gives"
        " up after 30 s and pulls again. A client without such a timeout waits forever: nothing"
        " more of that queue is delivered to it, while its other queues go on."
    ),
    advice=(
        "Restart the consumer to pull the queue again, and use a client that gives up on a pull"
        " (consumerTimeoutMillisWhenSuspend, default 30000 ms in Java). Look in the broker's log"
        " for exceptions of PullRequestHoldService, and at relays in between."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=whole, requests=PULLS | _OTHERS, of_flow=True),),
    references=("NewLifeX/NewLife.RocketMQ#109",),
    limits=(
        "Long polls of POP and gRPC are not judged: where they are lost, the client asks again when"
        " the time that it chose is over."
    ),
    needs=frozenset((Need.PULLS,)),
    rests_on_absence=True,
)
