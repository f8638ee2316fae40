"""A client that does not wait for a response omits the oneway flag, and gets a response."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ANSWERED, UNANSWERED, ExchangeRecord

from ...context import Context, Need
from ...keys import keep
from ...names import MAX_NAMED, Names, counted_names, only
from ...problem import Case, ProblemSeverity, Subject, asked, time_of
from ...rule import NO_OFFSETS, DiagnosisRule, Exchanges, TallyFold

NEVER_AWAITED: Final = frozenset((int(RequestCode.UPDATE_CONSUMER_OFFSET),))
"""requests whose response these clients never read (client-go InvokeOneWay, pyrocketmq)"""
LANGUAGES: Final = frozenset(("GO", "PYTHON"))


class _Fold(TallyFold):
    """Such requests of one language."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.groups = Names()
        self.clients: set[str] = set()

    def add_exchange(self, row: ExchangeRecord) -> None:
        if not self.tally.add_late(time_of(row)):
            self.tally.add(asked(row, f"{row.request_name} without the oneway flag"))
        self.groups.note(row.group)
        keep(self.clients, row.client_address, MAX_NAMED)

    def case(self, context: Context) -> Case:
        group = only(self.groups)
        client = only(map(context.client, self.clients))
        sender = client or f"{len(self.clients)} clients"
        case = self.tally.case(
            f"{sender} ({self.key}) committed offsets {self.tally.count:,} times without the oneway"
            " flag: the client ignores the responses",
            Subject(group=group, client=client),
        )
        case.details.append(f"groups: {counted_names(self.groups)}")
        return case


def _language(row: ExchangeRecord) -> str | None:
    return row.language if row.language in LANGUAGES else None


RULE = DiagnosisRule(
    id="oneway-without-flag",
    severity=ProblemSeverity.INFO,
    title="A client asks for responses that it never reads",
    searched=("receive response, but not matched any request", "rocketmq-client-go oneway"),
    proof=(
        "UPDATE_CONSUMER_OFFSET (15) of a Go or Python client with bit 1 of the flag not set,"
        " although these clients do not wait for its response."
    ),
    explanation=(
        "A oneway request sets a flag bit, and the broker sends no response. These clients omit the"
        " bit and do not wait. The broker responds to each request; the client logs that no request"
        " matches the response. That causes some traffic and clutters the log; nothing is lost."
    ),
    advice="Use a newer release of the client that sets the flag, or ignore such log lines.",
    grpc=NO_OFFSETS,
    fold=_Fold,
    exchanges=(Exchanges(key=_language, requests=NEVER_AWAITED, statuses={ANSWERED, UNANSWERED}),),
    limits=(
        "The client's source code, not the capture, shows that it does not read the response. A"
        " oneway send of these clients looks like a normal one, and is not reported."
    ),
    needs={Need.GROUPS},
    lasts=None,
)
