"""Consumers read from a slave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.row_facts.names import FROM_BROKER, fact_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import by_server
from ...names import MAX_NAMED, Names, counted_names, only
from ...problem import Case, ProblemSeverity, Subject, Tally, asked, time_of
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold

_NO_MASTER_ADVICE: Final = (
    "Restart the master: until then, producers cannot send to its queues. Meanwhile, consumers read"
    " from the slave; messages that it has not replicated are delivered later."
)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.pulls = Tally()
        self.suggested = Tally()
        self.ids: Counter[str] = Counter()
        """broker ids suggested by the broker"""
        self.topics = Names()
        self.groups = Names()

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        # Slave addresses are known only at the end, so all pulls are counted.
        self.topics.note(rows[0].topic, len(rows))
        self.groups.note(rows[0].group, len(rows))
        for row in rows:
            if not self.pulls.add_late(time_of(row)):
                self.pulls.add(asked(row, f"pull from {row.server_address}"))
            if not row.facts:
                continue
            broker = fact_in(row.facts, FROM_BROKER)
            if broker is not None and len(self.ids) < MAX_NAMED:
                self.ids[broker] += 1
                self.suggested.add(asked(row, f"pull response: pull from broker id {broker} next"))

    def cases(self, context: Context) -> Iterable[Case]:
        number = context.slave_id(self.key)
        broker = context.broker(self.key)
        if number is not None and self.pulls.count:
            names = only(self.groups) or counted_names(self.groups)
            case = self.pulls.case(
                f"consumers read from a slave of {broker} ({self.key}, id {number}):"
                f" {self.pulls.count:,} pulls of {names}",
                self._subject(broker),
            )
            # Without a master, it is no choice of the broker: the slave is all that is left.
            if no_master(context, broker):
                case.details.append(
                    f"according to the latest routes, {broker} has no master: its queues can be"
                    " read from the slave, but not written"
                )
                case.advice = _NO_MASTER_ADVICE
            elif self.suggested.count:
                case.details.append(f"the slave says to pull from broker ids {_said(self.ids)}")
            yield case
        elif self.suggested.count:
            case = self.suggested.case(
                f"{broker} sends consumers to its slave (id {_said(self.ids)}): what they read is"
                " no longer in its memory",
                self._subject(broker),
            )
            case.details.append(f"groups: {counted_names(self.groups)}")
            yield case

    def _subject(self, broker: str) -> Subject:
        return Subject(broker=broker, topic=only(self.topics), group=only(self.groups))


def _said(ids: Counter[str]) -> str:
    return ", ".join(sorted(ids)[:3])


def no_master(context: Context, broker: str) -> bool:
    """Return whether the latest routes name a broker without a master."""
    known = [
        routed for brokers in context.routes.values() for routed in brokers if routed.name == broker
    ]
    return bool(known) and not any("0" in one.ids for one in known)


RULE = DiagnosisRule(
    id="pull-from-slave",
    severity=ProblemSeverity.INFO,
    title="Consumers read from a slave",
    searched=("suggestWhichBrokerId", "consume from slave", "slaveReadEnable"),
    proof=(
        "Pulls to an address that a route lists with a broker id other than 0, or responses to"
        " pulls whose suggestWhichBrokerId is not 0."
    ),
    explanation=(
        "A consumer reads from a slave in two cases. The master is gone, and the route names only"
        " the slave. Or the master told it to, because the messages are so old that they are no"
        " longer in the master's memory; this spares the master's disk. Offsets are stored on the"
        " master while it is alive. Messages that the slave does not have yet are delivered later."
    ),
    advice=(
        "Check the lag of the group: the master names a slave if the consumer is further behind"
        " than accessMessageInMemoryMaxRatio (default 40 %) of its memory, and only with"
        " slaveReadEnable=true (default false). The group's setting whichBrokerWhenConsumeSlowly"
        " (default 1) selects the slave."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=by_server, requests=FETCHES, of_flow=True),),
    references=(
        "apache/rocketmq#3482",
        "apache/rocketmq#2157",
        "apache/rocketmq#2484",
        "apache/rocketmq#9879",
    ),
    limits="Without a route in the capture, a slave's address is not recognized.",
    needs={Need.PULLS},
    consequence_of={"no-master", "broker-gone", "consumer-lag"},
    lasts=None,
)
