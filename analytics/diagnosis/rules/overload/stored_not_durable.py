"""Messages that a broker stored, but that are not on disk or not on a slave in time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.grpc.names import CODES
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import ProblemSeverity
from ...refusals import Refusals, counted, counted_names, whole_of_sends
from ...rule import COVERED, DiagnosisRule, Exchanges

_DISK: Final = int(ResponseCode.FLUSH_DISK_TIMEOUT)
_NO_SLAVE: Final = int(ResponseCode.SLAVE_NOT_AVAILABLE)
_SLAVE: Final = int(ResponseCode.FLUSH_SLAVE_TIMEOUT)
_BY_CALL: Final = {
    CODES["MASTER_PERSISTENCE_TIMEOUT"]: _DISK,
    CODES["HA_NOT_AVAILABLE"]: _NO_SLAVE,
    CODES["SLAVE_PERSISTENCE_TIMEOUT"]: _SLAVE,
}
"""what a proxy says by gRPC -> what the broker said"""
_WAIT: Final = "wait"
_ANSWER: Final = "answer"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        code = row.response_code or 0
        code = _BY_CALL.get(code, code)
        self.note_name(_ANSWER, ResponseCode(code).name)
        if row.latency_us is not None:
            self.note_figure(f"{_WAIT} {code}", row.latency_us)

    def title(self, context: Context) -> str:
        broker = context.refuser(self.key)
        answers = self.named(_ANSWER)
        replica = {name for name in answers if name != ResponseCode(_DISK).name}
        where = " and ".join(
            (
                *(("on disk in time",) if ResponseCode(_DISK).name in answers else ()),
                *(("copied to a slave in time",) if replica else ()),
            )
        )
        return (
            f"{broker} stored {counted(self.tally.count, 'message')} that"
            f" {'was' if self.tally.count == 1 else 'were'} not {where}"
            f" ({', '.join(self._said(answers))})"
        )

    def details(self, context: Context) -> list[str]:
        return [*super().details(context), f"answers: {counted_names(self.named(_ANSWER))}"]

    def _said(self, answers: Iterable[str]) -> list[str]:
        said = []
        for name in sorted(answers):
            code = ResponseCode.__members__.get(name)
            _, most = self.figures.get(f"{_WAIT} {code:d}", (0, 0)) if code is not None else (0, 0)
            waited = f" after {most / 1_000_000:.1f} s" if most >= _WAITED_US else ""
            said.append(name + waited)
        return said


_WAITED_US: Final = 100_000
"""a wait that is worth saying"""

RULE = DiagnosisRule(
    id="stored-not-durable",
    severity=ProblemSeverity.WARNING,
    title="Messages are stored, but not on disk or on a slave in time",
    searched=("SLAVE_NOT_AVAILABLE", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT"),
    proof=(
        "A send is answered with code 10 (FLUSH_DISK_TIMEOUT), 11 (SLAVE_NOT_AVAILABLE) or 12"
        " (FLUSH_SLAVE_TIMEOUT)."
    ),
    explanation=(
        "The message is stored and will be delivered. But the broker promises more: that it is on"
        " disk (flushDiskType SYNC_FLUSH) or on a slave (brokerRole SYNC_MASTER) before it answers,"
        " and that did not come about in time. If the broker dies now, the message may be lost."
        " FLUSH_SLAVE_TIMEOUT: no slave confirmed it in time. SLAVE_NOT_AVAILABLE: no slave is"
        " connected, or it is too far behind; 5.x says FLUSH_SLAVE_TIMEOUT instead."
    ),
    advice=(
        "Check that the slave runs and that it reaches the master's replication port (listenPort +"
        " 1, usually 10912). Do not send the message again: it would be stored twice"
        " (retryAnotherBrokerWhenNotStoreOK, default false, does so). slaveTimeout (default 3000"
        " ms) is the time for a slave, syncFlushTimeout (5000 ms) for the disk. A slave does not"
        " count that is haSlaveFallbehindMax (4.x) or haMaxGapNotInSync (5.x; both 256 MB) behind."
        " Without a slave, ASYNC_MASTER is the role that fits."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests=SENDS, responses=frozenset((_DISK, _NO_SLAVE, _SLAVE))),
        Exchanges(key=whole_of_sends, responses=frozenset(_BY_CALL)),
    ),
    references=(
        "apache/rocketmq#1244",
        "apache/rocketmq#2142",
        "apache/rocketmq#2456",
        "apache/rocketmq#3484",
        "apache/rocketmq#5657",
        "alibaba/rocketmq#246",
    ),
    needs=frozenset((Need.SENDS,)),
    consequence_of=frozenset(("broker-gone", "broker-hung", "packets-unacknowledged")),
)
