"""A broker never responds to a pull, although its connection carries other responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import PULLS
from dissectors.remoting.row_facts.names import SUSPEND_MS
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context, Need
from ...keys import whole
from ...names import listed, only
from ...problem import MS, Case, ProblemSeverity, Subject, Tally, asked, clock, duration
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold

MAX_PULLS: Final = 4_096
MAX_CONNECTIONS: Final = 10_000
UNKNOWN_MS: Final = 30_000
"""maximum ms that a broker holds a pull with an unknown suspendTimeoutMillis"""
SLACK_MS: Final = 7_000
"""ms after that until a response is due: brokers check every 5 s, and may be late"""
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

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        first = rows[0]
        # Unanswered requests of other kinds show nothing: a response must arrive later.
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
                place = context.broker(row.server_address), row.group or "", row.topic or ""
                lost.setdefault(place, []).append((row, until))
        for (broker, group, topic), found in sorted(lost.items()):
            yield _case(broker, group, topic, found, context)


def _patience(row: ExchangeRecord) -> int:
    """Return the ns within which the broker should have responded to a pull."""
    held = number_in(row.facts, SUSPEND_MS)
    return ((UNKNOWN_MS if held is None or held < 0 else held) + SLACK_MS) * MS


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
    clients = {context.client(row.client_address) for row, _ in found}
    numbers = listed(str(queue) for queue in queues)
    case = tally.case(
        f"{broker} never responded to {counted(len(found), 'pull')} of group {group} for"
        f" {'queue' if len(queues) == 1 else 'queues'} {numbers} of {topic}: no response for"
        f" {duration(longest)} since {clock(tally.first)} UTC, while the connection got other"
        " responses",
        Subject(
            broker=broker,
            topic=topic,
            group=group,
            client=only(clients),
            queue=only(queues),
        ),
    )
    case.details = [f"clients: {listed(clients)}"]
    return case


RULE = DiagnosisRule(
    id="long-poll-lost",
    severity=ProblemSeverity.WARNING,
    title="A broker never responds to a pull",
    searched=(
        "consumer stops pulling one queue",
        "long polling never returns",
        "PullRequestHoldService lost pull request",
    ),
    proof=(
        "A pull has no response 7 s after its suspendTimeoutMillis expired, while its connection"
        " got other responses. A broker looks for expired long polls every 5 s, so it should have"
        " responded."
    ),
    explanation=(
        "At the end of a queue, a broker holds a pull until a message arrives or its time expires."
        " A response that got lost inside the broker or a relay is not repeated. A Java client"
        " gives up after 30 s and pulls again. A client without such a timeout waits forever: it"
        " gets no more messages of that queue, while its other queues continue."
    ),
    advice=(
        "Restart the consumer to pull the queue again, and use a client with a timeout for pulls"
        " (consumerTimeoutMillisWhenSuspend, default 30000 ms in Java). Check the broker's log for"
        " exceptions of PullRequestHoldService, and relays in between."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=whole, requests=PULLS | _OTHERS, of_flow=True),),
    references=("NewLifeX/NewLife.RocketMQ#109",),
    limits=(
        "Long polls of POP and gRPC are ignored: if one is lost, the client asks again after the"
        " time it chose."
    ),
    needs={Need.PULLS},
    rests_on_absence=True,
)
