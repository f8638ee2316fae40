"""Exchanges: a request and its response, or what is known of them.

Pairing is by conversation, direction of the request, and opaque, and it is symmetric: a response
may be seen before its request if packets were captured out of order. Waiting PDUs are limited by
number and time; beyond that they are emitted unpaired, never dropped.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from ..conversations.conversation import Direction, Pdu, Unpaired
from ..findings import Finding, FindingKind
from ..grpc.command import CallCommand
from ..remoting.code_names import REQUEST_NAMES, request_name, response_name
from ..rows.record import ANSWERED, ONEWAY, ORPHAN, UNANSWERED
from ..tcp.capture import packet_number

MAX_REQUESTS: Final = 4096
"""maximum unanswered requests of one direction; more than any client's default concurrency"""
MAX_EARLY: Final = 4096
"""maximum responses of one direction without their request, which may wait behind a hole for 32
packets of many frames each"""
MAX_WAITING: Final = 16384
"""maximum waiting PDUs of all conversations: about 20 MiB"""
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""maximum bytes of their headers, and of their bodies if kept"""
MAX_WAIT: Final = 600 * 1_000_000_000
"""maximum wait of a request, nanoseconds: twenty times the longest long poll"""
SUCCESS: Final = "SUCCESS"
"""name of response code 0, used by nearly all responses"""
EARLY_TOLERANCE: Final = 1_000_000
"""maximum ns by which a response may precede its request: clocks of several cards"""


@final
@mypyc_attr(acyclic=True)
class Exchange:
    """A request and its response, or what is known of them."""

    __slots__ = ("request", "response")

    def __init__(self, request: Pdu | None, response: Pdu | None) -> None:
        self.request = request
        """None for an orphan, a response whose request was not seen"""
        self.response = response
        """None if unanswered or oneway"""

    @property
    def status(self) -> str:
        """`answered`, `unanswered`, `oneway` or `orphan`."""
        if self.request is None:
            return ORPHAN
        if self.response is not None:
            return ANSWERED
        return ONEWAY if self.request.flag & 3 == 2 else UNANSWERED

    @property
    def latency(self) -> int | None:
        """Nanoseconds from request to response; None unless answered."""
        if self.request is None or self.response is None:
            return None
        return self.response.ts - self.request.ts

    @property
    def conversation(self) -> int:
        """Number of the conversation."""
        return self._one.conversation

    @property
    def client_address(self) -> str:
        """`address:port` that sent the request, or received the orphan response."""
        return self.request.src if self.request is not None else self._one.dst

    @property
    def server_address(self) -> str:
        """`address:port` that must respond, or sent the orphan response."""
        return self.request.dst if self.request is not None else self._one.src

    @property
    def _one(self) -> Pdu:
        pdu = self.request if self.request is not None else self.response
        assert pdu is not None
        return pdu


@final
class ExchangeMatcher:
    """Pairs the PDUs of all conversations. Waiting PDUs are stored in their conversation."""

    __slots__ = (
        "_bytes",
        "_findings",
        "_most_bytes",
        "_most_waiting",
        "_unpaired",
        "waiting",
    )

    def __init__(self, findings: list[Finding]) -> None:
        self._findings = findings
        self._unpaired: dict[Direction, Unpaired] = {}
        """by the direction of the requests, in order of appearance"""
        self._bytes: i64 = 0
        self.waiting: i64 = 0
        """waiting PDUs of all conversations: unanswered requests, and responses before their
        request"""
        self._most_waiting: i64 = 0
        self._most_bytes: i64 = 0

    def receive(self, pdu: Pdu, out: list[Exchange]) -> None:
        """Append the exchanges that this PDU settles."""
        flag: i64 = pdu.flag
        if flag & 1:
            self._response(pdu, out)
        elif flag & 2:
            self._check_code(pdu)
            out.append(Exchange(pdu, None))
        else:
            self._check_code(pdu)
            self._request(pdu, out)

    def finish(self, direction: Direction, out: list[Exchange]) -> None:
        """Append the waiting PDUs of a direction whose conversation has ended."""
        unpaired = self._unpaired.pop(direction, None)
        if unpaired is None:
            return
        for pdu in unpaired.requests.values():
            self._note_gone(pdu)
            out.append(Exchange(pdu, None))
        for pdu in unpaired.early.values():
            self._note_gone(pdu)
            out.append(Exchange(None, pdu))
        unpaired.requests.clear()  # a cycle: bodies would be kept until the next collection
        unpaired.early.clear()

    def waiting_since(self, ts: i64) -> list[Pdu]:
        """Return the unanswered requests sent up to this time."""
        pending: list[Pdu] = []
        for unpaired in self._unpaired.values():
            for pdu in unpaired.requests.values():
                if pdu.ts > ts:
                    break
                pending.append(pdu)
        return pending

    def take_most_waiting(self) -> tuple[i64, i64]:
        """Return the peaks of the number and bytes of waiting PDUs since the last call."""
        peaks = self._most_waiting, self._most_bytes
        self._most_waiting, self._most_bytes = self.waiting, self._bytes
        return peaks

    def _request(self, pdu: Pdu, out: list[Exchange]) -> None:
        unpaired = self._unpaired_of(pdu.direction)
        opaque = pdu.opaque
        if unpaired.early:  # packets out of order, or a hole before the request
            response = unpaired.early.pop(opaque, None)
            if response is not None:
                self._note_gone(response)
                if response.ts + EARLY_TOLERANCE >= pdu.ts:
                    out.append(Exchange(pdu, response))
                    return
                out.append(Exchange(None, response))  # to an earlier request with this opaque
        requests = unpaired.requests
        before = requests.get(opaque)
        if before is not None:
            detail = f"opaque {opaque} again in packet {packet_number(pdu.packet)}"
            self._findings.append(before.say(FindingKind.OPAQUE_REUSED, detail))
            self._give_up(unpaired, before, out)
        requests[opaque] = pdu
        self._note_waiting(pdu)
        # Only the oldest is checked: the others are younger, and each new request checks again.
        oldest = next(iter(requests.values()))
        if pdu.ts - oldest.ts > MAX_WAIT:
            self._give_up(unpaired, oldest, out)
        elif len(requests) > MAX_REQUESTS:
            detail = f"{len(requests)} requests of one end are unanswered"
            self._findings.append(oldest.say(FindingKind.PAIRING_LIMIT, detail))
            self._give_up(unpaired, oldest, out)
        elif self.waiting > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._give_up_oldest(out)

    def _response(self, pdu: Pdu, out: list[Exchange]) -> None:
        # Each end counts its own opaques: requests in both directions may carry the same one.
        unpaired = self._unpaired_of(pdu.direction.peer)
        opaque = pdu.opaque
        request = unpaired.requests.get(opaque)
        if request is not None:
            if pdu.ts + EARLY_TOLERANCE >= request.ts:
                del unpaired.requests[opaque]
                self._note_gone(request)
                out.append(Exchange(request, pdu))
                return
            # It responds to an earlier request with the same opaque, released from a hole.
            out.append(Exchange(None, pdu))
            return
        early = unpaired.early
        before = early.get(opaque)
        if before is not None:
            self._give_up_early(unpaired, before, out)
        early[opaque] = pdu
        self._note_waiting(pdu)
        if len(early) > MAX_EARLY:
            self._give_up_early(unpaired, next(iter(early.values())), out)
        elif self.waiting > MAX_WAITING or self._bytes > MAX_WAITING_BYTES:
            self._give_up_oldest(out)

    def _unpaired_of(self, direction: Direction) -> Unpaired:
        """Return the waiting PDUs of the direction of a request."""
        conversation = direction.conversation
        is_first = direction is conversation.first
        unpaired = conversation.first_unpaired if is_first else conversation.second_unpaired
        if unpaired is None:
            unpaired = self._unpaired[direction] = Unpaired()
            if is_first:
                conversation.first_unpaired = unpaired
            else:
                conversation.second_unpaired = unpaired
        return unpaired

    def _note_waiting(self, pdu: Pdu) -> None:
        self.waiting += 1
        self._bytes += pdu.header_length + len(pdu.body)
        if self.waiting > self._most_waiting:
            self._most_waiting = self.waiting
        if self._bytes > self._most_bytes:
            self._most_bytes = self._bytes

    def _note_gone(self, pdu: Pdu) -> None:
        self.waiting -= 1
        self._bytes -= pdu.header_length + len(pdu.body)

    def _give_up(self, unpaired: Unpaired, pdu: Pdu, out: list[Exchange]) -> None:
        del unpaired.requests[pdu.opaque]
        self._note_gone(pdu)
        out.append(Exchange(pdu, None))

    def _give_up_early(self, unpaired: Unpaired, pdu: Pdu, out: list[Exchange]) -> None:
        del unpaired.early[pdu.opaque]
        self._note_gone(pdu)
        out.append(Exchange(None, pdu))

    def _give_up_oldest(self, out: list[Exchange]) -> None:
        """Emit the oldest eighth of all waiting PDUs unpaired."""
        waiting: list[Pdu] = []
        for unpaired in self._unpaired.values():
            waiting.extend(unpaired.requests.values())
            waiting.extend(unpaired.early.values())
        waiting.sort(key=_ts_of)  # several at once, so that sorting is rare
        detail = f"{self.waiting} requests are unanswered"
        for pdu in waiting:
            if self.waiting <= MAX_WAITING // 8 * 7 and self._bytes <= MAX_WAITING_BYTES // 8 * 7:
                return
            if pdu.flag & 1:
                self._give_up_early(self._unpaired[pdu.direction.peer], pdu, out)
            else:
                self._findings.append(pdu.say(FindingKind.PAIRING_LIMIT, detail))
                self._give_up(self._unpaired[pdu.direction], pdu, out)

    def _check_code(self, pdu: Pdu) -> None:
        code = pdu.head.code
        if code not in REQUEST_NAMES and not pdu.head.is_call:
            info = pdu.say(FindingKind.UNKNOWN_CODE, f"request code {code}")
            self._findings.append(info)


def _ts_of(pdu: Pdu) -> int:
    return pdu.ts


def names_of(exchange: Exchange) -> tuple[str | None, str | None]:
    """Return the names of the request and of the response code, by each sender's version."""
    request = exchange.request
    response = exchange.response
    first: str | None = None
    second: str | None = None
    if request is not None:
        first = _call_name(request) if request.head.is_call else None
        if first is None:
            code = request.head.code
            first = REQUEST_NAMES.get(code)
            if first is None:
                first = request_name(code)
    if response is not None:
        code = response.head.code
        command = response.command if response.head.is_call else None
        if isinstance(command, CallCommand):
            return first if request is not None else command.operation, command.name or None
        if code == 0:
            return first, SUCCESS
        request_code = request.head.code if request is not None else None
        # 209 to 211 depend on the request, and 2010 to 2012 changed meaning in 5.1.1.
        second = response_name(code, request_code, int(response.head.version))
    return first, second


def _call_name(request: Pdu) -> str | None:
    command = request.command
    return command.name if isinstance(command, CallCommand) else None
