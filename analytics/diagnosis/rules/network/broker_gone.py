"""A broker was killed, stopped or cut off: its clients lost their connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dissectors.endpoint import host_of
from dissectors.rows import conversation_record as tcp
from dissectors.rows.outcome import LONG_POLLS
from dissectors.times import text_of_time

from ...context import Context
from ...need import Need
from ...outages import LOSSES, HostLosses, Outage, host_of_server, merged, named, waiting_of
from ...problem import (
    ANY_TIME,
    Case,
    Confidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    clock,
    clock_after,
    seconds,
)
from ...refusals import counted, counted_names, times
from ...rule import COVERED, DiagnosisRule
from ...spells import spells

_PROXY_ADVICE: Final = (
    "Find out why the proxy stopped: OOM kill, crash, restart, node drain. Name several proxies in"
    " setEndpoints, so that 5.x clients can use another one. Calls without a response may have been"
    " carried out. (A planned restart needs no action.)"
)
_UNREACHABLE_ADVICE: Final = (
    "Check whether its host was up at that time. If the broker kept running, check the network path"
    " to it: firewalls, routes, links. (A paused or migrating virtual machine does not answer"
    " either.)"
)
_STARTING_ADVICE: Final = (
    "Find out why it was not listening at that time. (A server that was still starting needs no"
    " action.)"
)
_MOVED_ADVICE: Final = (
    "Nothing needs to be started: the broker runs at its new address. Find out why it moved: a pod"
    " or host that was replaced or restarted. Clients use the old address until their next route"
    " request (pollNameServerInterval, default 30000 ms); a topic with queues on two brokers keeps"
    " sends working meanwhile."
)
_PLANNED_ADVICE: Final = (
    "No action needed: the broker was shut down in order and came back. A topic with queues on two"
    " brokers survives such a restart without a failed send."
)
NOT_THERE: Final = "not there"


class _Fold(HostLosses):
    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the times in which a broker was gone, for each spell of each broker."""
        of_servers = [
            (server.key, server.outages(context))
            for server in self.servers(context)
            if is_broker(server.key, context) or context.is_proxy(server.key)
        ]
        for address, every in of_servers:
            for outages in outages_by_cause(every, self.lasts):
                if how_gone(outages) != NOT_THERE or not _moves_to(address, outages, context):
                    yield _case(address, outages, context)


def _case(address: str, outages: list[Outage], context: Context) -> Case:
    tally = merged(outages)
    first = outages[0]
    again = f", and {times(len(outages) - 1)} more" if len(outages) > 1 else ""
    name = context.broker(address)
    proxy = context.is_proxy(address)
    shut_down = [one.shut_down(name, context) for one in outages]
    in_order = None not in shut_down
    gone = "shut down" if in_order else "unreachable" if _unanswered(outages) else how_gone(outages)
    moved = outages[-1].moved_to
    where = f", then came back at {moved}" if moved is not None else ""
    case = tally.case(
        f"{named(context, address)} {was(gone, outages, context)} {first.said(context)}{again}"
        f"{where}: {what_happened(outages)}",
        Subject(server=address) if proxy else broker_subject(address, context),
    )
    if gone == NOT_THERE:
        case.severity = ProblemSeverity.WARNING
        doubt_end(case, context)
        case.advice = _STARTING_ADVICE
    elif outages[-1].moved_to is not None:
        case.advice = _MOVED_ADVICE
    elif _unanswered(outages):
        case.advice = _UNREACHABLE_ADVICE
    elif proxy:
        case.advice = _PROXY_ADVICE
    ends = [one.end for one in outages if one.end is not None and not one.lost_sight]
    case.last_time = max([case.last_time, *ends])
    case.spans = [one.span() for one in outages]
    case.state = state_of(outages)
    case.leads_within = leads_within(outages)
    case.part = how_gone(outages)
    case.details = outage_details(context, outages)
    doubt_untried(case, outages)
    for time in shut_down:
        if time is not None:
            case.details.append(f"it left the routes in order at {clock(time)} UTC")
    if in_order:
        lost = waiting_of([loss for one in outages for loss in one.losses])
        harmless = lost.keys() <= LONG_POLLS and all(one.end is not None for one in outages)
        case.severity = ProblemSeverity.INFO if harmless else ProblemSeverity.WARNING
        if harmless:
            case.advice = _PLANNED_ADVICE
    return case


def _unanswered(outages: list[Outage]) -> bool:
    """Return whether nothing came back from it: its host or the way to it may be at fault."""
    failed = [row for one in outages for row in one.failed]
    return not any(one.losses for one in outages) and all(
        row.end == tcp.NO_ANSWER for row in failed
    )


def _moves_to(address: str, outages: list[Outage], context: Context) -> bool:
    """Return whether a broker that was elsewhere came to be at an address, which is no outage."""
    seats = context.seats.get(context.broker(address), {})
    own = context.own_address(address)
    first = seats[own][0] if own in seats else None
    return first is not None and any(
        other != own and since < outages[0].start and until <= first
        for other, (since, until) in seats.items()
    )


def state_of(outages: list[Outage]) -> ProblemState:
    """Return whether a server was there at the end."""
    back = all(one.end is not None for one in outages)
    return ProblemState.OVER if back else ProblemState.GOING_ON


def how_gone(outages: list[Outage]) -> str:
    """Return what happened to a server: one of which nothing was seen before may be starting."""
    return NOT_THERE if all(one.starting for one in outages) else "gone"


def outages_by_cause(outages: list[Outage], lasts: int | None) -> Iterator[list[Outage]]:
    """Yield the outages of a server by spell: that of one that was starting is apart."""
    for starting in (True, False):
        alike = [one for one in outages if one.starting == starting]
        yield from spells(alike, Outage.span, lasts)


def doubt_end(case: Case, context: Context) -> None:
    """Be less sure of when a server came where the connect that shows it may not be captured."""
    if context.quality.with_gaps:
        case.confidence = Confidence.LIKELY
        case.reason = "it may have been there earlier: the capture is not whole"


def was(gone: str, outages: list[Outage], context: Context) -> str:
    """Return the verb of what happened to a server, which may be only likely."""
    seems = gone == "gone" and all(one.untried for one in outages)
    verb = "has been" if outages[0].end is None and context.goes_on else "was"
    return f"{'seems' if seems else verb} {gone}"


def doubt_untried(case: Case, outages: list[Outage]) -> None:
    """Be less sure of a server that only ended its connections: each may have been cut."""
    if all(one.untried for one in outages):
        alone = sum(len(one.losses) for one in outages) == 1
        case.confidence = Confidence.POSSIBLE if alone else Confidence.LIKELY
        case.reason = "it ended its last connections; nobody has tried to connect since"
        if alone:
            case.severity = ProblemSeverity.WARNING


def leads_within(outages: list[Outage]) -> int:
    """Return how soon others may follow: nobody had used a server that was only starting."""
    return 0 if how_gone(outages) == NOT_THERE else ANY_TIME


def is_broker(address: str, context: Context) -> bool:
    """Return whether a broker is known at an address."""
    named_so = context.broker(address) != address
    return named_so or context.servers.get(address) == "broker"


def broker_subject(address: str, context: Context) -> Subject:
    """Return the subject of a broker at an address: with that where others have its name."""
    name = context.broker(address)
    several = sum(one == name for one in context.names.values()) > 1
    return Subject(broker=name, server=context.own_address(address) if several else None)


def what_happened(outages: list[Outage]) -> str:
    """Return what clients saw of it."""
    losses = [loss for one in outages for loss in one.losses]
    failed = sum(len(one.failed) for one in outages)
    waiting = sum(waiting_of(losses).values())
    said = []
    if losses:
        said.append(f"{counted(len(losses), 'connection')} ended by it")
    if waiting:
        said.append(f"{counted(waiting, 'request')} without answer")
    if failed:
        said.append(f"{counted(failed, 'connect')} failed")
    if all(one.untried for one in outages):
        said.append("no new one since")
    return ", ".join(said)


def outage_details(context: Context, outages: list[Outage]) -> list[str]:
    """Return who was hit, and how it came back."""
    said = []
    if outages[0].starting:
        said.append("nothing was seen of it before: it may have been starting")
    losses = [loss for one in outages for loss in one.losses]
    waiting = waiting_of(losses)
    if waiting:
        said.append(f"requests without answer: {counted_names(waiting)}")
    clients = sorted({context.client(loss.client) for loss in losses})
    if clients:
        said.append(f"clients that lost a connection: {', '.join(clients[:5])}")
    hosts = sorted({host_of(row.client) for one in outages for row in one.failed})
    if hosts:
        said.append(f"connects failed from: {', '.join(hosts[:5])}")
    for one in outages:
        if one.began_anew is not None:
            at = clock(one.began_anew)
            said.append(f"it registered at a NameServer over a new connection at {at} UTC")
    for one in outages:
        if one.moved_to is not None and one.end is not None:
            said.append(f"it came back at {one.moved_to}, {seconds(one.end - one.start)} later")
            if one.last > one.end:
                said.append(
                    f"clients tried the old address until {clock_after(one.start, one.last)} UTC"
                )
    for one in outages:
        if one.end is not None and one.lost_sight:
            again = text_of_time(one.end)[:19].replace("T", " ")
            said.append(f"it was there again when it was next used, at {again} UTC")
    if any(one.end is None for one in outages):
        until = "" if context.goes_on else " before the end of the capture"
        said.append(f"it was not seen again{until}")
    return said


RULE = DiagnosisRule(
    id="broker-gone",
    severity=ProblemSeverity.ERROR,
    title="A broker or proxy was killed, stopped or cut off while clients used it",
    searched=(
        "connect to 10911 failed",
        "RemotingConnectException",
        "Connection refused",
        "Connection reset by peer",
        "closeChannel: close the connection to remote address",
        "StatusRuntimeException UNAVAILABLE: io exception",
    ),
    proof=(
        "Connects to a broker that clients used before are refused or not answered. Or it ends"
        " connections on which requests wait, and then registers at the NameServer over a new"
        " connection or takes no connection for 3 s. One that takes itself out of the routes first"
        " (104 UNREGISTER_BROKER) was shut down in order."
    ),
    explanation=(
        "A process that dies leaves its connections to the operating system, which ends them by FIN"
        " or RST and refuses new ones. Requests that were waiting fail at once; whether the broker"
        " carried them out is unknown. Producers try the next broker of the topic, consumers"
        " go on with the other brokers, or with a slave. The NameServer takes the broker out of the"
        " routes when its connection ends, or after 2 minutes without a registration; clients see"
        " that up to 30 s later. Where nothing comes back, not even a RST, the host is down or"
        " paused, or the way to it is cut: the process may be well."
    ),
    advice=(
        "Find out why the broker stopped: OOM kill, crash, restart, node drain, disk. A topic needs"
        " queues on two brokers to survive the loss of one: check the route. Sends without a"
        " response may have been stored (see ambiguous-outcome). A client may keep the old route"
        " for pollNameServerInterval (default 30000 ms). (A planned restart needs no action.)"
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=LOSSES,
    connections=host_of_server,
    takes_pending=True,
    quiet_ends=False,
    references=("apache/rocketmq#2404",),
    limits=(
        "A broker that dies while nobody is connected, or behind a relay that takes connections in"
        " its place, is not noticed."
    ),
    needs=frozenset((Need.CONNECTIONS,)),
    consequence_of=frozenset(("go-away",)),
)
