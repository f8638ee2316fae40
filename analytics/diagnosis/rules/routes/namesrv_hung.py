"""A NameServer, or what clients take for one, does not answer requests for routes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors import ports
from dissectors.endpoint import host_of
from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ANSWERED, UNANSWERED, ExchangeRecord

from ...context import BROKER, Context
from ...keys import by_responder
from ...need import Need
from ...problem import (
    MOST_SPANS,
    Case,
    Confidence,
    ProblemSeverity,
    Subject,
    Tally,
    clock,
    period,
    seconds,
    shown,
)
from ...refusals import counted, times
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges
from ...silences import CONNECTIONS, ServerSilences, Silence, unsure_reason
from ...spells import spells

LEAST: Final = 1_000_000_000
"""ns of a silence that is worth a word"""
_ROUTE: Final = frozenset((int(RequestCode.GET_ROUTEINFO_BY_TOPIC),))
_OF_BROKERS: Final = frozenset(
    (
        int(RequestCode.REGISTER_BROKER),
        int(RequestCode.GET_BROKER_CLUSTER_INFO),
        int(RequestCode.QUERY_DATA_VERSION),
    )
)
"""what brokers ask all the time; an answer shows that the NameServer lives"""


_NO_NAMESRV_ADVICE: Final = (
    "Check namesrvAddr: it names NameServers (port 9876 by default), never brokers (10911). (If it"
    " is a NameServer, look for a pause of that process: garbage collection, container limits.)"
)


class _Fold(ServerSilences):
    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Take requests for routes; of others that they were answered."""
        if rows[0].request_code in _ROUTE:
            super().add_exchanges(rows)
        else:
            self.note_answers(rows)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the times in which nothing was answered, for each spell."""
        every = [one for one in self.silences(context, LEAST) if _tells(one)]
        for found in spells(every, Silence.span, self.lasts):
            yield self._case(found, context)

    def _case(self, found: list[Silence], context: Context) -> Case:
        tally = Tally()
        for silence in found:
            for wait in silence.waits:
                tally.add(shown(wait.row), last=wait.until)
        waits = [wait for one in found for wait in one.waits]
        never = sum(not wait.answered for wait in waits)
        what = counted(len(waits), "request for a route", "requests for routes")
        case = tally.case(self._title(found, what, never, context), Subject(server=self.key))
        case.first_time = min(one.begin for one in found)
        case.last_time = max(one.end for one in found)
        case.spans = [one.span() for one in found]
        hosts = sorted({host_of(wait.row.requester) for wait in waits})
        case.state = self.state_of(found)
        case.details = [f"clients: {', '.join(hosts[:5])}"]
        if len(found) > 1:
            case.details.append(f"all times: {', '.join(map(_from_to, found[:MOST_SPANS]))}")
        if not self.answered_any:
            case.advice = _NO_NAMESRV_ADVICE
        if not any(wait.certain for wait in waits):
            case.confidence = Confidence.POSSIBLE
            case.reason = unsure_reason(found)
        return case

    def _title(self, found: list[Silence], what: str, never: int, context: Context) -> str:
        if not self.answered_any:
            named = context.broker(self.key) != self.key
            served = context.servers.get(self.key) == BROKER
            is_one = named or served or self.key.endswith(f":{ports.BROKER}")
            why = "it is a broker, no NameServer" if is_one else "nothing was answered at all"
            return f"{self.key} did not answer {what}: {why}"
        longest = max(found, key=lambda one: (one.goes_on, one.length))
        again = f", and {times(len(found) - 1)} more" if len(found) > 1 else ""
        has = "has " if longest.goes_on else ""
        hung = f"NameServer {self.key} {has}hung {_from_to(longest)}{again}"
        if longest.goes_on:
            waiting = sum(wait.pending for wait in longest.waits)
            what = counted(waiting, "request for a route", "requests for routes")
            return f"{hung}: {what} wait{'s' if waiting == 1 else ''}"
        return f"{hung}: of {what} {never:,} got no answer"


def _from_to(silence: Silence) -> str:
    length = seconds(silence.length)
    if silence.goes_on:
        return f"since {clock(silence.begin)} UTC ({length} so far)"
    return f"from {period(silence.begin, silence.end)} UTC ({length})"


def _tells(silence: Silence) -> bool:
    """Return whether it is more than one request that took a while."""
    return len(silence.waits) > 1 or bool(silence.unanswered)


RULE = DiagnosisRule(
    id="namesrv-hung",
    severity=ProblemSeverity.ERROR,
    title="A NameServer accepts requests for routes but answers none",
    searched=(
        "No route info of this topic",
        "wait response on the channel timeout 9876",
        "namesrvAddr points to a broker",
    ),
    proof=(
        "Requests for routes (105) wait for a second or longer, nothing is answered to anybody"
        " meanwhile, and the clients give up, or get their answers at once when it goes on."
    ),
    explanation=(
        "The address takes connections, so clients do not go on to the next NameServer: each"
        " request costs them 3 s. Clients that have a route go on with it; those that start, and"
        " new topics, fail with No route info of this topic. A process that stands still looks"
        " like that, and so does a broker of 4.x whose address is taken for that of a NameServer:"
        " it does not answer what it does not know."
    ),
    advice=(
        "Look for a pause of that process at that time: garbage collection log (safepoints),"
        " throttled CPU of the container, disk, the hypervisor. List several NameServers in"
        " namesrvAddr, so that clients use another one meanwhile."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=by_responder,
            requests=_ROUTE | _OF_BROKERS,
            statuses=frozenset((ANSWERED, UNANSWERED)),
            of_flow=True,
        ),
    ),
    connections=CONNECTIONS,
    takes_pending=True,
    quiet_ends=False,
    limits="A silence is seen only while somebody asks for a route.",
    needs=frozenset((Need.CONNECTIONS,)),
    rests_on_absence=True,
)
