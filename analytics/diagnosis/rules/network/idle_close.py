"""An idle connection was closed, and the client continued to use it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.quantities import counted
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import (
    AFTER_FIN,
    IDLE_MS,
    conversation_fact_in,
    conversation_number_in,
    stalls_in,
)
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context, Need
from ...keys import by_server
from ...names import first_of
from ...outages import LONG_IDLE_MS, named, server_of, subject_at
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    Tally,
    asked,
    span_of_exchange,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...spells import spells

IDLE_MS_DEFAULT: Final = 120_000
"""server: serverChannelMaxIdleTimeSeconds; client: clientChannelMaxIdleTimeSeconds"""
IDLE_SLACK_MS: Final = 10_000
ALIKE: Final = 0.2
"""shorter times count as a setting if two or more connections were closed after a similar time"""
LEAST_ALIKE: Final = 3
MAX_EVENTS: Final = 1024
FORGOTTEN_ADVICE: Final = (
    "Raise the idle timeout of the load balancer, NAT, or firewall above the time between two"
    " requests, or shorten that time: heartbeatBrokerInterval and pollNameServerInterval (both"
    " 30000 ms by default), keepalive for gRPC."
)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._closed: dict[tuple[str, int], tuple[ConversationRecord, int]] = {}
        self._waiting: list[ExchangeRecord] = []

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.end in ("reset", "closed") and len(self._waiting) < MAX_EVENTS:
            self._waiting.append(row)

    def add_connection(self, row: ConversationRecord) -> None:
        idle = conversation_number_in(row.facts, IDLE_MS)
        # Lost packets are reported by `packets-unacknowledged`.
        closed = idle is not None and row.ended_by == tcp.SERVER and not stalls_in(row)
        if closed and idle is not None and len(self._closed) < MAX_EVENTS:
            self._closed[row.capture, row.conversation] = row, idle

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of requests on connections that were closed as idle, per spell."""
        lost = [row for row in self._waiting if self._closed_before(row) is not None]
        for rows in spells(lost, span_of_exchange, self.lasts):
            yield self._case(rows, context)

    def _closed_before(self, row: ExchangeRecord) -> tuple[ConversationRecord, int] | None:
        """Return the connection of a request and its idle time, if it was closed as idle."""
        closed = self._closed.get((row.capture, row.conversation))
        return closed if closed is not None and self._for_being_idle(closed[1]) else None

    def _case(self, rows: list[ExchangeRecord], context: Context) -> Case:
        tally = Tally()
        idle_times: dict[tuple[str, int], int] = {}
        clients: set[str] = set()
        forgotten = 0
        for row in rows:
            place = row.capture, row.conversation
            closed = self._closed_before(row)
            assert closed is not None
            connection, idle = closed
            idle_times[place] = idle
            clients.add(context.client(row.client_address))
            is_reset = connection.end == tcp.RESET
            # An RST without a FIN before it comes from a device that no longer knows the
            # connection. After its own FIN, a server sends RST, too.
            forgotten += is_reset and conversation_fact_in(connection.facts, AFTER_FIN) is None
            what = f"{row.request_name} on a connection that had been idle for {idle // 1000} s"
            tally.add(asked(row, what))
            end = connection.end_time
            tally.add(Evidence(*place[:1], None, end, place[1], "the connection ends"), count=0)
        least, most = min(idle_times.values()) // 1000, max(idle_times.values()) // 1000
        idle_said = f"{least} s" if least == most else f"{least} to {most} s"
        one = len(idle_times) == 1
        case = tally.case(
            f"{counted(tally.count, 'request')} to {named(context, self.key)}"
            f" {'was' if tally.count == 1 else 'were'} lost: the"
            f" {'connection' if one else 'connections'} had been idle for {idle_said} and"
            f" {'was' if one else 'were'} {'cut' if forgotten else 'closed'} by the server's side",
            subject_at(context, self.key),
        )
        case.details = [f"clients: {first_of(clients)}"]
        if forgotten:
            case.details.append(
                "the response to the request was an RST: a firewall, NAT, or load balancer had"
                " forgotten the connection"
            )
            case.advice = FORGOTTEN_ADVICE
        elif any(abs(idle - IDLE_MS_DEFAULT) > IDLE_SLACK_MS for idle in idle_times.values()):
            case.details.append(
                "RocketMQ closes idle connections after 120 s by default: another time points to a"
                " firewall, NAT, or load balancer in between, or to a setting"
            )
        return case

    def _for_being_idle(self, idle: int) -> bool:
        """Return whether a connection was closed as idle, and not by a stopping broker."""
        # `_closed` has this one, too: two others were closed after a similar time.
        alike = sum(abs(other - idle) <= ALIKE * idle for _, other in self._closed.values())
        return idle >= LONG_IDLE_MS or alike >= LEAST_ALIKE


RULE = DiagnosisRule(
    id="idle-close",
    severity=ProblemSeverity.WARNING,
    title="An idle connection is closed, and the next request on it is lost",
    searched=(
        "closeChannel",
        "connection reset after idle",
        "IDLE exception",
        "channel idle",
        "load balancer idle timeout",
        "first request after a pause times out",
    ),
    proof=(
        "The server's side closes a connection after a minute or more without payload (or several"
        " connections after the same shorter time), and a request on it gets no response. Or the"
        " first request after such a pause gets an RST. Or it is retransmitted without an"
        " acknowledgement after a pause of a minute or more, while the server responds on other"
        " connections (found by packets-unacknowledged)."
    ),
    explanation=(
        "Both ends close connections that were idle for 120 s; a firewall or NAT in between may"
        " drop them sooner. A request sent at that moment is lost. Clients send heartbeats to"
        " brokers every 30 s, so this affects connections without heartbeats: to NameServers, or"
        " from other programs."
    ),
    advice=(
        "Keep heartbeatBrokerInterval (default 30000 ms) and pollNameServerInterval (default 30000"
        " ms) below the idle timeout of devices in between. clientChannelMaxIdleTimeSeconds and"
        " serverChannelMaxIdleTimeSeconds default to 120."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=by_server, statuses={UNANSWERED}),),
    connections=server_of,
    references=("apache/rocketmq#3889", "alibaba/rocketmq#186"),
    limits="A close that affects no request is normal and not reported.",
    needs={Need.CONNECTIONS},
)
