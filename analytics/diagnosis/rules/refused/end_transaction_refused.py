"""A broker does not end a transaction as the producer asks."""

from __future__ import annotations

from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import DECISION, fact_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import whole
from ...need import Need
from ...problem import ProblemSeverity, first_line
from ...refusals import Refusals, called, counted, counted_names, listed
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges
from .acl_signature import reason_of

_TOO_LATE: Final = int(ResponseCode.ILLEGAL_OPERATION)
"""EndTransactionProcessor.rejectCommitOrRollback, since 5.1.1"""
_CODES: Final = frozenset(
    (
        int(ResponseCode.SYSTEM_ERROR),
        int(ResponseCode.MESSAGE_ILLEGAL),
        int(ResponseCode.SERVICE_NOT_AVAILABLE),
        _TOO_LATE,
    )
)
_WHY: Final = "why"
_DECIDED: Final = "decision"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        self.note_name(_DECIDED, fact_in(row.facts, DECISION))
        if row.response_code == _TOO_LATE:
            why = "it came later than the time that the message itself sets for the first check"
        else:
            why = first_line(row.remark or row.response_name or "")
        self.note_name(_WHY, why)

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        groups = f" of {called('group', self.groups)}" if self.groups else ""
        ends = counted(self.tally.count, "end of a transaction", "ends of transactions")
        return f"{broker} refused {ends}{groups}: {listed(self.named(_WHY))}"

    def details(self, context: Context) -> list[str]:
        said = super().details(context)
        if decided := self.named(_DECIDED):
            said.append(f"asked for: {counted_names(decided)}")
        return said


def _key(row: ExchangeRecord) -> str | None:
    return None if reason_of(row.remark) is not None else whole(row)


RULE = DiagnosisRule(
    id="end-transaction-refused",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses to end a transaction",
    searched=(
        "The producer group wrong",
        "Find prepared transaction message failed",
        "The transaction state table offset wrong",
    ),
    proof="A request 37 (END_TRANSACTION) is answered with another code than 0.",
    explanation=(
        "The broker looks for the half message by its offset and compares the producer group and"
        " the offsets. They were not those of the request, the half message is gone, or the request"
        " came too late. The message is neither delivered nor given up: the broker asks a producer"
        " of the group again, up to transactionCheckMax times."
    ),
    advice=(
        "Give each program its own producer group, and find out how long the transaction took if"
        " the half message is gone: transactionTimeOut is 6 s (first check),"
        " transactionCheckInterval 30 s, transactionCheckMax 15. CHECK_IMMUNITY_TIME_IN_SECONDS of"
        " a message must be longer than its local transaction."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key, requests=frozenset((int(RequestCode.END_TRANSACTION),)), responses=_CODES
        ),
    ),
    references=("apache/rocketmq#1517",),
    limits=("Java producers and proxies end transactions one-way: a refusal then has no response."),
    needs=frozenset((Need.TRANSACTIONS,)),
)
