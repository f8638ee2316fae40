"""Single gRPC sends take far longer than is normal for this proxy."""

from __future__ import annotations

from collections.abc import Sequence

from dissectors.grpc.names import OK
from dissectors.rows.outcome import is_call, is_send
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...outages import server_of
from ...problem import ProblemSeverity, Subject
from ...rule import COVERED, DiagnosisRule, Exchanges
from ..network.broker_slow import SlowSends


class _Fold(SlowSends):
    def is_judged(self, context: Context) -> bool:
        return True

    def name(self, context: Context) -> str:
        return f"proxy {self.key}"

    def subject(self, context: Context) -> Subject:
        return Subject(server=self.key)

    def comes_of(self, slow: Sequence[ExchangeRecord]) -> list[str]:
        return []


def _key(row: ExchangeRecord) -> str | None:
    is_sent_by_call = is_call(row.request_name) and is_send(row.request_name)
    return row.server_address if is_sent_by_call else None


RULE = DiagnosisRule(
    id="call-slow",
    severity=ProblemSeverity.WARNING,
    title="Some gRPC sends take the proxy far longer than usual",
    searched=("send message latency", "cost time", "gRPC send slow", "RT jitter"),
    proof=(
        "Three successful SendMessage calls take 250 ms or longer, or one takes 550 ms or longer."
        " Each takes at least ten times as long as the fastest tenth of the proxy's sends."
    ),
    explanation=(
        "A proxy forwards the message to a broker, or stores it itself in local mode, and responds"
        " when that is done. The time was spent in the broker, or in the proxy's own threads and"
        " garbage collection."
    ),
    advice=(
        "Check the proxy's garbage collection log and load at those times; in local mode, also"
        " its store.log and disk. If both sides of the proxy are captured, rmqtool decode pcap"
        " --summary and rmqtool trace show how much of the time the broker took."
        " grpcProducerThreadPoolNums is the proxy's number of threads for sends."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses={OK}),),
    connections=server_of,
    limits=(
        "The first send on a new connection is ignored, because client and proxy load code at that"
        " time. So is a send during which packets were lost on its connection. A proxy that is"
        " always slow counts as normal. A call with a batch of"
        " messages counts like any other, although it may take longer."
    ),
    consequence_of={
        "broker-gone",
        "broker-hung",
        "packets-unacknowledged",
        "broker-slow",
        "broker-slow-vs-network",
        "page-cache-busy",
        "send-queue-timeout",
        "client-hung",
    },
)
