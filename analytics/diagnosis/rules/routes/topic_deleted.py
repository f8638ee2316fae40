"""A topic is deleted while clients use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import by_topic
from ...names import MAX_NAMED, counted_names, listed
from ...problem import Case, ProblemSeverity, Subject, Tally, asked, clock, shown, time_of
from ...rule import DiagnosisRule, Exchanges, Fold

MAX_DELETIONS: Final = 64
MAX_REFUSED: Final = 4096
"""maximum refusals kept: those before a deletion have another cause"""
_DELETE: Final = frozenset(
    (int(RequestCode.DELETE_TOPIC_IN_BROKER), int(RequestCode.DELETE_TOPIC_IN_NAMESRV))
)
_ROUTE: Final = frozenset((int(RequestCode.GET_ROUTEINFO_BY_TOPIC),))
_MISSING: Final = frozenset((int(ResponseCode.TOPIC_NOT_EXIST),))
_SUCCESS: Final = frozenset((int(ResponseCode.SUCCESS),))


class _Fold(Fold):
    """One topic."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._deletions: list[ExchangeRecord] = []
        self._refused: list[ExchangeRecord] = []
        self._more = False
        """whether refusals are beyond the limit, before or after the deletion"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code in _DELETE:
            if len(self._deletions) < MAX_DELETIONS:
                self._deletions.append(row)
        elif len(self._refused) < MAX_REFUSED:
            self._refused.append(row)
        else:
            self._more = True

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case if clients used the topic after its deletion."""
        if not self._deletions:
            return
        first = min(map(time_of, self._deletions))
        since = [row for row in self._refused if time_of(row) >= first]
        if not since:
            return
        tally = Tally()
        for row in self._deletions:
            tally.add(shown(row, f"{host_of(row.client_address)} deletes {self.key}"), count=0)
        for row in since:
            tally.add(asked(row))
        administrators = listed(host_of(row.client_address) for row in self._deletions)
        case = tally.case(
            f"topic {self.key} was deleted at {clock(first)} UTC by {administrators} while clients"
            f" used it: {'at least ' if self._more else ''}{counted(tally.count, 'request')}"
            " refused since",
            Subject(topic=self.key),
        )
        case.first_time = first
        names = Counter(row.request_name or "request" for row in since)
        case.details = [f"refused: {counted_names(names)}"]
        groups = Counter(row.group for row in since if row.group)
        if groups:
            case.details.append(f"groups: {counted_names(groups)}")
        clients = Counter(context.client(row.client_address) for row in since[:MAX_NAMED])
        case.details.append(f"clients: {counted_names(clients)}")
        yield case


RULE = DiagnosisRule(
    id="topic-deleted",
    severity=ProblemSeverity.ERROR,
    title="A topic is deleted while clients use it",
    searched=("deleteTopic", "topic not exist, apply first please", "No route info of this topic"),
    proof=(
        "DELETE_TOPIC_IN_BROKER (215) or DELETE_TOPIC_IN_NAMESRV (216) of a topic succeeds, and"
        " later sends, pulls, or route requests for it get code 17."
    ),
    explanation=(
        "mqadmin deleteTopic, or a dashboard, removes the topic from brokers and NameServers"
        " immediately, with all its messages. Clients keep their route until they ask for a new"
        " one, up to 30 s later: their sends are refused, and then have no route. If"
        " autoCreateTopicEnable is on, the next producer creates the topic again, empty."
    ),
    advice=(
        "Create the topic again with as many queues as before (mqadmin updateTopic); the messages"
        " are lost. 4.x brokers keep the groups' old offsets: reset them (mqadmin"
        " resetOffsetByTime). Stop producers and consumers"
        " before you delete a topic. (An intended deletion needs no action.)"
    ),
    grpc="`no-route` covers a topic that clients of a proxy no longer find.",
    fold=_Fold,
    exchanges=(
        Exchanges(key=by_topic, requests=_DELETE, responses=_SUCCESS),
        Exchanges(key=by_topic, requests=SENDS | FETCHES | _ROUTE, responses=_MISSING),
    ),
    limits="Visible only if the administrator's request was captured.",
    needs={Need.ROUTES},
)
