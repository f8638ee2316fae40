"""A new group that wants to start at the end of the queues receives older messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.ext_fields import PULLS, offsets_in
from dissectors.remoting.row_facts.names import STORED_MS
from dissectors.remoting.row_facts.values import number_in
from dissectors.remoting.topic_names import is_group_topic
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import COMMIT, SUCCESS, named_group, state_in
from ...names import only
from ...problem import (
    MS,
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    end_of,
    shown,
)
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold

MAX_QUEUES: Final = 5_000
MANY: Final = 32
"""older messages that matter (pullBatchSize): fewer are not worth a warning"""
BEFORE_MS: Final = 1_000
"""ms between the store time of the first message and the offset query"""
LAST: Final = "CONSUME_FROM_LAST_OFFSET"
_QUERY: Final = int(RequestCode.QUERY_CONSUMER_OFFSET)


class _Place(NamedTuple):
    """A queue of a topic."""

    topic: str
    broker: str
    """`address:port`"""
    queue: int


class _Seen(NamedTuple):
    """An exchange about a queue."""

    evidence: Evidence
    offset: int
    """returned or requested offset"""
    end: int
    """end offset of the queue; -1: unknown"""
    stored_ms: int
    """store time of the first message; -1: unknown"""


class _Queue:
    """The earliest exchange of each kind for a queue."""

    __slots__ = ("commit", "pull", "query")

    def __init__(self) -> None:
        self.query: _Seen | None = None
        self.pull: _Seen | None = None
        self.commit: _Seen | None = None


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._queues: dict[_Place, _Queue] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        topic, offset = row.topic, row.queue_offset
        if topic is None or row.queue_id is None or offset is None:
            return
        # A new group reads its retry topic from 0 on purpose.
        if is_group_topic(topic):
            return
        place = _Place(topic, row.server_address, row.queue_id)
        queue = self._queues.get(place) or state_in(self._queues, place, _Queue, MAX_QUEUES)
        if queue is None:
            return
        if row.request_code == _QUERY:
            if row.response_code == SUCCESS and _may_be_first(row, queue.query):
                what = f"offset of queue {row.queue_id} is {offset}"
                queue.query = _earlier(queue.query, _Seen(shown(row, what), offset, 0, 0))
        elif row.request_code == COMMIT:
            if _may_be_first(row, queue.commit):
                queue.commit = _earlier(queue.commit, _Seen(shown(row), offset, 0, 0))
        elif _may_be_first(row, queue.pull):
            end = offsets_in(row.facts)[3]
            stored = number_in(row.facts, STORED_MS)
            what = f"queue {row.queue_id} pulled from offset {offset} of {end}"
            seen = _Seen(
                shown(row, what),
                offset,
                -1 if end is None else end,
                -1 if stored is None else stored,
            )
            queue.pull = _earlier(queue.pull, seen)

    def cases(self, context: Context) -> Iterable[Case]:
        if context.starts.get(self.key) != LAST or self.key not in context.clustering:
            return
        if self.key in context.pulling:
            return  # heartbeats of pull consumers say LAST, whatever the application chose
        topics: dict[str, list[tuple[_Place, _Queue]]] = {}
        for place, queue in sorted(self._queues.items(), key=lambda item: item[0]):
            if _gets_history(queue):
                topics.setdefault(place.topic, []).append((place, queue))
        for topic, found in topics.items():
            stored = sum(queue.pull.end for _, queue in found if queue.pull is not None)
            yield _case(self.key, topic, found, stored, context)


def _gets_history(queue: _Queue) -> bool:
    """Return whether a queue is read from 0 although it never had a committed offset."""
    query, pull, commit = queue.query, queue.pull, queue.commit
    if query is None or pull is None or query.offset or pull.offset or pull.end <= 0:
        return False
    # A commit before the query: 0 is the group's own offset.
    if commit is not None and commit.evidence.time < query.evidence.time:
        return False
    # The broker's clock is not that of the capture: a message must be older by a second.
    asked = query.evidence.time // MS
    return query.evidence.time <= pull.evidence.time and 0 <= pull.stored_ms < asked - BEFORE_MS


def _may_be_first(row: ExchangeRecord, before: _Seen | None) -> bool:
    """Return whether an exchange may be earlier, without parsing most of them."""
    return before is None or end_of(row) <= before.evidence.time


def _earlier(before: _Seen | None, seen: _Seen) -> _Seen:
    return seen if before is None or seen.evidence < before.evidence else before


def _case(
    group: str, topic: str, found: list[tuple[_Place, _Queue]], stored: int, context: Context
) -> Case:
    tally = Tally()
    for _, queue in found:
        for seen in (queue.query, queue.pull):
            if seen is not None:
                tally.add(seen.evidence)
    queues = counted(len(found), "queue")
    brokers = {context.broker(place.broker) for place, _ in found}
    case = tally.case(
        f"new group {group} consumes the history of {topic}, {counted(stored, 'message')} in"
        f" {queues}, although it asks for CONSUME_FROM_LAST_OFFSET: the broker returned offset 0",
        Subject(group=group, topic=topic, broker=only(brokers)),
    )
    case.count = stored
    if stored < MANY:
        case.severity = ProblemSeverity.INFO
    if group not in context.new_groups:
        case.doubt("the group may have stored offset 0 before the capture")
    return case


RULE = DiagnosisRule(
    id="history-consumed",
    severity=ProblemSeverity.WARNING,
    title="A new group consumes messages that were stored before it started",
    searched=(
        "CONSUME_FROM_LAST_OFFSET does not work",
        "consumeFromWhere ignored",
        "new consumer group consumes old messages",
    ),
    proof=(
        "Heartbeats of the group say CONSUME_FROM_LAST_OFFSET. Its first QUERY_CONSUMER_OFFSET (14)"
        " for a queue returns offset 0 although nothing was committed before, and its first pull at"
        " offset 0 returns a message that was stored before."
    ),
    explanation=(
        "consumeFromWhere applies to a group without a stored offset. While a queue still begins at"
        " 0 and its first message is in memory, a broker returns offset 0 to a new group instead of"
        " 'not found'. It assumes that the group wants all messages of a young topic. The consumer"
        " then pulls from 0 and gets the history."
    ),
    advice=(
        "Create the group (mqadmin updateSubGroup -c CLUSTER -g GROUP), and set its offset before"
        " its first start: mqadmin resetOffsetByTime -g GROUP -t TOPIC -s now. Or let the consumer"
        " skip messages older than its start (MessageExt.getStoreTimestamp). consumeTimestamp works"
        " only with CONSUME_FROM_TIMESTAMP, and brokers ignore it, too, for a queue that begins at"
        " 0 with its first message in memory."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(
        Exchanges(key=named_group, requests={_QUERY, COMMIT}),
        Exchanges(key=named_group, requests=PULLS, responses={SUCCESS}),
    ),
    references=(
        "apache/rocketmq#334",
        "apache/rocketmq#617",
        "apache/rocketmq#1135",
        "apache/rocketmq#2166",
        "apache/rocketmq#4909",
        "alibaba/spring-cloud-alibaba#1181",
        "apache/rocketmq-client-go#855",
    ),
    limits=(
        "A group is certainly new only if its retry topic had no route at first. Fewer than 32"
        " messages are reported as info. Groups of pull consumers are ignored: their heartbeats do"
        " not say where they start."
    ),
    needs={Need.PULLS, Need.GROUPS, Need.HEARTBEATS},
    lasts=None,
)
