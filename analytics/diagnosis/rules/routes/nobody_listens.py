"""Clients repeatedly connect to an address where nothing listens."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable
from typing import Final

from dissectors import ports
from dissectors.endpoint import host_of
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import NAMESRV, Context, Need
from ...keys import WHOLE, has_room, keep, keep_most, state_in
from ...names import MAX_NAMED, counted_names
from ...outages import PORTS, how_it_failed, never_opened, server_of
from ...problem import Case, Confidence, ProblemSeverity, Subject, Tally, connected
from ...rule import COVERED, DiagnosisRule, Fold

LEAST_CONNECTS: Final = 5
"""minimum failed connects of one host"""
LEAST_NS: Final = 2_000_000_000
"""minimum ns between the first and last of them"""
LEAST_REFUSED: Final = 3
"""minimum refused connects of a host that speaks RocketMQ there, or at a port of it"""
LEAST_NEAR: Final = 3
"""minimum failed connects made with a connect to a NameServer, as by clients that try a list"""
NEAR: Final = 1_000_000_000
"""maximum ns between the two"""
MAX_CONNECTS: Final = 4096
"""maximum successful connections whose times are kept"""
_NAMESRV_ADVICE: Final = (
    "Compare namesrvAddr (producer.setNamesrvAddr, rocketmq.namesrv.addr, NAMESRV_ADDR) with where"
    " the NameServer listens (listenPort, default 9876). Several are separated by semicolons;"
    " clients try them in turn, so an unreachable one only costs time."
)
_BROKER_ADVICE: Final = (
    "Check whether the broker at that address runs and which port it listens on (listenPort,"
    " default 10911; the port two below it is its VIP channel). No route in the capture names the"
    " address: it may be outdated, or come from a tool's configuration."
)
_PROXY_ADVICE: Final = (
    "Check whether the proxy at that address runs, and compare the address in clients"
    " (setEndpoints for gRPC) with where it listens: grpcServerPort (default 8081) and"
    " remotingListenPort (default 8080) in rmq-proxy.json. A mapped port must have the same number,"
    " unless useEndpointPortFromRequest is true."
)


class _Address:
    """Failed connects to one address."""

    def __init__(self) -> None:
        self.failed = Tally()
        self.hosts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.times: list[tuple[int, str]] = []
        """time and client host"""

    def add(self, row: ConversationRecord) -> None:
        """Add a failed connect."""
        self.failed.add(connected(row, how_it_failed(row)), last=row.end_time)
        host = host_of(row.client_address)
        if has_room(self.hosts, host, MAX_NAMED):
            self.hosts[host] += 1
            self.refused[host] += row.end == tcp.REFUSED
        if len(self.times) < MAX_NAMED:
            self.times.append((row.start_time, host))

    def tells(self) -> bool:
        """Return whether it was tried often and long enough."""
        lasts = self.failed.last - self.failed.first >= LEAST_NS
        return lasts and max(self.hosts.values()) >= LEAST_CONNECTS

    def is_refused(self, speakers: Container[str]) -> bool:
        """Return whether one of these hosts was refused repeatedly."""
        return any(
            count >= LEAST_REFUSED and host in speakers for host, count in self.refused.items()
        )


class _Host:
    """Connections to one host."""

    def __init__(self) -> None:
        self.failing: dict[str, _Address] = {}
        self.worked: dict[str, int] = {}
        """address -> end of the last successful connection, ns"""
        self.speakers: set[str] = set()
        """hosts that exchanged commands with a server there"""

    def add(self, row: ConversationRecord) -> None:
        """Add a connection."""
        server = row.server_address
        if not never_opened(row):
            keep_most(self.worked, server, row.end_time, MAX_NAMED)
            if row.commands:
                keep(self.speakers, host_of(row.client_address), MAX_NAMED)
        elif has_room(self.failing, server, MAX_NAMED):
            self.failing.setdefault(server, _Address()).add(row)


class _Fold(Fold):
    """All connections, by server host."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._hosts: dict[str, _Host] = {}
        self._connects: list[tuple[int, str, str]] = []
        """time, client host, and server of successful connections"""

    def add_connection(self, row: ConversationRecord) -> None:
        name = host_of(row.server_address)
        host = state_in(self._hosts, name, _Host, MAX_CONNECTS)
        if host is None:
            return
        host.add(row)
        came_about = row.commands and row.start != tcp.MIDSTREAM
        if came_about and len(self._connects) < MAX_CONNECTS:
            self._connects.append((row.start_time, host_of(row.client_address), row.server_address))

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case per address that never responded and is in no route."""
        brokers = context.names_of_ports()
        work_now: dict[str, dict[str, int]] = {}
        for row in self.unended:
            if not never_opened(row):
                of_host = work_now.setdefault(host_of(row.server_address), {})
                of_host[row.server_address] = max(of_host.get(row.server_address, 0), row.end_time)
        for name, host in sorted(self._hosts.items()):
            worked = host.worked | work_now.get(name, {})
            for address, entry in sorted(host.failing.items()):
                # It was there at times, or a route names it: other rules report that.
                if address in worked or address in context.servers or address in brokers:
                    continue
                if address in context.endpoints:
                    continue  # covered by `wrong-proxy-address`
                beside = [
                    other
                    for other, until in sorted(worked.items())
                    # A server there that works later: otherwise the whole host is gone, which is an
                    # outage.
                    if other in context.servers and until > entry.failed.last
                ]
                of_rocketmq = address.rpartition(":")[2] in PORTS
                # At another port, only a host that speaks RocketMQ with this server counts: others
                # may look for any service there.
                few = entry.is_refused(entry.hosts if of_rocketmq else host.speakers)
                if (of_rocketmq or beside) and (entry.tells() or few):
                    yield _case(address, entry, beside, context)
                elif namesrv := self._listed_with(entry, context):
                    yield _case(address, entry, [], context, namesrv)

    def _listed_with(self, entry: _Address, context: Context) -> str | None:
        """Return a NameServer that hosts connected to whenever they tried the address."""
        connects_by_server: Counter[str] = Counter()
        connects = sorted(self._connects) if len(entry.times) >= LEAST_NEAR else []
        for time, host in entry.times:
            first = bisect_left(connects, (time - NEAR, "", ""))
            near = connects[first : bisect_left(connects, (time + NEAR, "", ""))]
            connects_by_server.update({server for _, client, server in near if client == host})
        listed = [
            server
            for server, count in sorted(connects_by_server.items())
            if count >= max(LEAST_NEAR, len(entry.times) // 2)
            and context.servers.get(server) == NAMESRV
        ]
        return listed[0] if listed else None


def _case(
    address: str,
    entry: _Address,
    beside: list[str],
    context: Context,
    namesrv: str | None = None,
) -> Case:
    went_on = f" and used NameServer {namesrv} instead" if namesrv else ""
    case = entry.failed.case(
        f"nothing listens at {address}: {counted_names(entry.hosts)} tried to connect{went_on}",
        Subject(server=address),
    )
    if beside:
        roles = ", ".join(f"{other} ({context.servers[other]})" for other in beside[:3])
        case.details = [f"at the same host were seen: {roles}"]
    case.advice = _advice_of(address.rpartition(":")[2], namesrv)
    if address.rpartition(":")[2] in PORTS:
        case.doubt("only the port shows what should listen there")
        return case
    case.severity = ProblemSeverity.WARNING
    case.doubt(
        "only the times of the connection attempts show that it is in a list with that NameServer"
        if namesrv
        else "it may not belong to RocketMQ: only other ports of that host do",
        Confidence.POSSIBLE,
    )
    return case


def _advice_of(port: str, namesrv: str | None) -> str | None:
    """Return the advice for an address by its expected service, or None."""
    if namesrv or port == str(ports.NAMESRV):
        return _NAMESRV_ADVICE
    if port in (str(ports.BROKER), str(ports.VIP)):
        return _BROKER_ADVICE
    return _PROXY_ADVICE if port in (str(ports.PROXY), str(ports.PROXY_GRPC)) else None


RULE = DiagnosisRule(
    id="nobody-listens",
    severity=ProblemSeverity.ERROR,
    title="Clients repeatedly connect to an address where nothing listens",
    searched=(
        "connect to 9876 failed",
        "No route info of this topic",
        "RemotingConnectException: connect to failed",
        "CODE: 10004",
    ),
    proof=(
        "All connection attempts to an address fail, and no route names it: five or more from one"
        " host over two seconds or longer, or three refused ones. RocketMQ uses the port, or a"
        " RocketMQ server responds at that host. Or three or more attempts fail, at least half of"
        " them within a second of one to a NameServer, as clients try namesrvAddr in turn."
    ),
    explanation=(
        "The address is wrong, the server is not running, or a firewall blocks the connection. A"
        " client that cannot reach its NameServer or proxy knows no broker: nothing is sent, and"
        ' an application without gRPC only sees "No route info of this topic".'
    ),
    advice=(
        "Find out which server should listen at that address: start it, or correct the address in"
        " the configuration of the clients."
    ),
    grpc=COVERED,
    fold=_Fold,
    connections=lambda row: WHOLE if server_of(row) is not None else None,
    takes_pending=True,
    limits=(
        "Other ports on hosts without RocketMQ traffic are reported only if they are used in place"
        " of a NameServer."
    ),
    needs={Need.CONNECTIONS},
    consequence_of={"wrong-proxy-address"},
    lasts=None,
)
