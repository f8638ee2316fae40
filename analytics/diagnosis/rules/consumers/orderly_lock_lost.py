"""An orderly consumer does not get the locks of its queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import (
    GROUP,
    QUEUES_LOCKED,
    QUEUES_REQUESTED,
    fact_in,
)
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import SUCCESS, keep, state_in
from ...names import MAX_NAMED, only
from ...problem import Case, ProblemSeverity, Subject, duration, end_of, shown
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, Fold
from ...spells import SpellTally

LOCK: Final = int(RequestCode.LOCK_BATCH_MQ)
FEWEST: Final = 3
LASTING_NS: Final = 30_000_000_000
"""a queue that changes owners is unlocked within 20 s (UNLOCK_DELAY_TIME_MILLS)"""
LOCK_LIVES_NS: Final = 60_000_000_000
"""rocketmq.broker.rebalance.lockMaxLiveTime: a lock that is not renewed expires"""
MAX_CLIENTS: Final = 1024


class _Client:
    """Locks requested by one client."""

    __slots__ = ("brokers", "lost", "won")

    def __init__(self) -> None:
        self.lost = SpellTally()
        """requests that did not get all locks"""
        self.won = 0
        """requests that got all locks"""
        self.brokers: set[str] = set()


class _Fold(Fold):
    """Locks of one group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.clients: dict[str, _Client] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        facts = row.facts
        wanted, got = number_in(facts, QUEUES_REQUESTED), number_in(facts, QUEUES_LOCKED)
        if wanted is None or got is None or wanted < 0 or got < 0:
            return
        # The lock request names its client; a connection may change, the id does not.
        name = row.client_id or row.client_address
        client = state_in(self.clients, name, _Client, MAX_CLIENTS)
        if client is None:
            return
        if got >= wanted:
            client.won += 1
            return
        text = f"{name} requested {counted(wanted, 'queue lock')} and got {got}"
        client.lost.at(end_of(row)).add(shown(row, text))
        keep(client.brokers, row.server_address, MAX_NAMED)

    def cases(self, context: Context) -> Iterable[Case]:
        lost = (
            (name, client, tally)
            for name, client in sorted(self.clients.items())
            for tally in client.lost.spells()
        )
        for name, client, tally in lost:
            lasted = tally.last - tally.first
            if tally.count < FEWEST or lasted < LASTING_NS:
                continue
            brokers = {context.broker(address) for address in client.brokers}
            broker = only(brokers)
            case = tally.case(
                f"{name} of {self.key} requested locks {tally.count} times in {duration(lasted)},"
                f" but {broker or 'the brokers'} did not grant all of them, so the consumer could"
                " not consume the queues without a lock",
                Subject(broker=broker, group=self.key, client=name),
            )
            holders = sorted(
                other for other, owner in self.clients.items() if other != name and owner.won
            )
            if holders:
                case.details.append(f"others that got locks: {', '.join(holders[:3])}")
            if client.won:
                case.details.append(f"requests that got all requested locks: {client.won}")
            if lasted < LOCK_LIVES_NS:
                case.doubt(
                    "the lock of a consumer that died expires after 60 s, so the problem may end by"
                    " itself"
                )
            yield case


def _group(row: ExchangeRecord) -> str | None:
    return fact_in(row.facts, GROUP)


RULE = DiagnosisRule(
    id="orderly-lock-lost",
    severity=ProblemSeverity.WARNING,
    title="An orderly consumer does not get the locks of its queues",
    searched=(
        "doRebalance, add a new mq failed, because lock failed",
        "the message queue locked Failed",
    ),
    proof=(
        "Responses to LOCK_BATCH_MQ (41) with fewer queues than requested, three times or more over"
        " at least 30 s."
    ),
    explanation=(
        "An orderly consumer consumes a queue only while it holds the queue's lock at the broker."
        " It requests the locks of its queues every 20 s. Another consumer holds them: a running"
        " one that has not noticed that it lost the queue, or one that died without releasing them."
        " The broker releases a lock that was not renewed for 60 s. Until then, no member consumes"
        " these queues."
    ),
    advice=(
        "Stop consumers with shutdown(), which releases the locks (42). If the problem persists,"
        " look for a second consumer that assigns the queues differently: another allocation"
        " strategy, another subscription, or the same client id."
        " rocketmq.broker.rebalance.lockMaxLiveTime (default 60000 ms) and"
        " rocketmq.client.rebalance.lockInterval (default 20000 ms) set the times."
    ),
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=_group, requests={LOCK}, responses={SUCCESS}),),
    references=(
        "apache/rocketmq-client-go#510",
        "apache/rocketmq-client-go#491",
        "apache/rocketmq-client-go#1080",
        "apache/rocketmq#5465",
        "apache/rocketmq#5441",
        "apache/rocketmq#10827",
    ),
    limits=(
        "The response does not show which queues were not locked, or which client holds them."
        " In-place retries of a failing message, which block its queue, are not visible in packets."
    ),
    needs={Need.GROUPS},
    consequence_of={
        "duplicate-client-id",
        "inconsistent-subscription",
        "rebalance-storm",
        "broker-gone",
    },
)
