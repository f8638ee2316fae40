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
from ...outages import PORTS, host_of_server, how_it_failed
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, connected
from ...refusals import MAX_NAMED, counted_names
from ...rule import DiagnosisRule, Fold

LEAST_CONNECTS: Final = 5
"""failed connects of one host that are not a slip"""
LEAST_NS: Final = 2_000_000_000
"""ns over which they go on"""


class _Address:
    """Connects to one address that failed."""

    def __init__(self) -> None:
        self.failed = Tally()
        self.hosts: Counter[str] = Counter()

    def add(self, row: ConversationRecord) -> None:
        """Take a connect that failed."""
        self.failed.add(connected(row, how_it_failed(row)), last=row.end_time)
        host = host_of(row.client)
        if host in self.hosts or len(self.hosts) < MAX_NAMED:
            self.hosts[host] += 1

    def tells(self) -> bool:
        """Return whether it was tried often and long."""
        lasts = self.failed.last - self.failed.first >= LEAST_NS
        return lasts and max(self.hosts.values()) >= LEAST_CONNECTS


class _Fold(Fold):
    """Connections to one host."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._failing: dict[str, _Address] = {}
        self._worked: dict[str, int] = {}
        """address -> end of the last connection that came about, ns"""

    def add_connection(self, row: ConversationRecord) -> None:
        server = row.server
        if row.end not in (tcp.REFUSED, tcp.NO_ANSWER):
            if server in self._worked or len(self._worked) < MAX_NAMED:
                self._worked[server] = max(self._worked.get(server, 0), row.end_time)
        elif server in self._failing or len(self._failing) < MAX_NAMED:
            self._failing.setdefault(server, _Address()).add(row)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of each address that never answered, and that no route names."""
        brokers = context.names_of_ports()
        for address, one in sorted(self._failing.items()):
            known = address in self._worked or address in context.servers or address in brokers
            if known or not one.tells():
                continue
            beside = [
                other
                for other, until in sorted(self._worked.items())
                if other in context.servers and until > one.failed.last
            ]
            if address.rpartition(":")[2] in PORTS or beside:
                yield _case(address, one, beside, context)


def _case(address: str, one: _Address, beside: list[str], context: Context) -> Case:
    case = one.failed.case(
        f"nobody listens at {address}: {counted_names(one.hosts)} connected in vain",
        Subject(server=address),
    )
    if beside:
        roles = ", ".join(f"{other} ({context.servers[other]})" for other in beside[:3])
        case.details = [f"at the same host were seen: {roles}"]
    if address.rpartition(":")[2] in PORTS:
        case.confidence = Confidence.LIKELY
        case.reason = "what should be there is told by the port alone"
    else:
        case.severity = ProblemSeverity.WARNING
        case.confidence = Confidence.POSSIBLE
        case.reason = "it may be no address of RocketMQ: only others at that host are"
    return case


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
        " one of RocketMQ, or a server of RocketMQ answers at that host meanwhile."
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
    connections=host_of_server,
    limits=(
        "Of an address at another port, on a host where no RocketMQ was seen, nothing is said: it"
        " can be anything."
    ),
    needs=frozenset((Need.CONNECTIONS,)),
    lasts=None,
)
