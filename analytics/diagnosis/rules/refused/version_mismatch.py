"""A server does not know a request code."""

from __future__ import annotations

import re
from typing import Final

from dissectors.foreign import natural_of
from dissectors.remoting.code_names import operation_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import whole
from ...names import first_of, listed
from ...problem import ProblemSeverity
from ...refusals import Refusals
from ...rule import REFUSED_CALL, DiagnosisRule, Exchanges

_NUMBER: Final = re.compile(r"request type (\d{1,10}) not supported")
"""NettyRemotingAbstract.processRequestCommand"""
_WIDEST: Final = 0xFFFF
"""range of a code in a ROCKETMQ header: RocketMQSerializable writes two bytes"""
_LEFT_OUT: Final = frozenset(
    (
        int(RequestCode.SEND_BATCH_MESSAGE),  # batch-not-supported
        int(RequestCode.QUERY_ASSIGNMENT),  # a client of 5.x tries it, then assigns queues itself
    )
)
_CUT: Final = "cut"
_ROLE: Final = "role"
_SINCE: Final = "since"


class _Fold(Refusals):
    per_broker = True

    def take(self, row: ExchangeRecord) -> None:
        code = row.request_code or 0
        # The remark has the code that the server read: the low 16 bits of what was sent.
        match = _NUMBER.search(row.remark or "")
        if match is not None and code > _WIDEST and natural_of(match[1]) == code & _WIDEST:
            self.note_name(_CUT, f"{code} as {match[1]}")
        self.note_version(row)
        operation = operation_of(code)
        if operation is not None and operation.since:
            self.note_name(_SINCE, f"{row.request_name} {operation.since}")
        # `who` is `client->server`.
        self.note_name(_ROLE, operation.who.partition("->")[2] if operation is not None else None)

    def title(self, context: Context) -> str:
        server = context.broker(self.key)
        base = f"{server} does not know {listed(self.requests)}: {self.what} refused"
        cut = self.named(_CUT)
        if cut:
            return (
                f"{base}, because these request codes do not fit into the client's 16-bit binary"
                f" header ({listed(cut)})"
            )
        roles = self.named(_ROLE)
        if context.servers.get(self.key) == _NAMESRV and roles and _NAMESRV not in roles:
            return f"{base}, because it is a NameServer, and they are for a {listed(roles)}"
        return base

    def details(self, context: Context) -> list[str]:
        lines = super().details(context)
        if since := self.named(_SINCE):
            lines.append(f"first releases with these requests: {first_of(since)}")
        return lines


_NAMESRV: Final = "namesrv"


def _key(row: ExchangeRecord) -> str | None:
    if row.request_code in _LEFT_OUT:
        return None
    operation = operation_of(row.request_code or 0)
    asks = operation.who.partition("->")[0] if operation is not None else ""
    return None if asks in _SERVERS else whole(row)


_SERVERS: Final = frozenset(("broker", "controller", "controller-internal", "dledger", "namesrv"))
"""servers of different versions detect each other's features this way"""

RULE = DiagnosisRule(
    id="version-mismatch",
    severity=ProblemSeverity.ERROR,
    title="A server does not know a request of its client",
    searched=(
        "request type not supported",
        "CODE: 3",
        "REQUEST_CODE_NOT_SUPPORTED",
        "request type N not supported",
    ),
    proof="Response code 3 (REQUEST_CODE_NOT_SUPPORTED).",
    explanation=(
        "The server has no handler for this request. The client is newer than the server, or the"
        " request was meant for another kind of server (broker, NameServer, proxy). Or the code was"
        " truncated: a binary header (rocketmq.serialize.type=ROCKETMQ) has 16 bits for the"
        " request code, and POP requests have larger codes."
    ),
    advice=(
        "Compare the versions of client and server; dashboards and mqadmin should not be newer than"
        " the brokers. Check the address: a proxy supports few of mqadmin's requests. With POP,"
        " leave rocketmq.serialize.type at JSON (the default)."
    ),
    grpc=REFUSED_CALL,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses={ResponseCode.REQUEST_CODE_NOT_SUPPORTED}),),
    references=(
        "apache/rocketmq-dashboard#402",
        "apache/rocketmq-dashboard#172",
        "alibaba/canal#4586",
    ),
    limits="Rows have no column for the version of the server that refuses.",
    lasts=None,
)
