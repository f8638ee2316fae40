"""A broker answers nothing for seconds while its connections live."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Final

from dissectors.endpoint import host_of
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_record import ConversationRecord

from ...context import Context
from ...need import Need
from ...outages import named
from ...problem import (
    MOST_SPANS,
    Case,
    Confidence,
    ProblemSeverity,
    Tally,
    clock,
    period,
    seconds,
    shown,
)
from ...refusals import counted, counted_names, times
from ...rule import DiagnosisRule
from ...silences import CONNECTIONS, MAX_WAITING, WAITS, ServerSilences, Silence, unsure_reason
from ...spells import spells
from .broker_gone import broker_subject, is_broker

LEAST: Final = 1_000_000_000
"""ns of a silence that is worth a word: pauses of garbage collection are mostly shorter"""

AT_ONCE: Final = 2_000_000_000
"""ns from a cause to the silence that it leads to: one that is back does not hang for it later"""

LEAST_ALONE: Final = 2_000_000_000
"""ns that one answered request must have waited alone: less is a slow one"""

_STARTED: Final = "started"


class _Fold(ServerSilences):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._refused: list[int] = []
        """when connects were refused: the broker was not there"""

    def add_connection(self, row: ConversationRecord) -> None:
        """Take a connection to the server."""
        super().add_connection(row)
        if row.end == tcp.REFUSED and len(self._refused) < MAX_WAITING:
            self._refused.append(row.start_time)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case of the times in which the broker was silent, for each spell.

        Silences of a broker that has just been started are apart: they have another cause.
        """
        if not is_broker(self.key, context):
            return
        every = [one for one in self.silences(context, LEAST) if _tells(one)]
        refused = sorted(self._refused)
        parts: dict[str, list[Silence]] = {}
        for one in every:
            started = bisect_left(refused, one.begin) > bisect_left(refused, one.begin - AT_ONCE)
            parts.setdefault(_STARTED if started else "", []).append(one)
        for part, silences in parts.items():
            for found in spells(silences, Silence.span, self.lasts):
                yield self._case(found, context, part)

    def _case(self, found: list[Silence], context: Context, part: str) -> Case:
        tally = Tally()
        for silence in found:
            for wait in silence.waits:
                tally.add(shown(wait.row), last=wait.until)
        longest = max(found, key=lambda one: (one.goes_on, one.length))
        again = f", and {times(len(found) - 1)} more" if len(found) > 1 else ""
        start = " right after its start" if part == _STARTED else ""
        case = tally.case(
            f"{named(context, self.key)} {'has ' if longest.goes_on else ''}hung"
            f" {_from_to(longest)}{start}{again}: {_what(found)}",
            broker_subject(self.key, context),
        )
        case.first_time = min(one.begin for one in found)
        case.last_time = max(one.end for one in found)
        case.spans = [(one.begin, one.end) for one in found]
        case.part = part
        case.state = self.state_of(found)
        case.details = _details(context, found)
        waits = [wait for one in found for wait in one.waits]
        if len(waits) == 1 and not waits[0].answered:
            case.confidence = Confidence.LIKELY
            case.reason = "one request alone was waiting"
        if not any(wait.certain for wait in waits):
            case.confidence = Confidence.POSSIBLE
            case.reason = unsure_reason(found)
        return case


def _tells(silence: Silence) -> bool:
    """Return whether it is more than one request that took a while."""
    alone = len(silence.waits) == 1 and silence.waits[0].answered
    return not alone or silence.length >= LEAST_ALONE


def _from_to(silence: Silence) -> str:
    length = seconds(silence.length)
    if silence.goes_on:
        return f"since {clock(silence.begin)} UTC ({length} so far)"
    at_least = "" if silence.answered else "at least "
    return f"from {period(silence.begin, silence.end)} UTC ({at_least}{length})"


def _what(found: list[Silence]) -> str:
    late = sum(len(one.answered) for one in found)
    waiting = sum(wait.pending for one in found for wait in one.waits)
    never = sum(len(one.unanswered) for one in found) - waiting
    said = []
    if waiting:
        said.append(f"{counted(waiting, 'request')} wait{'s' if waiting == 1 else ''}")
    if never:
        said.append(f"{never:,} request{'' if never == 1 else 's'} got no answer")
    if late:
        said.append(f"{late:,} {'was' if late == 1 else 'were'} answered when it went on")
    return ", ".join(said)


def _details(context: Context, found: list[Silence]) -> list[str]:
    rows = [wait.row for one in found for wait in one.waits]
    said = [
        f"requests: {counted_names(Counter(row.request_name or 'request' for row in rows))}",
        f"clients: {', '.join(sorted({context.client(row.requester) for row in rows})[:5])}",
    ]
    closed = {
        (wait.row.requester, host_of(wait.row.requester))
        for one in found
        for wait in one.unanswered
        if wait.certain
    }
    if closed:
        said.append(f"connections that clients gave up: {len(closed)}")
    if len(found) > 1:
        said.append(f"all times: {', '.join(map(_from_to, found[:MOST_SPANS]))}")
    return said


RULE = DiagnosisRule(
    id="broker-hung",
    severity=ProblemSeverity.ERROR,
    title="A broker answers nothing for seconds while its connections live",
    searched=(
        "wait response on the channel timeout",
        "RemotingTimeoutException",
        "sendDefaultImpl call timeout",
        "broker hang",
        "stop the world",
    ),
    proof=(
        "Requests wait for a second or longer, and the broker answers nothing at all meanwhile, on"
        " any connection; then everything is answered at once, or the clients give up and close"
        " their connections."
    ),
    explanation=(
        "The operating system still takes connections and acknowledges packets, so clients notice"
        " nothing but silence. The broker's process stands still: a long garbage collection, a"
        " paused virtual machine or container, a frozen disk, or a lock that all threads wait for."
        " When it goes on, it works off what is in its sockets: sends that the client has given up"
        " are then stored anyway."
    ),
    advice=(
        "Look for pauses at that time: the broker's garbage collection log (safepoints), the"
        " hypervisor's or container's limits, disk latency, the system log. Compare store.log's"
        ' "[NOTIFYME]putMessage in lock cost time". Producers survive it with sendMsgTimeout'
        " (default 3000 ms) larger than one attempt may take: sendMsgMaxTimeoutPerRequest (5.3.3"
        " and later, default off) limits one attempt, so that time is left for another broker."
        " sendLatencyFaultEnable (default false) then avoids the hung one."
    ),
    grpc="`call-given-up` and `call-slow` speak of a proxy that stands still.",
    fold=_Fold,
    exchanges=WAITS,
    connections=CONNECTIONS,
    takes_pending=True,
    quiet_ends=False,
    references=("apache/rocketmq#2404", "apache/rocketmq#568"),
    limits=(
        "A silence is seen only while somebody asks: it may have begun earlier and lasted longer."
        " Long polls, which wait on purpose, do not show it."
    ),
    needs=frozenset((Need.CONNECTIONS,)),
    rests_on_absence=True,
    consequence_of=frozenset(("broker-gone", "page-cache-busy", "packets-unacknowledged")),
    follows_within=AT_ONCE,
)
