"""Server silences: requests that waited long or forever without any response of the server.

A silence is a period in which requests wait and the server responds to none at all; one slow
request among quick ones is no silence.
RocketMQ: NettyRemotingAbstract, PullRequestHoldService.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from dissectors.remoting.code_sets import FETCHES, SENDS, STORED
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import stalls_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.outcome import LONG_POLLS
from dissectors.rows.record import ANSWERED, UNANSWERED, ExchangeRecord

from .context import Context
from .keys import by_server, response_times, slowest_of
from .outages import server_of
from .problem import Case, Confidence, ProblemState, Subject, Tally, shown
from .rule import Exchanges, Fold

MAX_INTERVALS: Final = 16_384
"""maximum intervals with responses of one server"""
FIRST_INTERVAL: Final = 50_000_000
"""initial interval, ns"""
MAX_WAITING: Final = 4096
"""maximum requests of one server with a long wait"""
NO_REQUESTS: Final = 3_000_000_000
"""ns without a waiting request after which the end of a silence is unknown"""
PATIENCE: Final = 3_000_000_000
"""minimum ns that requests wait if the silence is ongoing: the default of sendMsgTimeout"""
LONG_US: Final = 400_000
"""µs after which a response counts as late"""
_WAITS_FOR_OTHERS: Final = (STORED - {int(ResponseCode.SUCCESS)}) | {int(ResponseCode.SYSTEM_BUSY)}
"""responses delayed by the disk or a slave, or that explain the delay themselves"""


class ResponseTimes:
    """The first and last response in each interval, independent of the order.

    Intervals grow if there are too many.
    """

    __slots__ = ("_intervals", "_size")

    def __init__(self) -> None:
        self._size = FIRST_INTERVAL
        # Both ends, exact: a broker of 3.2 never answers a batch, but answers a heartbeat 2 ms
        # later. At a resolution of one interval, it would seem to hang.
        self._intervals: dict[int, tuple[int, int]] = {}

    def add(self, times: Sequence[int]) -> None:
        """Add responses."""
        size, ordered, at = self._size, sorted(times), 0
        while at < len(ordered):
            first = ordered[at]
            number = first // size
            at = bisect_left(ordered, (number + 1) * size, at)
            self._note(number, first, ordered[at - 1])
        while len(self._intervals) > MAX_INTERVALS:
            self._size *= 2
            before, self._intervals = self._intervals, {}
            for number, (first, last) in before.items():
                self._note(number // 2, first, last)

    def _note(self, number: int, first: int, last: int) -> None:
        known = self._intervals.get(number)
        if known is None:
            self._intervals[number] = first, last
        elif first < known[0] or last > known[1]:
            self._intervals[number] = min(first, known[0]), max(last, known[1])

    def between(self, begin: int, end: int) -> bool:
        """Return whether there is a response between two times, ns."""
        return any(
            begin < time < end
            for number in self._numbers(begin, end)
            for time in self._intervals[number]
        )

    def _numbers(self, begin: int, end: int) -> Iterable[int]:
        first, last = begin // self._size, end // self._size
        if last - first > len(self._intervals):
            return [number for number in self._intervals if first <= number <= last]
        return [number for number in range(first, last + 1) if number in self._intervals]

    def after(self, time: int) -> bool:
        """Return whether there is a response after a time, ns."""
        return any(last > time for _, last in self._intervals.values())

    def times(self) -> list[tuple[int, int]]:
        """Return the times of the first and last response in each interval, sorted."""
        return sorted(self._intervals.values())


@dataclass(slots=True)
class Wait:
    """A request that waited."""

    row: ExchangeRecord
    begin: int
    until: int
    """time of the response, or of the client's timeout"""
    answered: bool
    certain: bool = True
    """False: the packets do not prove a missing response"""
    pending: bool = False
    """it still waits during the capture"""


@dataclass(slots=True)
class Silence:
    """A period in which a server sent no response."""

    begin: int
    end: int
    waits: list[Wait] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Duration in ns."""
        return self.end - self.begin

    def span(self) -> tuple[int, int]:
        """Return the start and the end."""
        return self.begin, self.end

    @property
    def answered(self) -> list[Wait]:
        """The requests with a late response."""
        return [wait for wait in self.waits if wait.answered]

    @property
    def unanswered(self) -> list[Wait]:
        """The requests without a response."""
        return [wait for wait in self.waits if not wait.answered]

    @property
    def goes_on(self) -> bool:
        """Whether requests are currently waiting."""
        return any(wait.pending for wait in self.waits)


class ServerSilences(Fold):
    """Responses of one server, and the requests that waited for one."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._response_times = ResponseTimes()
        self._waiting: list[ExchangeRecord] = []
        self._connections: dict[tuple[str, int], ConversationRecord] = {}

    def add_exchanges(self, rows: Sequence[ExchangeRecord]) -> None:
        """Add requests to the server."""
        self.note_responses(rows)
        slowest = slowest_of(rows)
        if slowest is not None and slowest < LONG_US:
            return
        for row in rows:
            latency = row.latency_us
            if latency is not None and (
                latency < LONG_US or row.response_code in _WAITS_FOR_OTHERS
            ):
                continue
            # Long polls wait on purpose; their responses still show that the server is alive.
            if row.request_name not in LONG_POLLS and len(self._waiting) < MAX_WAITING:
                self._waiting.append(row)

    def note_responses(self, rows: Sequence[ExchangeRecord]) -> None:
        """Record responses, whether or not their requests count as waiting."""
        self._response_times.add([time for time in response_times(rows) if time is not None])

    def add_connection(self, row: ConversationRecord) -> None:
        """Add a connection to the server."""
        if row.commands and len(self._connections) < MAX_WAITING:
            self._connections[row.capture, row.conversation] = row

    @property
    def answered_any(self) -> bool:
        """Whether the server ever responded."""
        return bool(self._response_times.times())

    def state_of(self, silences: Sequence[Silence]) -> ProblemState | None:
        """Return the state of the server, as far as its responses show."""
        if any(silence.goes_on for silence in silences):
            return ProblemState.GOING_ON
        last = max(silence.end for silence in silences)
        is_over = all(silence.answered for silence in silences) or self.answered_after(last)
        return ProblemState.OVER if is_over else None

    def answered_after(self, time: int) -> bool:
        """Return whether the server responded to anything later."""
        times = self._response_times.times()
        return bool(times) and times[-1][1] > time

    def silences(self, context: Context, least: int) -> list[Silence]:
        """Return the silences of at least this duration in ns, sorted by time."""
        waits = sorted(self._waits(context), key=lambda wait: (wait.begin, wait.until))
        response_spans = self._response_times.times()
        silences: list[Silence] = []
        for wait in waits:
            last = silences[-1] if silences else None
            if _answered_within(response_spans, wait.begin, wait.until):
                # Others got responses meanwhile, unless they waited through a silence.
                if last is not None and _waited_through(response_spans, wait, last):
                    last.waits.append(wait)
                continue
            if (
                last is not None
                # Without a request nobody knows whether the server was silent: three hangs of 5 s
                # with pauses in between are not one of 18 s.
                and wait.begin - last.end <= NO_REQUESTS
                and not _answered_within(response_spans, last.begin, wait.until)
            ):
                last.waits.append(wait)
                last.end = max(last.end, wait.until)
            else:
                silences.append(Silence(wait.begin, wait.until, [wait]))
        at_least = (max(least, PATIENCE) if silence.goes_on else least for silence in silences)
        return [
            silence
            for silence, length in zip(silences, at_least, strict=True)
            if silence.length >= length
        ]

    def silence_case(self, title: str, subject: Subject, silences: Sequence[Silence]) -> Case:
        """Return the case of several silences."""
        waits = [wait for silence in silences for wait in silence.waits]
        tally = Tally()
        for wait in waits:
            tally.add(shown(wait.row), last=wait.until)
        case = tally.case(title, subject)
        case.cover([silence.span() for silence in silences])
        case.state = self.state_of(silences)
        if not any(wait.certain for wait in waits):
            case.doubt(_unsure_reason(silences), Confidence.POSSIBLE)
        return case

    def _waits(self, context: Context) -> Iterable[Wait]:
        yield from self._waits_of(self._waiting, self._connections, context, pending=False)
        if self.pending:
            unended = {(row.capture, row.conversation): row for row in self.unended if row.commands}
            waiting = [row for row in self.pending if row.request_name not in LONG_POLLS]
            yield from self._waits_of(waiting, unended, context, pending=True)

    def _waits_of(
        self,
        rows: Sequence[ExchangeRecord],
        connections: Mapping[tuple[str, int], ConversationRecord],
        context: Context,
        *,
        pending: bool,
    ) -> Iterable[Wait]:
        for row in rows:
            begin = row.request_time
            if begin is None:
                continue
            connection = connections.get((row.capture, row.conversation))
            # Lost packets: the request did not arrive, or its response did not.
            if connection is not None and _stalled(connection, begin, row.response_time):
                continue
            if row.response_time is not None:
                yield Wait(row, begin, row.response_time, True)
                continue
            if connection is None:
                if row.end == "open" and context.last_time is not None:
                    yield Wait(row, begin, context.last_time, False, False, pending)
                continue
            whole = connection.directions == tcp.BOTH and not connection.gaps
            # A hole may contain a response, but not those to all pending requests.
            certain = whole or (pending and connection.directions == tcp.BOTH)
            # A server that ends the connection does not hang: it is gone, or cut the connection.
            if connection.ended_by == tcp.SERVER or not certain:
                continue
            if connection.ended_by == tcp.CLIENT:
                yield Wait(row, begin, connection.end_time, False)
            # The capture ends while it waits. With holes, its response may be missing.
            elif context.last_time is not None and (pending or not context.quality.with_gaps):
                yield Wait(row, begin, context.last_time, False, pending and whole, pending)


def _unsure_reason(silences: Sequence[Silence]) -> str:
    """Return why none of the requests is certain to have no response."""
    if any(silence.goes_on for silence in silences):
        return "bytes are missing in the connections on which the requests wait"
    return "the capture ends while the requests wait"


def _waited_through(response_spans: list[tuple[int, int]], wait: Wait, silence: Silence) -> bool:
    """Return whether a request waited through a silence, and got its response among others."""
    begin, end = wait.begin, silence.end
    long = end - begin >= LONG_US * 1000 and wait.until >= end
    return wait.answered and long and not _answered_within(response_spans, begin, end)


def _stalled(connection: ConversationRecord, begin: int, end: int | None) -> bool:
    """Return whether packets of a connection were unacknowledged while a request waited."""
    until = connection.end_time if end is None else end
    return any(stall.first <= until and stall.last >= begin for stall in stalls_in(connection))


def _answered_within(response_spans: list[tuple[int, int]], begin: int, end: int) -> bool:
    """Return whether a response came after `begin` and well before `end`."""
    at = bisect_right(response_spans, begin, key=itemgetter(1))
    if at == len(response_spans):
        return False
    first, last = response_spans[at]
    # A server that recovers responds to all waiting requests at about the same time: what comes
    # right before the response in question belongs to the same recovery.
    return (first if first > begin else last) < end - FIRST_INTERVAL


OF_CLIENTS: Final = (
    SENDS
    | FETCHES
    | {
        RequestCode.HEART_BEAT,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.QUERY_ASSIGNMENT,
        RequestCode.ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    }
)
"""client requests; those of brokers and administrators may take longer"""
WAITS: Final = (
    Exchanges(key=by_server, requests=OF_CLIENTS, statuses={ANSWERED, UNANSWERED}, of_flow=True),
)
"""Exchanges that `ServerSilences` takes."""
CONNECTIONS: Final = server_of
"""Connections that `ServerSilences` takes."""
