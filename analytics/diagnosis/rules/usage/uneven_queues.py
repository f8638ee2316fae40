"""The messages of a topic are spread unevenly over the queues of a broker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.endpoint import host_of
from dissectors.remoting.code_sets import REPLIES, SENDS, STORED
from dissectors.remoting.row_facts.routes import RoutedBroker
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import Add, Flow, ignore, is_own_topic, is_traced, state_in
from ...names import Names, counted_names, only
from ...problem import Case, ProblemSeverity, Subject, Tally, asked, time_of
from ...rule import PROXY_CHOOSES, DiagnosisRule, Exchanges, Fold

FEWEST_A_QUEUE: Final = 50
"""minimum average messages per queue, against chance"""
NORMAL_QUANTILE: Final = 3.090
"""of the normal distribution: chance exceeds it in one case of 1000"""
TIMES_THE_MEAN: Final = 2.0
"""a smaller ratio is uneven, but harmless"""
MAX_QUEUES: Final = 4096
_Queue = tuple[str, int]


class _Sends:
    """The sends to one queue."""

    __slots__ = ("count", "first", "time")

    def __init__(self, first: ExchangeRecord) -> None:
        self.count = 0
        self.first = first
        self.time = time_of(first)
        """time of the first one"""

    def take_earlier(self, row: ExchangeRecord, time: int) -> None:
        """Add a row at a time not later than that of the first one."""
        if time < self.time or asked(row) < asked(self.first):
            self.first, self.time = row, time


class _Fold(Fold):
    """One topic. It takes all sends, so it counts and keeps only the first row of a queue."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.queues: dict[_Queue, _Sends] = {}
        self.last = 0
        self.groups = Names()

    def adder_of(self, flow: Flow) -> Add:
        """Return the function that adds sends of one client to one broker."""
        if flow.response_code is not None and flow.response_code not in STORED:
            return ignore  # depends on retries; nothing is stored
        known: dict[int, _Sends] = {}
        server_address, group = flow.server_address, flow.group

        def add(rows: Sequence[ExchangeRecord]) -> None:
            counted = 0
            for row in rows:
                number = row.queue_id
                if number is None or number < 0:
                    continue
                sends = known.get(number)
                if sends is None:
                    sends = self._sends_to((server_address, number), row)
                    if sends is None:
                        continue
                    known[number] = sends
                time = row.request_time
                if time is None:
                    time = time_of(row)
                # The earliest row is the evidence, whatever the order of rows.
                if time <= sends.time and row is not sends.first:
                    sends.take_earlier(row, time)
                sends.count += 1
                counted += 1
                if time > self.last:
                    self.last = time
            if counted:
                self.groups.note(group, counted)

        return add

    def _sends_to(self, queue: _Queue, row: ExchangeRecord) -> _Sends | None:
        """Return the state of a queue, or None if the limit is reached."""
        return state_in(self.queues, queue, lambda: _Sends(row), MAX_QUEUES)

    def cases(self, context: Context) -> Iterable[Case]:
        by_broker: dict[str, dict[str, dict[int, int]]] = {}
        for (address, queue), sends in self.queues.items():
            hosts = by_broker.setdefault(context.broker(address), {})
            queues = hosts.setdefault(host_of(address), {})
            queues[queue] = queues.get(queue, 0) + sends.count
        routed = {broker.name: broker for broker in context.brokers_of(self.key)}
        for broker, hosts in sorted(by_broker.items()):
            # A relay in front of a broker has its name: the same messages are captured at both.
            host = max(hosts, key=lambda host: (sum(hosts[host].values()), host))
            counts, known = _counts(hosts[host], routed.get(broker))
            if _is_uneven(counts):
                yield self._case(broker, host, counts, known)

    def _case(self, broker: str, host: str, counts: Sequence[int], known: bool) -> Case:
        total = sum(counts)
        most = max(counts)
        fullest = counts.index(most)
        tally = Tally()
        for (address, queue), first in sorted(self.queues.items()):
            if host_of(address) == host:
                # A queue number beyond the limit has no place among the counts.
                sent = counts[queue] if queue < len(counts) else 0
                tally.add(asked(first.first, f"first of {sent} messages to queue {queue}"))
        tally.count, tally.last = total, max(tally.last, self.last)
        empty = counts.count(0)
        share = "all" if most == total else f"{most:,}"
        several = "s" if empty > 1 else ""
        left = f"; {empty} queue{several} got none" if empty and most != total else ""
        case = tally.case(
            f"{share} of {total:,} messages to {self.key} went to queue {fullest} of the"
            f" {len(counts)} queues of {broker}{left}",
            Subject(broker=broker, topic=self.key, group=only(self.groups), queue=fullest),
        )
        by_queue = ", ".join(f"{queue}: {count}" for queue, count in enumerate(counts[:16]))
        case.details.append(f"messages by queue: {by_queue}{' …' if len(counts) > 16 else ''}")
        case.details.append(f"producer groups: {counted_names(self.groups)}")
        if not known:
            case.doubt("no route says how many queues there are")
        return case


def _counts(queues: dict[int, int], routed: RoutedBroker | None) -> tuple[list[int], bool]:
    """Return the messages per queue, and whether a route has the number of queues."""
    seen = max(queues) + 1
    number = routed.write_queues if routed is not None else 0
    # More queues than in the route: it is of another time, so their number is unknown.
    known = number >= seen
    length = min(number if known else seen, MAX_QUEUES)
    return [queues.get(queue, 0) for queue in range(length)], known


def _is_uneven(counts: Sequence[int]) -> bool:
    """Return whether the skew is significant (chi-square) and large enough to matter."""
    number, total = len(counts), sum(counts)
    if number < 2 or total < FEWEST_A_QUEUE * number:
        return False
    mean = total / number
    statistic = sum((count - mean) ** 2 for count in counts) / mean
    # Of many messages, also a tiny skew is significant: it must be large as well.
    return max(counts) >= TIMES_THE_MEAN * mean and statistic > _critical(number - 1)


def _critical(freedom: int) -> float:
    """Return the chi-square value that chance exceeds once in 1000 (Wilson and Hilferty)."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + NORMAL_QUANTILE * math.sqrt(part)) ** 3)


def _topic(row: ExchangeRecord) -> str | None:
    topic = row.topic
    return None if is_traced(row) or is_own_topic(topic) else topic


RULE = DiagnosisRule(
    id="uneven-queues",
    severity=ProblemSeverity.WARNING,
    title="Messages are spread unevenly over the queues of a topic",
    searched=("uneven distribution of messages", "queue skew", "MessageQueueSelector", "hot queue"),
    proof=(
        "Sends are counted by queue (queueId) of a broker, at least 50 per queue on average. One"
        " queue has at least twice the mean, and by a chi-square test, chance causes that less than"
        " once in 1000 cases."
    ),
    explanation=(
        "By default, a producer uses the queues of a topic in turn. Here, a MessageQueueSelector, a"
        " fixed queue, or a sharding key with few values, or with one very frequent value, chooses"
        " the queue. Only one member of a group consumes a queue, so the busiest queue lags while"
        " other members are idle."
    ),
    advice=(
        "Check the selector or the sharding key: it should have many values of similar frequency."
        " If messages need no order, send without a selector. More queues do not help against one"
        " hot key."
    ),
    grpc=PROXY_CHOOSES,
    fold=_Fold,
    exchanges=(Exchanges(key=_topic, requests=SENDS - REPLIES, of_flow=True),),
    references=(
        "apache/rocketmq#3131",
        "apache/rocketmq#2148",
        "apache/rocketmq#5672",
        "apache/rocketmq#2223",
        "apache/rocketmq-client-go#795",
        "apache/rocketmq-client-go#1092",
        "alibaba/canal#1706",
    ),
    limits=(
        "The sharding key is not examined: the application may want an uneven distribution."
        " Brokers are not compared with each other, because a producer avoids one that fails or is"
        " slow. A batch counts as one message, and a refused send as none."
    ),
    needs={Need.SENDS},
    lasts=None,
)
