"""An idle connection was closed, and the client went on using it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import (
    AFTER_FIN,
    IDLE_MS,
    conversation_fact_in,
    conversation_number_in,
)
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from ...context import Context
from ...keys import by_responder
from ...need import Need
from ...outages import named, server_of
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    span_of_exchange,
)
from ...refusals import times
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...spells import spells

IDLE_MS_DEFAULT: Final = 120_000
"""server: serverChannelMaxIdleTimeSeconds; client: clientChannelMaxIdleTimeSeconds"""
IDLE_SLACK_MS: Final = 10_000
LONG_IDLE_MS: Final = 60_000
"""an idle time after which a connection is closed for nothing else"""
ALIKE: Final = 0.2
"""shorter times are taken for a setting where two connections or more are closed after the like"""
LEAST_ALIKE: Final = 3
MAX_EVENTS: Final = 1024
_FORGOTTEN_ADVICE: Final = (
    "Raise the idle timeout of the load balancer, NAT or firewall above the time between two"
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
        if idle is not None and row.ended_by == tcp.SERVER and len(self._closed) < MAX_EVENTS:
            self._closed[row.capture, row.conversation] = row, idle

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of requests on connections that were closed for being idle, by spell."""
        lost = [row for row in self._waiting if self._closed_before(row) is not None]
        for rows in spells(lost, span_of_exchange, self.lasts):
            yield self._case(rows, context)

    def _closed_before(self, row: ExchangeRecord) -> tuple[ConversationRecord, int] | None:
        """Return the connection of a request, and its idle time, if it was ended for that."""
        closed = self._closed.get((row.capture, row.conversation))
        return closed if closed is not None and self._for_being_idle(closed[1]) else None

    def _case(self, rows: list[ExchangeRecord], context: Context) -> Case:
        tally = Tally()
        found: dict[tuple[str, int], int] = {}
        clients: set[str] = set()
        forgotten = 0
        for row in rows:
            place = row.capture, row.conversation
            closed = self._closed_before(row)
            assert closed is not None
            connection, idle = closed
            found[place] = idle
            clients.add(context.client(row.requester))
            is_reset = connection.end == tcp.RESET
            forgotten += is_reset and conversation_fact_in(connection.facts, AFTER_FIN) is None
            what = f"{row.request_name} on a connection that had been idle for {idle // 1000} s"
            tally.add(asked(row, what))
            end = connection.end_time
            tally.add(Evidence(*place[:1], None, end, place[1], "its end"), count=0)
        name = context.broker(self.key)
        least, most = min(found.values()) // 1000, max(found.values()) // 1000
        idle_said = f"{least} s" if least == most else f"{least} to {most} s"
        case = tally.case(
            f"requests to {named(context, self.key)} were lost {times(tally.count)}: the connection"
            f" had been idle for {idle_said} and was"
            f" {'cut' if forgotten else 'closed'} from its side",
            Subject(broker=name) if name != self.key else Subject(server=self.key),
        )
        case.details = [f"clients: {', '.join(sorted(clients)[:5])}"]
        if forgotten:
            case.details.append(
                "the request itself was answered with RST: a firewall, NAT or load balancer had"
                " forgotten the connection"
            )
            case.advice = _FORGOTTEN_ADVICE
        elif any(abs(idle - IDLE_MS_DEFAULT) > IDLE_SLACK_MS for idle in found.values()):
            case.details.append(
                "RocketMQ closes after 120 s by default: another time is that of a firewall, NAT or"
                " load balancer in between, or a setting"
            )
        return case

    def _for_being_idle(self, idle: int) -> bool:
        """Return whether that is why a connection was closed, and not that the broker stopped."""
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
    ),
    proof=(
        "The server's side closes a connection after a minute or more without payload, or several"
        " after the same shorter time, and a request on it gets no response. Or the first request"
        " after such a pause is answered with RST."
    ),
    explanation=(
        "Both ends close connections on which nothing went by for 120 s; a firewall or NAT in"
        " between may forget them sooner. Whoever sends at that moment loses the request. Clients"
        " send heartbeats to brokers every 30 s, so that this happens to connections without: to"
        " NameServers, or from other programs."
    ),
    advice=(
        "Keep heartbeatBrokerInterval (default 30000 ms) and pollNameServerInterval (default 30000"
        " ms) below the idle timeout of what is in between. clientChannelMaxIdleTimeSeconds and"
        " serverChannelMaxIdleTimeSeconds have the default 120."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=by_responder, statuses=frozenset((UNANSWERED,))),),
    connections=server_of,
    references=("apache/rocketmq#3889", "alibaba/rocketmq#186"),
    limits="A close that hits no request is by design and is not said.",
    needs=frozenset((Need.CONNECTIONS,)),
)
