"""A broker does not end a transaction as the producer requests."""

from __future__ import annotations

from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.names import DECISION, fact_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import whole
from ...names import counted_names, listed
from ...problem import ProblemSeverity, first_line
from ...refusals import CALL_REFUSALS, Refusals
from ...rule import COVERED, DiagnosisRule, Exchanges
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
        broker = context.server(self.key)
        transactions = counted(self.tally.count, "transaction")
        return f"{broker} refused to end {transactions}{self.of_groups}: {listed(self.named(_WHY))}"

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        if decided := self.named(_DECIDED):
            lines.append(f"asked for: {counted_names(decided)}")
        return lines


def _key(row: ExchangeRecord) -> str | None:
    # Access control refuses any request: `acl-signature` reports it.
    return None if reason_of(row.remark) is not None else whole(row)


def _key_of_call(row: ExchangeRecord) -> str | None:
    return _key(row) if row.request_name == "EndTransaction" else None


RULE = DiagnosisRule(
    id="end-transaction-refused",
    severity=ProblemSeverity.ERROR,
    title="The broker refuses to end a transaction",
    searched=(
        "The producer group wrong",
        "Find prepared transaction message failed",
        "The transaction state table offset wrong",
        "Message store is slave mode, so end transaction is forbidden",
        "The commit log offset wrong",
        "OS page cache busy, please try another machine",
        "local transaction execute, but end broker transaction failed",
    ),
    proof=(
        "Response code 1, 13, 14, or 604 to a request 37 (END_TRANSACTION), or a status other than"
        " OK to EndTransaction of gRPC."
    ),
    explanation=(
        "The broker looks up the half message by its offset and compares the producer group and the"
        " offsets. They did not match, the half message is gone, or the request came too late. The"
        " message is neither delivered nor discarded: the broker checks back with a producer of the"
        " group, up to transactionCheckMax times."
    ),
    advice=(
        "Give each program its own producer group, and find out how long the transaction took if"
        " the half message is gone. transactionTimeOut is 6 s (first check),"
        " transactionCheckInterval 30 s (before 5.1.1: 60 s), transactionCheckMax 15."
        " CHECK_IMMUNITY_TIME_IN_SECONDS of a message must be longer than its local transaction."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests={RequestCode.END_TRANSACTION}, responses=_CODES),
        Exchanges(key=_key_of_call, responses=CALL_REFUSALS),
    ),
    references=("apache/rocketmq#1517",),
    limits="Java producers and proxies end transactions oneway, so a refusal has no response.",
    needs={Need.TRANSACTIONS},
)
