"""rmqtool itself injected a fault into the traffic: its consequences are a test."""

from __future__ import annotations

from dissectors.quantities import counted
from dissectors.remoting.row_facts.names import FAULT, fact_in, fault_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...names import Names, counted_names
from ...problem import Case, ProblemSeverity, Subject, asked, time_of
from ...rule import COVERED, DiagnosisRule, Exchanges, TallyFold


class _Fold(TallyFold):
    """The requests to one server that faults affected."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.faults = Names()

    def add_exchange(self, row: ExchangeRecord) -> None:
        if not self.tally.add_late(time_of(row)):
            self.tally.add(asked(row, f"{row.request_name}: {fact_in(row.facts, FAULT)}"))
        self.faults.note(_fault(row))

    def case(self, context: Context) -> Case:
        return self.tally.case(
            f"rmqtool proxy injected faults into {counted(self.tally.count, 'request')} to"
            f" {context.server(self.key)}: {counted_names(self.faults)}",
            Subject(broker=context.broker(self.key)),
        )


def _fault(row: ExchangeRecord) -> str:
    """Return the fault without its request and random delay."""
    fault = fault_in(fact_in(row.facts, FAULT) or "").partition(",")[0]
    return "latency" if fault.endswith(" later") else fault


def _key(row: ExchangeRecord) -> str | None:
    return None if fact_in(row.facts, FAULT) is None else row.server_address


RULE = DiagnosisRule(
    id="fault-injected",
    severity=ProblemSeverity.INFO,
    title="rmqtool proxy injected faults into this traffic",
    searched=("fault injection", "chaos test", "injected by rmqtool proxy"),
    proof=(
        "The packets of requests have a comment by rmqtool: the fact `fault`, which `rmqtool proxy"
        " --fault` writes."
    ),
    explanation=(
        "This traffic was recorded with `rmqtool proxy`, which delayed, refused, or dropped"
        " requests on purpose. The real brokers did not cause these problems."
    ),
    advice=(
        "Look at the problems of these requests as the result of a test. To exclude them from"
        " `decode` and `report`: --where 'not (facts ~ \"fault=\")'."
    ),
    grpc=COVERED,
    fold=_Fold,
    leads_to_all=True,
    exchanges=(Exchanges(key=_key, with_facts=True),),
    limits=(
        "A fault that affects connections (`down`, `slow-read`) marks no request. Captures by other"
        " programs have no marks."
    ),
)
