"""A broker sends no responses for seconds while its connections stay open."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.quantities import counted
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context, Need
from ...names import and_again, counted_names, first_of
from ...outages import named
from ...problem import (
    MOST_SPANS,
    Case,
    ProblemSeverity,
    clock,
    duration,
    period,
)
from ...rule import DiagnosisRule
from ...silences import CONNECTIONS, MAX_WAITING, WAITS, ServerSilences, Silence
from ...spells import spells
from .broker_gone import broker_subject, is_broker

LEAST: Final = 1_000_000_000
"""minimum ns of a reported silence: garbage collection pauses are mostly shorter"""

AT_ONCE: Final = 2_000_000_000
"""ns from a cause to the silence: a broker that is back does not hang later because of it"""

LEAST_ALONE: Final = 2_000_000_000
"""minimum ns of a single request that waited: a shorter one is just slow"""

_STARTED: Final = "started"


class _Fold(ServerSilences):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._refused: list[int] = []
        """times of refused connects: the broker was not running"""

    def add_connection(self, row: ConversationRecord) -> None:
        """Add a connection to the server."""
        super().add_connection(row)
        # Only an RST is certain: an unanswered SYN may also be a packet lost on the path.
        if row.end == tcp.REFUSED and len(self._refused) < MAX_WAITING:
            self._refused.append(row.start_time)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the periods in which the broker was silent, per spell."""
        if not is_broker(self.key, context):
            return
        every = [silence for silence in self.silences(context, LEAST) if _is_significant(silence)]
        refused = sorted(self._refused)
        parts: dict[str, list[Silence]] = {}
        for silence in every:
            # A connect refused shortly before: the broker was not running then.
            started = bisect_left(refused, silence.begin) > bisect_left(
                refused, silence.begin - AT_ONCE
            )
            # A broker that has just started is silent for another reason.
            parts.setdefault(_STARTED if started else "", []).append(silence)
        for part, silences in parts.items():
            for found in spells(silences, Silence.span, self.lasts):
                yield self._case(found, context, part)

    def _case(self, silences: list[Silence], context: Context, part: str) -> Case:
        longest = max(silences, key=lambda silence: (silence.goes_on, silence.length))
        start = " right after its start" if part == _STARTED else ""
        case = self.silence_case(
            f"{named(context, self.key)} {'has ' if longest.goes_on else ''}hung"
            f" {_from_to(longest)}{start}{and_again(silences)}: {_what(silences)}",
            broker_subject(self.key, context),
            silences,
        )
        case.part = part
        case.details = _details(context, silences)
        waits = [wait for silence in silences for wait in silence.waits]
        if len(waits) == 1 and waits[0].certain and not waits[0].answered:
            # It alone may have been lost or forgotten by the broker.
            case.doubt("only one request was waiting")
        return case


def _is_significant(silence: Silence) -> bool:
    """Return whether it is more than one slow request."""
    alone = len(silence.waits) == 1 and silence.waits[0].answered
    return not alone or silence.length >= LEAST_ALONE


def _from_to(silence: Silence) -> str:
    length = duration(silence.length)
    if silence.goes_on:
        return f"since {clock(silence.begin)} UTC ({length} so far)"
    at_least = "" if silence.answered else "at least "
    return f"from {period(silence.begin, silence.end)} UTC ({at_least}{length})"


def _what(silences: list[Silence]) -> str:
    late = sum(len(silence.answered) for silence in silences)
    waiting = sum(wait.pending for silence in silences for wait in silence.waits)
    never = sum(len(silence.unanswered) for silence in silences) - waiting
    parts = []
    if waiting:
        parts.append(f"{counted(waiting, 'request')} wait{'s' if waiting == 1 else ''}")
    if never:
        parts.append(f"{counted(never, 'request')} unanswered")
    if late:
        number = f"{late:,}" if parts else counted(late, "request")
        parts.append(f"{number} answered late")
    return ", ".join(parts)


def _details(context: Context, silences: list[Silence]) -> list[str]:
    rows = [wait.row for silence in silences for wait in silence.waits]
    lines = [
        f"requests: {counted_names(Counter(row.request_name or 'request' for row in rows))}",
        f"clients: {first_of(context.client(row.client_address) for row in rows)}",
    ]
    closed = {
        (wait.row.client_address, host_of(wait.row.client_address))
        for silence in silences
        for wait in silence.unanswered
        if wait.certain
    }
    if closed:
        lines.append(f"connections that clients closed: {len(closed)}")
    if len(silences) > 1:
        lines.append(f"all times: {', '.join(map(_from_to, silences[:MOST_SPANS]))}")
    return lines


RULE = DiagnosisRule(
    id="broker-hung",
    severity=ProblemSeverity.ERROR,
    title="A broker sends no responses for seconds while its connections stay open",
    searched=(
        "wait response on the channel timeout",
        "RemotingTimeoutException",
        "sendDefaultImpl call timeout",
        "broker hang",
        "stop the world",
    ),
    proof=(
        "Requests wait for a second or longer, and the broker sends no response on any connection"
        " meanwhile. Then all responses come at once, or the clients give up and close their"
        " connections."
    ),
    explanation=(
        "The operating system still accepts connections and acknowledges packets, so clients see"
        " only silence. The broker process is paused: a long garbage collection, a paused virtual"
        " machine or container, a frozen disk, or a lock that all threads wait for. When it"
        " resumes, it processes the requests in its sockets: sends that the client gave up on are"
        " then stored anyway."
    ),
    advice=(
        "Look for pauses at that time: the broker's garbage collection log (safepoints), CPU"
        " throttling by the hypervisor or container, disk latency, the system log. Check store.log"
        ' for "[NOTIFYME]putMessage in lock cost time" at that time. Producers survive a hang if'
        " one attempt cannot use up sendMsgTimeout (default 3000 ms). sendMsgMaxTimeoutPerRequest"
        " (5.3.3 and later, default off) limits an attempt and leaves time for another broker."
        " sendLatencyFaultEnable (default false) then avoids the hung broker."
    ),
    grpc="`call-given-up` and `call-slow` cover a proxy that hangs.",
    fold=_Fold,
    exchanges=WAITS,
    connections=CONNECTIONS,
    takes_pending=True,
    quiet_ends=False,
    references=("apache/rocketmq#2404", "apache/rocketmq#568"),
    limits=(
        "Silence is visible only while requests are pending: it may have started earlier and lasted"
        " longer. Long polls, which wait on purpose, do not show it."
    ),
    needs={Need.CONNECTIONS},
    rests_on_absence=True,
    consequence_of={"broker-gone", "page-cache-busy", "packets-unacknowledged", "fault-injected"},
    follows_within=AT_ONCE,
)
