"""A broker was killed, stopped, or cut off: its clients lost their connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.rows import conversation_record as tcp
from dissectors.rows.outcome import LONG_POLLS
from dissectors.times import text_of_time

from ...context import Context, Need
from ...names import and_again, counted_names, first_of
from ...outages import LOSSES, HostLosses, Outage, host_of_server, named, waiting_of
from ...problem import (
    ANY_TIME,
    Case,
    Confidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    clock,
    clock_after,
    duration,
)
from ...rule import COVERED, DiagnosisRule
from ...spells import joined, spells

_UNREACHABLE_ADVICE: Final = (
    "Check whether the server's host was up at that time. If the server kept running, check the"
    " network path to it: firewalls, routes, links. (A paused or migrating virtual machine does not"
    " respond either.)"
)
_STARTING_ADVICE: Final = (
    "Find out why the server was not listening at that time. (A server that was still starting"
    " needs no action.)"
)
_MOVED_ADVICE: Final = (
    "Find out why the broker moved: a pod or host that was replaced or restarted. Clients use the"
    " old address until their next route request (pollNameServerInterval, default 30000 ms); a"
    " topic with queues on two brokers keeps sends working meanwhile. (The broker already runs at"
    " its new address.)"
)
_PLANNED_ADVICE: Final = (
    "No action needed: the broker was shut down gracefully and came back. A topic with queues on"
    " two brokers survives such a restart without a failed send."
)
NOT_THERE: Final = "not there"


class _Fold(HostLosses):
    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the periods in which a broker was gone, per spell and broker."""
        of_servers = [
            (server.key, server.outages(context))
            for server in self.servers(context)
            if is_broker(server.key, context) or context.is_proxy(server.key)
        ]
        for address, every in of_servers:
            for outages in outages_by_cause(every, self.lasts):
                yield _case(address, outages, context)


def _case(address: str, outages: list[Outage], context: Context) -> Case:
    tally = joined(outage.tally() for outage in outages)
    first = outages[0]
    name = context.broker(address)
    proxy = context.is_proxy(address)
    shut_down = [outage.shut_down(name, context) for outage in outages]
    in_order = None not in shut_down
    gone = "shut down" if in_order else "unreachable" if _unanswered(outages) else how_gone(outages)
    moved = outages[-1].moved_to
    symptoms = f": {symptoms_of(outages)}"
    if moved is not None:
        symptoms = f", then came back at {moved} ({_cost_of(outages)})"
    case = tally.case(
        f"{named(context, address)} {was(gone, outages, context)}"
        f" {first.said(context)}{and_again(outages)}{symptoms}",
        Subject(server=address) if proxy else broker_subject(address, context),
    )
    case.grpc = proxy
    if gone == NOT_THERE:
        case.severity = ProblemSeverity.WARNING
        doubt_end(case, context)
        case.advice = _STARTING_ADVICE
    elif outages[-1].moved_to is not None:
        # Before the others: whatever ended it, clients now need the new address.
        case.advice = _MOVED_ADVICE
    elif _unanswered(outages):
        case.advice = _UNREACHABLE_ADVICE
    ends = [outage.end for outage in outages if outage.end is not None and not outage.lost_sight]
    # The outage lasts until the server is back, not until its last sign of absence.
    case.last_time = max([case.last_time, *ends])
    describe(case, outages, context)
    for time in shut_down:
        if time is not None:
            case.details.append(f"it removed itself from the routes at {clock(time)} UTC")
    if in_order:
        lost = waiting_of([loss for outage in outages for loss in outage.losses])
        # A long poll that ends with the connection is repeated elsewhere, and loses nothing.
        harmless = lost.keys() <= LONG_POLLS and all(outage.end is not None for outage in outages)
        case.severity = ProblemSeverity.INFO if harmless else ProblemSeverity.WARNING
        if harmless:
            case.advice = _PLANNED_ADVICE
    return case


def _unanswered(outages: list[Outage]) -> bool:
    """Return whether it never responded: its host or the network path may be at fault."""
    failed = [row for outage in outages for row in outage.failed]
    return not any(outage.losses for outage in outages) and all(
        row.end == tcp.NO_RESPONSE for row in failed
    )


def describe(case: Case, outages: list[Outage], context: Context) -> None:
    """Set the fields that follow from the outages: periods, state, details, doubts."""
    case.spans = [outage.span() for outage in outages]
    case.state = _state_of(outages)
    # no client had used a server that was only starting
    case.leads_within = 0 if how_gone(outages) == NOT_THERE else ANY_TIME
    case.part = how_gone(outages)
    case.details = _outage_details(context, outages)
    _doubt_untried(case, outages)


def _state_of(outages: list[Outage]) -> ProblemState:
    """Return whether a server was present at the end."""
    back = all(outage.end is not None for outage in outages)
    return ProblemState.OVER if back else ProblemState.GOING_ON


def how_gone(outages: list[Outage]) -> str:
    """Return what happened to a server; one without earlier signs may be starting."""
    return NOT_THERE if all(outage.starting for outage in outages) else "gone"


def outages_by_cause(outages: list[Outage], lasts: int | None) -> Iterator[list[Outage]]:
    """Yield the outages of a server by spell; those of a starting server are separate."""
    for starting in (True, False):
        alike = [outage for outage in outages if outage.starting == starting]
        yield from spells(alike, Outage.span, lasts)


def doubt_end(case: Case, context: Context) -> None:
    """Lower the confidence in a server's return time if the connect may not be captured."""
    if context.quality.with_gaps:
        case.doubt("it may have been back earlier: the capture is incomplete")


def was(gone: str, outages: list[Outage], context: Context) -> str:
    """Return the verb for what happened to a server, which may be only likely."""
    seems = gone == "gone" and all(outage.untried for outage in outages)
    verb = "has been" if outages[0].end is None and context.goes_on else "was"
    return f"{'seems' if seems else verb} {gone}"


def _doubt_untried(case: Case, outages: list[Outage]) -> None:
    """Lower the confidence if a server only closed its connections: each may have been cut."""
    if all(outage.untried for outage in outages):
        alone = sum(len(outage.losses) for outage in outages) == 1
        case.doubt(
            "it may have ended only these connections: no client has tried to connect since",
            Confidence.POSSIBLE if alone else Confidence.LIKELY,
        )
        if alone:
            case.severity = ProblemSeverity.WARNING


def is_broker(address: str, context: Context) -> bool:
    """Return whether an address is a known broker."""
    named_so = context.broker(address) != address
    return named_so or context.servers.get(address) == "broker"


def broker_subject(address: str, context: Context) -> Subject:
    """Return the subject of a broker; with its address if several brokers have its name."""
    name = context.broker(address)
    several = sum(one == name for one in context.names.values()) > 1
    return Subject(broker=name, server=context.own_address(address) if several else None)


def symptoms_of(outages: list[Outage]) -> str:
    """Return the symptoms at the clients."""
    losses = [loss for outage in outages for loss in outage.losses]
    failed = sum(len(outage.failed) for outage in outages)
    waiting = sum(waiting_of(losses).values())
    closed = f"it closed {counted(len(losses), 'connection')}" if losses else ""
    parts = []
    if waiting:
        parts.append(f"{counted(waiting, 'unanswered request')}")
    if failed:
        parts.append(f"{counted(failed, 'failed connection attempt')}")
    if all(outage.untried for outage in outages):
        parts.append("no new connection since")
    return "; ".join(filter(None, (closed, ", ".join(parts))))


def _cost_of(outages: list[Outage]) -> str:
    """Return what clients lost while a server moved to another address."""
    losses = [loss for outage in outages for loss in outage.losses]
    numbers = (
        (len(losses), "connection", "lost"),
        (sum(waiting_of(losses).values()), "request", "unanswered"),
        (sum(len(outage.failed) for outage in outages), "connection attempt", "failed"),
    )
    return ", ".join(f"{counted(number, noun)} {end}" for number, noun, end in numbers if number)


def _outage_details(context: Context, outages: list[Outage]) -> list[str]:
    """Return the affected clients, and how the server came back."""
    lines = []
    if outages[0].starting:
        lines.append("nothing was seen of it before: it may have been starting")
    losses = [loss for outage in outages for loss in outage.losses]
    waiting = waiting_of(losses)
    if waiting:
        lines.append(f"unanswered requests: {counted_names(waiting)}")
    if clients := first_of(context.client(loss.client) for loss in losses):
        lines.append(f"clients that lost a connection: {clients}")
    if hosts := first_of(
        host_of(row.client_address) for outage in outages for row in outage.failed
    ):
        lines.append(f"failed connection attempts from: {hosts}")
    for outage in outages:
        if outage.reregistered is not None:
            at = clock(outage.reregistered)
            lines.append(f"it registered with a NameServer over a new connection at {at} UTC")
    for outage in outages:
        if outage.moved_to is not None and outage.end is not None:
            lines.append(
                f"it came back at {outage.moved_to}, {duration(outage.end - outage.start)} later"
            )
            # Clients use the old address until they ask for the route again.
            if outage.last > outage.end:
                lines.append(
                    "clients tried the old address until"
                    f" {clock_after(outage.start, outage.last)} UTC"
                )
    for outage in outages:
        if outage.end is not None and outage.lost_sight:
            again = text_of_time(outage.end)[:19].replace("T", " ")
            lines.append(f"it was back when a client next used it, at {again} UTC")
    if any(outage.end is None for outage in outages):
        until = "" if context.goes_on else " before the end of the capture"
        lines.append(f"it was not seen again{until}")
    return lines


RULE = DiagnosisRule(
    id="broker-gone",
    severity=ProblemSeverity.ERROR,
    title="A broker or proxy was killed, stopped, or cut off while clients used it",
    searched=(
        "connect to 10911 failed",
        "RemotingConnectException",
        "Connection refused",
        "Connection reset by peer",
        "closeChannel: close the connection to remote address",
        "StatusRuntimeException UNAVAILABLE: io exception",
        "CODE: 10001",
    ),
    proof=(
        "Connection attempts to a broker that clients used before are refused or get no response."
        " Or the broker ends connections with pending requests, and then registers with the"
        " NameServer over a new connection, or accepts no connection for 3 s. A broker that first"
        " removes itself from the routes (104 UNREGISTER_BROKER) was shut down gracefully."
    ),
    explanation=(
        "When a process dies, the operating system ends its connections with FIN or RST and refuses"
        " new ones. Pending requests fail immediately; it is unknown whether the broker carried"
        " them out. Producers try the next broker of the topic. Consumers continue with the other"
        " brokers, or with a slave that has slaveReadEnable=true (default false). The NameServer"
        " removes the broker from the routes when its connection ends, or after 2 minutes without a"
        " registration; clients see that up to 30 s later. If nothing comes back, not even an RST,"
        " the host is down or paused, or the network path is broken: the process may be fine."
    ),
    advice=(
        "Find out why the broker stopped: OOM kill, crash, restart, node drain, disk. To survive"
        " the loss of a broker, a topic needs queues on two brokers: check the route. Sends without"
        " a response may have been stored (see ambiguous-outcome). Clients may keep the old route"
        " for pollNameServerInterval (default 30000 ms). (A planned restart needs no action.)"
    ),
    grpc_explanation=(
        "When a process dies, the operating system ends its connections with FIN or RST and refuses"
        " new ones. Pending calls fail immediately; it is unknown whether they were carried out."
        " Clients reconnect, or use another proxy if they know one. If nothing comes back, not even"
        " an RST, the host is down or paused, or the network path is broken: the process may be"
        " fine."
    ),
    grpc_advice=(
        "Find out why the proxy stopped: OOM kill, crash, restart, node drain. Name several proxies"
        " in setEndpoints, so that 5.x clients can use another one. Calls without a response may"
        " have been carried out. (A planned restart needs no action.)"
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=LOSSES,
    connections=host_of_server,
    takes_pending=True,
    quiet_ends=False,
    references=("apache/rocketmq#2404",),
    limits=(
        "Not visible if no client is connected when the broker dies, or if a relay accepts"
        " connections on its behalf."
    ),
    needs={Need.CONNECTIONS},
    consequence_of={"go-away"},
)
