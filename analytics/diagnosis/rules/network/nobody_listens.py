"""Clients connect again and again to an address at which nobody listens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context
from ...need import Need
from ...outages import PORTS, how_it_failed, server_of
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, connected
from ...refusals import MAX_NAMED, counted_names
from ...rule import DiagnosisRule, Fold

LEAST_CONNECTS: Final = 5
"""failed connects of one host that are no slip"""
LEAST_NS: Final = 2_000_000_000
"""ns over which they go on"""


class _Fold(Fold):
    """Connections to one address."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._failed = Tally()
        self._hosts: Counter[str] = Counter()
        self._worked = False

    def add_connection(self, row: ConversationRecord) -> None:
        if row.end not in (tcp.REFUSED, tcp.NO_ANSWER):
            self._worked = True
            return
        self._failed.add(connected(row, how_it_failed(row)), last=row.end_time)
        host = host_of(row.client)
        if host in self._hosts or len(self._hosts) < MAX_NAMED:
            self._hosts[host] += 1

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of an address that never answered, and that no route names."""
        tally = self._failed
        lasts = tally.count and tally.last - tally.first >= LEAST_NS
        if self._worked or not lasts or max(self._hosts.values()) < LEAST_CONNECTS:
            return
        if self.key in context.servers or self.key in context.names_of_ports():
            return
        port = self.key.rpartition(":")[2]
        beside = sorted(one for one in context.servers if host_of(one) == host_of(self.key))
        if port not in PORTS and not beside:
            return
        case = tally.case(
            f"nobody listens at {self.key}: {counted_names(self._hosts)} connected in vain",
            Subject(server=self.key),
        )
        if beside:
            roles = ", ".join(f"{one} ({context.servers[one]})" for one in beside[:3])
            case.details = [f"at the same host were seen: {roles}"]
        case.confidence = Confidence.LIKELY if port in PORTS else Confidence.POSSIBLE
        case.reason = "what should be there is told by the port alone"
        if port not in PORTS:
            case.severity = ProblemSeverity.WARNING
            case.reason = "it may be no address of RocketMQ: only others at that host are"
        yield case


RULE = DiagnosisRule(
    id="nobody-listens",
    severity=ProblemSeverity.ERROR,
    title="Clients connect again and again to an address at which nobody listens",
    searched=(
        "connect to 9876 failed",
        "No name server address",
        "No route info of this topic",
        "RemotingConnectException: connect to failed",
    ),
    proof=(
        "Five connects or more of one host to an address, over two seconds or longer, are refused"
        " or not answered, and no connection to it ever comes about; no route names it. The port is"
        " one of RocketMQ, or a server of RocketMQ was seen at that host."
    ),
    explanation=(
        "A client that cannot reach its NameServer knows no broker: nothing is sent, and all that"
        ' the application sees is "No route info of this topic". The address in namesrvAddr is'
        " wrong, the server does not run, or a firewall is between the two."
    ),
    advice=(
        "Compare namesrvAddr (producer.setNamesrvAddr, rocketmq.namesrv.addr, NAMESRV_ADDR) with"
        " where the NameServer listens (listenPort, default 9876). Several are separated by"
        " semicolons."
    ),
    fold=_Fold,
    connections=server_of,
    limits=(
        "Of an address at another port, on a host where no RocketMQ was seen, nothing is said: it"
        " can be anything."
    ),
    needs=frozenset((Need.CONNECTIONS,)),
)
