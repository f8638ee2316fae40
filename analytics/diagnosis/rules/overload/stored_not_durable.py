"""Messages that a broker stored, but not in time on disk or on a slave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.grpc.names import CODES
from dissectors.quantities import counted, plain_duration
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.rows.outcome import is_call
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import whole
from ...names import counted_names
from ...problem import Case, Impact, ProblemSeverity
from ...refusals import Refusals, whole_of_sends
from ...rule import COVERED, DiagnosisRule, Exchanges

_DISK: Final = int(ResponseCode.FLUSH_DISK_TIMEOUT)
_NO_SLAVE: Final = int(ResponseCode.SLAVE_NOT_AVAILABLE)
_SLAVE: Final = int(ResponseCode.FLUSH_SLAVE_TIMEOUT)
_BY_CALL: Final = {
    CODES["MASTER_PERSISTENCE_TIMEOUT"]: _DISK,
    CODES["HA_NOT_AVAILABLE"]: _NO_SLAVE,
    CODES["SLAVE_PERSISTENCE_TIMEOUT"]: _SLAVE,
}
"""gRPC code of a proxy -> response code of the broker"""
_WAIT: Final = "wait"
_RESPONSE: Final = "response"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        code = row.response_code or 0
        code = _BY_CALL.get(code, code)
        self.note_name(_RESPONSE, ResponseCode(code).name)
        if row.latency_us is not None:
            self.note_figure(f"{_WAIT} {code}", row.latency_us)

    def title(self, context: Context) -> str:
        broker = context.refuser(self.key)
        responses = self.named(_RESPONSE)
        replica = {name for name in responses if name != ResponseCode(_DISK).name}
        where = " and ".join(
            (
                *(("on disk in time",) if ResponseCode(_DISK).name in responses else ()),
                *(("copied to a slave in time",) if replica else ()),
            )
        )
        return (
            f"{broker} stored {counted(self.tally.count, 'message')} that"
            f" {'was' if self.tally.count == 1 else 'were'} not {where}"
            f" ({', '.join(self._response_parts(responses))})"
        )

    def details(self, context: Context) -> list[str]:
        return [*super().details(context), f"responses: {counted_names(self.named(_RESPONSE))}"]

    def impact(self) -> dict[Impact, int]:
        # Not as in the base class: these sends were stored.
        return {Impact.NOT_DURABLE: self.tally.count}

    def judge(self, case: Case, context: Context) -> None:
        # By its attempts: if both hops were captured, only that of the proxy is counted.
        case.grpc = any(is_call(one.request) for tried in self.tried.values() for one in tried)
        # The rule's own advice is about replicas.
        if self.named(_RESPONSE).keys() == {ResponseCode(_DISK).name}:
            case.advice = _DISK_ADVICE.format(again=_SENT_AGAIN if case.grpc else _NOT_AGAIN)

    def _response_parts(self, responses: Iterable[str]) -> list[str]:
        parts = []
        for name in sorted(responses):
            code = ResponseCode.__members__.get(name)
            _, most = self.figures.get(f"{_WAIT} {code:d}", (0, 0)) if code is not None else (0, 0)
            waited = f" after {plain_duration(most)}" if most >= _WAITED_US else ""
            parts.append(name + waited)
        return parts


_WAITED_US: Final = 100_000
"""minimum wait that is reported"""
_NOT_AGAIN: Final = (
    "Do not send the message again: it would be stored twice "
    "(retryAnotherBrokerWhenNotStoreOK=true resends it automatically; default false)."
)
_SENT_AGAIN: Final = (
    "gRPC producers resend such a message, which stores it again: make consumers idempotent."
)
_DISK_ADVICE: Final = (
    "Look for a slow or busy disk under the commit log (iostat, store.log), or raise"
    " syncFlushTimeout (default 5000 ms). {again} flushDiskType=ASYNC_FLUSH (default) does not wait"
    " for the disk."
)
_REPLICA_ADVICE: Final = (
    "Check that the slave is running and reaches the master's replication port (listenPort + 1,"
    " usually 10912). {again} slaveTimeout (default 3000 ms; before 4.9.3, syncFlushTimeout) is the"
    " time limit for a slave, syncFlushTimeout (5000 ms) for the disk. In 4.x, a slave does not"
    " count if it is more than haSlaveFallbehindMax (256 MB) behind. Without a slave, use the role"
    " ASYNC_MASTER."
)

RULE = DiagnosisRule(
    id="stored-not-durable",
    severity=ProblemSeverity.WARNING,
    title="Stored messages do not reach the disk or a slave in time",
    searched=("SLAVE_NOT_AVAILABLE", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT"),
    proof=(
        "Response code 10 (FLUSH_DISK_TIMEOUT), 11 (SLAVE_NOT_AVAILABLE), or 12"
        " (FLUSH_SLAVE_TIMEOUT) to a send."
    ),
    explanation=(
        "The message is stored and will be delivered. But the broker must not respond until the"
        " message is on disk (flushDiskType SYNC_FLUSH) or on a slave (brokerRole SYNC_MASTER; in"
        " 5.x only with inSyncReplicas above 1, its default), and that took too long. If the broker"
        " dies now, the message may be lost. FLUSH_SLAVE_TIMEOUT: no slave confirmed it in time."
        " SLAVE_NOT_AVAILABLE: no slave is connected, or the slave is too far behind; 5.x reports"
        " FLUSH_SLAVE_TIMEOUT instead."
    ),
    advice=_REPLICA_ADVICE.format(again=_NOT_AGAIN),
    grpc_advice=_REPLICA_ADVICE.format(again=_SENT_AGAIN),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests=SENDS, responses={_DISK, _NO_SLAVE, _SLAVE}),
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
    needs={Need.SENDS},
    consequence_of={"broker-gone", "broker-hung", "packets-unacknowledged"},
)
