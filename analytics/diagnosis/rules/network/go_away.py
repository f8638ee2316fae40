"""A server that is shutting down asks its clients to use another one."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.versions import V5_3_1, release_of
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import by_server
from ...names import times
from ...outages import named
from ...problem import ProblemSeverity
from ...refusals import Refusals
from ...rule import DiagnosisRule, Exchanges

SINCE: Final = V5_3_1
"""first client version that reconnects and repeats the request"""
_CLIENTS: Final = "clients"
_OLD: Final = "old"


class _Fold(Refusals):
    def take(self, row: ExchangeRecord) -> None:
        # Only Java clients since 5.3.1 reconnect and repeat the request.
        if (row.version or 0) < SINCE or row.language != "JAVA":
            self.note_name(_CLIENTS, _OLD)

    def title(self, context: Context) -> str:
        server = named(context, self.key)
        return f"{server} told clients {times(self.tally.count)} to go away: it was shutting down"

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        if old := self.named(_CLIENTS)[_OLD]:
            lines.append(
                f"{old:,} of these requests came from clients that may not repeat them: only Java"
                f" clients since {release_of(SINCE)} do"
            )
        return lines


RULE = DiagnosisRule(
    id="go-away",
    severity=ProblemSeverity.INFO,
    title="A server that shuts down sends its clients to other servers",
    searched=("please go away", "CODE: 1500", "GO_AWAY"),
    proof="Response code 1500 (GO_AWAY).",
    explanation=(
        "A server that shuts down with enableShutdownGracefully=true (default false) responds to"
        " new requests with GO_AWAY, without carrying them out. A Java client since"
        f" {release_of(SINCE)} opens a new connection and repeats the request once; in others, the"
        " call fails. (Servers of 5.2.0 to 5.3.1 serve clients before 5.2.0 as usual, later"
        " servers those before 5.3.2.)"
    ),
    advice=(
        "Update clients to 5.3.1 or later if sends fail, and let the load balancer remove the"
        " server before it stops. enableReconnectForGoAway defaults to true in 5.x. (A rolling"
        " update whose sends succeed needs no action.)"
    ),
    grpc=(
        "Not covered: GOAWAY of HTTP/2 also ends idle connections. `broker-gone` covers proxies"
        " that stop."
    ),
    fold=_Fold,
    exchanges=(Exchanges(key=by_server, responses={ResponseCode.GO_AWAY}),),
    references=("apache/rocketmq#7330", "apache/rocketmq#8599"),
)
