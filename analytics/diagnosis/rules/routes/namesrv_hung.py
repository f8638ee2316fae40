"""A NameServer does not respond to route requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors import ports
from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ANSWERED, UNANSWERED, ExchangeRecord

from ...context import BROKER, Context, Need
from ...keys import by_server
from ...names import and_again, first_of
from ...problem import (
    MOST_SPANS,
    Case,
    ProblemSeverity,
    Subject,
    clock,
    duration,
    period,
)
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges
from ...silences import CONNECTIONS, ServerSilences, Silence
from ...spells import spells

LEAST: Final = 1_000_000_000
"""minimum ns of a reported silence"""
_ROUTE: Final = frozenset((int(RequestCode.GET_ROUTEINFO_BY_TOPIC),))
_OF_BROKERS: Final = frozenset(
    (
        int(RequestCode.REGISTER_BROKER),
        int(RequestCode.GET_BROKER_CLUSTER_INFO),
        int(RequestCode.QUERY_DATA_VERSION),
    )
)
"""regular requests of brokers; a response shows that the NameServer is alive"""


_NO_NAMESRV_ADVICE: Final = (
    "Check namesrvAddr: it must name NameServers (port 9876 by default), not brokers (10911). (If"
    " it is a NameServer, look for a pause of that process: garbage collection, container limits.)"
)


class _Fold(ServerSilences):
    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add route requests; of other requests only their responses count."""
        if rows[0].request_code in _ROUTE:
            super().add_exchanges(rows)
        else:
            self.note_responses(rows)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the periods without responses, per spell."""
        silences = [
            silence for silence in self.silences(context, LEAST) if _is_significant(silence)
        ]
        for found in spells(silences, Silence.span, self.lasts):
            yield self._case(found, context)

    def _case(self, silences: list[Silence], context: Context) -> Case:
        waits = [wait for silence in silences for wait in silence.waits]
        never = sum(not wait.answered for wait in waits)
        requests_text = counted(len(waits), "request for a route", "requests for routes")
        title = self._title(silences, requests_text, never, context)
        case = self.silence_case(title, Subject(server=self.key), silences)
        hosts = first_of(host_of(wait.row.client_address) for wait in waits)
        case.details = [f"clients: {hosts}"]
        if len(silences) > 1:
            case.details.append(f"all times: {', '.join(map(_from_to, silences[:MOST_SPANS]))}")
        if not self.answered_any:
            case.advice = _NO_NAMESRV_ADVICE
        return case

    def _title(
        self, silences: list[Silence], requests_text: str, never: int, context: Context
    ) -> str:
        if not self.answered_any:
            named = context.broker(self.key) != self.key
            served = context.servers.get(self.key) == BROKER
            is_one = named or served or self.key.endswith(f":{ports.BROKER}")
            why = "it is a broker, not a NameServer" if is_one else "it never responded"
            return f"{self.key} did not respond to {requests_text}: {why}"
        longest = max(silences, key=lambda silence: (silence.goes_on, silence.length))
        has = "has " if longest.goes_on else ""
        hung = f"NameServer {self.key} {has}hung {_from_to(longest)}{and_again(silences)}"
        if longest.goes_on:
            waiting = sum(wait.pending for wait in longest.waits)
            requests_text = counted(waiting, "request for a route", "requests for routes")
            return f"{hung}: {requests_text} wait{'s' if waiting == 1 else ''}"
        return f"{hung}: {never:,} of {requests_text} unanswered"


def _from_to(silence: Silence) -> str:
    length = duration(silence.length)
    if silence.goes_on:
        return f"since {clock(silence.begin)} UTC ({length} so far)"
    return f"from {period(silence.begin, silence.end)} UTC ({length})"


def _is_significant(silence: Silence) -> bool:
    """Return whether it is more than one slow request."""
    return len(silence.waits) > 1 or bool(silence.unanswered)


RULE = DiagnosisRule(
    id="namesrv-hung",
    severity=ProblemSeverity.ERROR,
    title="A NameServer accepts route requests but responds to none",
    searched=(
        "No route info of this topic",
        "wait response on the channel timeout 9876",
        "namesrvAddr points to a broker",
    ),
    proof=(
        "Route requests (105) wait for a second or longer, and the NameServer sends no response to"
        " any client meanwhile. Then the clients give up, or all responses come at once."
    ),
    explanation=(
        "The address accepts connections, so a client waits 3 s before it gives up. Java clients"
        " since 4.9.1 then use the next NameServer; older ones stay. Clients that have a route keep"
        " using it; starting clients and new topics fail with No route info of this topic. The"
        " cause is a paused process, or a broker before 4.9.1 whose address was configured as a"
        " NameServer: it does not respond to unknown requests."
    ),
    advice=(
        "Look for a pause of that process at that time: garbage collection log (safepoints), CPU"
        " throttling of the container, disk, the hypervisor. List several NameServers in"
        " namesrvAddr, so that clients can use another one."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=by_server,
            requests=_ROUTE | _OF_BROKERS,
            statuses={ANSWERED, UNANSWERED},
            of_flow=True,
        ),
    ),
    connections=CONNECTIONS,
    takes_pending=True,
    quiet_ends=False,
    limits="Silence is visible only while route requests are pending.",
    needs={Need.CONNECTIONS},
    rests_on_absence=True,
)
