"""A broker refuses each POP request at once as too old: the client's clock is behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...need import Need
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, shown
from ...refusals import MAX_NAMED, counted_names
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold

FEWEST: Final = 3
AT_ONCE_US: Final = 1_000_000
"""a pop that the broker holds until there are messages takes longer"""
_REMARK: Final = "timeout too much"
_POPS: Final = frozenset((int(RequestCode.POP_MESSAGE), int(RequestCode.POP_LITE_MESSAGE)))
_TIMEOUT: Final = int(ResponseCode.POLLING_TIMEOUT)


class _Fold(Fold):
    """The pops of one client endpoint and group."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.refused = Tally()
        self.others = 0
        """pops that the broker took"""
        self.groups: Counter[str] = Counter()
        self.topics: Counter[str] = Counter()
        self.endpoints: set[str] = set()

    def add_exchange(self, row: ExchangeRecord) -> None:
        if not _is_refused(row):
            self.others += 1
            return
        self.refused.add(shown(row))
        for counter, name in ((self.groups, row.group), (self.topics, row.topic)):
            if name and (name in counter or len(counter) < MAX_NAMED):
                counter[name] += 1
        if len(self.endpoints) < MAX_NAMED:
            self.endpoints.add(row.requester)

    def cases(self, context: Context) -> Iterable[Case]:
        refused = self.refused.count
        if refused < FEWEST or refused <= self.others:
            return
        client = context.client(min(self.endpoints))
        group = next(iter(self.groups)) if len(self.groups) == 1 else None
        case = self.refused.case(
            f"{refused:,} of {refused + self.others:,} pops of {client} are refused at once as too"
            f" old: the clock of that client is behind the broker's, and group"
            f" {group or counted_names(self.groups)} gets nothing from it",
            Subject(client=client, group=group),
        )
        case.confidence = Confidence.CERTAIN if not self.others else Confidence.LIKELY
        if self.others:
            case.reason = "some of its pops are taken"
        case.details.append(f"topics: {counted_names(self.topics)}")
        case.details.append("bornTime and pollTime are in each request (decode pcap -V)")
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
    title="POP requests are refused at once because the client's clock is behind",
    searched=(
        "pop message is timeout too much",
        "POP consumer receives no messages",
        "POLLING_TIMEOUT at once",
    ),
    proof=(
        "POP_MESSAGE is answered within a second with POLLING_TIMEOUT (210) and the remark `timeout"
        " too much`, for most of the pops of a client."
    ),
    explanation=(
        "A POP request carries the client's time (bornTime) and how long the broker may hold it"
        " (pollTime, default 15 s). If bornTime plus pollTime is in the past by the broker's clock,"
        " the broker answers at once and returns no message. A 210 that comes after pollTime is"
        " normal: there was no message."
    ),
    advice=(
        "Set the clock of the client's host (NTP), then compare it with the broker's. Requests that"
        " waited for longer than pollTime on the way or in the broker's queue are refused alike."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(Exchanges(key=lambda row: row.requester, requests=_POPS),),
    limits="How far the clock is behind is in the requests, not in the rows.",
    needs=frozenset((Need.PULLS,)),
    lasts=None,
)
