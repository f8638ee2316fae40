"""A broker refuses each POP request at once as too old: the client's clock is behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.ext_fields import POPS
from dissectors.remoting.row_facts.names import BORN_MS, SUSPEND_MS
from dissectors.remoting.row_facts.values import number_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import keep
from ...names import MAX_NAMED, Names, counted_names
from ...problem import MS, Case, ProblemSeverity, Subject, Tally, duration, shown
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold

FEWEST: Final = 3
AT_ONCE_US: Final = 1_000_000
"""a pop that the broker holds until there are messages takes longer"""
_REMARK: Final = "timeout too much"
_TIMEOUT: Final = int(ResponseCode.POLLING_TIMEOUT)


class _Fold(Fold):
    """The pops of one client endpoint and group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.refused = Tally()
        self.others = 0
        """pops that the broker accepted"""
        self.groups = Names()
        self.topics = Names()
        self.endpoints: set[str] = set()
        self.behind: int | None = None
        """minimum ms by which the client's clock is behind that of the capture"""
        self.patience = 0
        """maximum ms that a pop may wait"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if not _is_refused(row):
            self.others += 1
            return
        self.refused.add(shown(row))
        created = number_in(row.facts, BORN_MS)
        if created is not None and row.request_time is not None:
            behind = row.request_time // 1_000_000 - created
            self.behind = behind if self.behind is None else min(behind, self.behind)
        self.patience = max(self.patience, number_in(row.facts, SUSPEND_MS) or 0)
        self.groups.note(row.group)
        self.topics.note(row.topic)
        keep(self.endpoints, row.client_address, MAX_NAMED)

    def cases(self, context: Context) -> Iterable[Case]:
        refused = self.refused.count
        # A client whose clock is behind gets most of its pops refused; a single slow one may also
        # be late.
        if refused < FEWEST or refused <= self.others:
            return
        client = context.client(min(self.endpoints))
        group = next(iter(self.groups)) if len(self.groups) == 1 else None
        its = "its clock is behind the broker's"
        if self.behind is not None:
            its = f"its clock is {duration(self.behind * MS)} behind that of the capture"
            # The broker refuses a pop that is older than pollTime. The capture's clock does not
            # show that.
            if self.behind <= self.patience:
                its = "they came late, or the clock of the broker is ahead"
        case = self.refused.case(
            f"{refused:,} of {refused + self.others:,} pops from {client} are refused immediately"
            f" as too old: {its}, and group {group or counted_names(self.groups)} gets no messages"
            " through it",
            Subject(client=client, group=group),
        )
        if self.others:
            case.doubt("some of its pops are accepted")
        case.details.append(f"topics: {counted_names(self.topics)}")
        if self.patience:
            case.details.append(f"a pop may wait for {duration(self.patience * MS)} (pollTime)")
        yield case


def _is_refused(row: ExchangeRecord) -> bool:
    return (
        row.response_code == _TIMEOUT
        and _REMARK in (row.remark or "")
        and row.latency_us is not None
        and row.latency_us < AT_ONCE_US
    )


RULE = DiagnosisRule(
    id="pop-clock-skew",
    severity=ProblemSeverity.ERROR,
    title="POP requests are refused immediately because the client's clock is behind",
    searched=(
        "pop message is timeout too much",
        "POP consumer receives no messages",
        "POLLING_TIMEOUT at once",
    ),
    proof=(
        "Most POP_MESSAGE requests of a client get POLLING_TIMEOUT (210) with the remark `timeout"
        " too much` within a second."
    ),
    explanation=(
        "A POP request carries the client's time (bornTime) and how long the broker may hold it"
        " (pollTime, default 15 s). If bornTime plus pollTime is in the past by the broker's clock,"
        " the broker responds immediately without messages. A 210 after pollTime is normal: there"
        " was no message."
    ),
    advice=(
        "Synchronize the clock of the client's host (NTP), then compare it with the broker's."
        " Requests that waited longer than pollTime on the way or in the broker's queue are"
        " refused, too."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(Exchanges(key=lambda row: row.client_address, requests=POPS),),
    limits="The capture's clock is assumed to be the broker's.",
    needs={Need.PULLS},
    lasts=None,
)
