"""From commands as they were seen to send requests with their outcomes, in the order of sending.

Rules: what is replayed must be known before it is due, so the reading is ahead of it: until the
response, a further attempt or the end of a transaction was seen, but for no longer than a bounded
time of the capture and within bounded memory. What comes later still completes the outcome that
the comparison uses; it no longer changes what is sent.

A request with the UNIQ_KEY of one that failed or was not answered is another attempt of the same
message (a producer keeps that id when it tries again): the message is replayed once, and its
captured outcome is that of the last attempt. The inner hop of a relay is not an attempt
(`relay_hops`): the outcome is that of the outer hop, as the client saw it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.budget import Budget
from dissectors.conversations.conversation import Pdu
from dissectors.rows.broker_names import BrokerNames
from dissectors.rows.record import ONEWAY, UNANSWERED
from dissectors.rows.relays import Relay
from dissectors.times import SECOND

from ..message import TransactionState
from .captured_send import (
    END_TRANSACTION,
    CapturedSend,
    Origin,
    Refusal,
    Refused,
    Seen,
    SkipReason,
    answered,
    any_header_of,
    send_header_of,
    transaction_state_of,
)
from .relay_hops import InnerHop, RelayHops
from .sending_order import CLIENT_WAITS, SendingOrder

MAX_WAIT: Final = 15 * SECOND
"""capture time that a response, another attempt or the first end of a transaction is waited for"""
MAX_CHECK_WAIT: Final = 90 * SECOND
"""capture time that the answer to a check-back is waited for"""
MAX_WAITING: Final = 10_000
"""requests that wait"""
MAX_WAITING_BYTES: Final = 32 * 1024 * 1024
"""their bodies"""
MAX_KEYS: Final = 16_384
"""messages that are remembered for the sake of further attempts, each some 2 KiB; a client tries
again after 3 s"""
MOST_OPEN: Final = 16_384
"""requests without answer that are remembered for the sake of those sent meanwhile"""
CONNECTION_BYTES: Final = 8192
"""bytes of a connection that a send which waits keeps in memory"""

Key = tuple[str, int, int, int]


class _Pending(NamedTuple):
    """A request whose answer is waited for: the first or a further attempt of a message."""

    captured: CapturedSend
    """the send that has the outcome"""
    origin: Origin
    """the request"""
    broker: str
    """broker that it was sent to"""
    pdu: Pdu | None
    """of a further attempt the request in the capture; None where it was let go"""


class LookAhead:
    """Requests and responses as they were seen; send requests out, in order, as they settle."""

    def __init__(
        self,
        raw: bool = False,
        names: BrokerNames | None = None,
        relays: Iterable[Relay] = (),
        budget: Budget | None = None,
    ) -> None:
        """`raw`: requests are what is replayed, whatever they are; no two are one message.

        `relays`: those that are known before. `budget`: says what was bounded, and where.
        """
        self._names = BrokerNames() if names is None else names
        self._raw = raw
        bound = (Budget() if budget is None else budget).bound
        self._waiting = bound("sends that wait for answers", MAX_WAITING, "went on without")
        self._bodies = bound("bytes of sends that wait", MAX_WAITING_BYTES, "went on without")
        self._known = bound("messages that may be tried again", MAX_KEYS, "forgotten")
        self._unanswered = bound("requests without answer", MOST_OPEN, "forgotten")
        self._waiting.held = self._bodies.held = 0
        self._queue: deque[CapturedSend | Refused] = deque()
        # the first one of each is often asked for and removed, which takes long in a plain dict
        self._pending: OrderedDict[Key, _Pending] = OrderedDict()
        self._requests: deque[tuple[Key, int]] = deque()  # those of `_pending` with a request
        self._request_bytes = 0
        self._open: OrderedDict[tuple[str, int], OrderedDict[Key, CapturedSend]] = (
            OrderedDict()  # the latest used last
        )
        self._opened = 0
        self._keys: OrderedDict[str, CapturedSend] = OrderedDict()
        self._hops = RelayHops(relays)
        self._order = SendingOrder()
        self._responding: OrderedDict[int, None] = OrderedDict()  # connections of logs, by hash
        self._now = 0

    def request(self, seen: Seen) -> None:
        """Take the next request: a send or the end of a transaction; others do not come here."""
        self._now = max(self._now, seen.origin.time)
        if seen.code == END_TRANSACTION and not self._raw:
            self._end_transaction(seen)
            return
        header = any_header_of(seen) if self._raw else send_header_of(seen)
        if isinstance(header, Refusal):
            self._refuse(seen, header)
            return
        broker = header.broker_name or self._names.of(seen.origin.responder)
        captured = CapturedSend(seen, header, broker)
        captured.answer.responder, captured.answer.broker = seen.origin.responder, broker
        key = header.unique_key
        if key is not None and (
            self._is_inner_hop(seen, key)
            or (not self._raw and self._is_another_attempt(captured, key))
        ):
            return
        captured.due = self._now + MAX_WAIT
        if seen.pdu is not None:
            captured.gaps = seen.pdu.direction.peer.reassembler.gaps
        self._order.request(captured)
        captured.held = seen.size
        if (seen.origin.capture, seen.origin.conversation) not in self._open:
            captured.held += CONNECTION_BYTES
        self._note_open(captured, seen)
        if seen.is_oneway:
            captured.answer.status = ONEWAY
            captured.settled = self._raw or not header.is_half
        self._queue.append(captured)
        self._bodies.held += captured.held

    def response(
        self,
        key: Key,
        time: int,
        code: int,
        remark: str | None,
        fields: dict[str, str],
        pdu: Pdu | None = None,
    ) -> None:
        """Take the next response to a send request that was given to `request`."""
        self._now = max(self._now, time)
        found = self._pending.pop(key, None)
        if pdu is None:
            self._note_responding(key)
        if found is None:
            return
        captured, origin, broker, request = found
        self._close(key, captured)
        self._order.response(captured, origin, time)
        answer = captured.answer
        unique_key = captured.header.unique_key or ""
        proofs = self._hops.answer(origin, unique_key, time, fields.get("msgId") or "")
        for one in proofs:
            _note_inner_hop(captured, one)
        # the late answer to an earlier attempt says nothing new, nor does that of an inner hop
        if not answer.is_stored or any(one.outer == origin for one in proofs):
            answered(answer, code, remark, fields)
            answer.latency_us = (time - origin.time) // 1000
            if not captured.released:  # else nobody asks any more
                answer.pdu, answer.request = pdu, request or captured.seen.pdu
            answer.responder, answer.broker = origin.responder, broker
        if not answer.is_stored or (not self._raw and self._hops.may_be_inner(origin, unique_key)):
            return
        if self._raw or not captured.header.is_half or _is_final(captured.state):
            captured.settled = True
            self._forget(captured)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the bodies that wait."""
        return self._bodies.held

    @property
    def relays(self) -> set[Relay]:
        """Relays that are known so far."""
        return self._hops.relays

    def at(self, time: int) -> None:
        """Advance to a time of the capture."""
        self._now = max(self._now, time)

    def take(self, everything: bool = False) -> list[CapturedSend | Refused]:
        """Return the requests that are settled, in the order sent; `everything`: nothing more
        comes.
        """
        taken: list[CapturedSend | Refused] = []
        queue = self._queue
        while queue:
            first = queue[0]
            if isinstance(first, CapturedSend):
                if not (everything or first.settled or self._is_over(first)):
                    break
                first.settled = True
                first.answer.uncaptured = self._is_uncaptured(first, everything)
                self._bodies.held -= first.held
            else:
                self._bodies.held -= first.seen.size
            taken.append(queue.popleft())
        return taken

    def _is_over(self, captured: CapturedSend) -> bool:
        if captured.due <= self._now:
            return True
        for bound, held in ((self._waiting, len(self._queue)), (self._bodies, self._bodies.held)):
            if held > bound.most:
                bound.end(_place_of(captured.seen.origin))
                return True
        return False

    def _is_uncaptured(self, captured: CapturedSend, ended: bool) -> bool:
        """Return whether a response may be missing in the capture alone.

        It may where the other direction was not captured, or has a hole since, and where the
        capture ended before a client gives up.
        """
        if captured.answer.status != UNANSWERED:
            return False
        seen = captured.seen
        ended = ended and self._now - seen.origin.time < CLIENT_WAITS
        if seen.pdu is None:
            return ended or _connection_of(seen.key) not in self._responding
        other = seen.pdu.direction.peer
        if not other.packets or other.reassembler.gaps > captured.gaps:
            return True
        return ended and not seen.pdu.direction.conversation.closing

    def _note_responding(self, key: Key) -> None:
        """Remember that a connection of a log has responses."""
        connection = _connection_of(key)
        self._responding.pop(connection, None)
        self._responding[connection] = None
        if len(self._responding) > MAX_KEYS:
            del self._responding[next(iter(self._responding))]

    def _refuse(self, seen: Seen, refusal: Refusal) -> Refused:
        seen.body, seen.messages, seen.pdu = b"", None, None
        refused = Refused(seen, refusal)
        self._queue.append(refused)
        self._bodies.held += seen.size
        return refused

    def _is_inner_hop(self, seen: Seen, key: str) -> bool:
        """Return whether a relay made the request; it is not replayed then."""
        outer = self._hops.request(seen.origin, key)
        if outer is not None:
            self._refuse(seen, _inner_hop_of(outer))
        return outer is not None

    def _is_another_attempt(self, captured: CapturedSend, key: str) -> bool:
        """Return whether the message is known and failed so far; the request is then its own."""
        seen = captured.seen
        if seen.is_oneway:
            return False
        first = self._keys.get(key)
        if first is None or first.answer.is_stored or first.header.topic != captured.header.topic:
            self._remember(key, captured)
            return False
        answer = first.answer
        answer.attempts += 1
        answer.responder, answer.broker = seen.origin.responder, captured.broker
        answer.status, answer.code, answer.remark = UNANSWERED, None, None
        first.due = self._now + MAX_WAIT
        self._wait_for(seen, first, captured.broker, seen.pdu)
        detail = f"attempt {answer.attempts} of {key}"
        refused = self._refuse(seen, Refusal(SkipReason.ANOTHER_ATTEMPT, detail))
        first.further_attempts.append(refused)
        return True

    def _remember(self, key: str, captured: CapturedSend) -> None:
        keys = self._keys
        keys.pop(key, None)
        keys[key] = captured
        while keys:
            oldest = next(iter(keys))
            if not self._is_past(keys[oldest]):
                if len(keys) <= self._known.most:
                    return
                self._known.end(_place_of(keys[oldest].seen.origin))
            del keys[oldest]

    def _forget(self, captured: CapturedSend) -> None:
        """Note that the message is stored: who sends its id again sends another message."""
        key = captured.header.unique_key
        if key is not None and self._keys.get(key) is captured:
            del self._keys[key]

    def _wait_for(
        self, seen: Seen, captured: CapturedSend, broker: str, further: Pdu | None = None
    ) -> None:
        pending = self._pending
        pending[seen.key] = _Pending(captured, seen.origin, broker, further)
        if further is not None:
            self._hold_request(seen)
        while len(pending) > 1:
            oldest = next(iter(pending))
            if not self._is_past(pending[oldest].captured):
                if len(pending) <= self._known.most:
                    return
                self._known.end(_place_of(pending[oldest].origin))
            del pending[oldest]

    def _hold_request(self, seen: Seen) -> None:
        """Let the earliest requests go where those that are held take too much."""
        self._requests.append((seen.key, seen.size))
        self._request_bytes += seen.size
        while self._request_bytes > self._bodies.most:
            key, size = self._requests.popleft()
            self._request_bytes -= size
            found = self._pending.get(key)
            if found is not None:
                self._pending[key] = found._replace(pdu=None)

    def _is_past(self, captured: CapturedSend) -> bool:
        """Return whether nothing that comes now can still belong to it."""
        return 0 < captured.due < self._now - MAX_CHECK_WAIT

    def _note_open(self, captured: CapturedSend, seen: Seen) -> None:
        if seen.is_oneway:
            return
        self._wait_for(seen, captured, captured.broker)
        place = seen.origin.capture, seen.origin.conversation
        others = self._open.pop(place, None) or OrderedDict()
        while others and next(iter(others.values())).due <= self._now:
            del others[next(iter(others))]
            self._opened -= 1
        self._opened += seen.key not in others
        others[seen.key] = captured
        self._open[place] = others
        self._forget_open()

    def _forget_open(self) -> None:
        """Forget the connections on which nothing was sent for the longest time.

        What was waited for no longer says nothing of what was sent meanwhile.
        """
        while self._opened:
            place, others = next(iter(self._open.items()))
            latest = others[next(reversed(others))]
            if latest.due > self._now:
                if self._opened <= self._unanswered.most:
                    return
                self._unanswered.end(_place_of(latest.seen.origin), len(others))
            self._opened -= len(others)
            del self._open[place]

    def _close(self, key: Key, captured: CapturedSend) -> None:
        """Note the answer: what was sent since the request was sent without waiting for it."""
        place = key[0], key[1]
        others = self._open.get(place)
        if others is None or others.pop(key, None) is None:
            return
        self._opened -= 1
        for one in captured.overtaken_by:
            one.overlapped = captured.overlapped = True
        captured.overtaken_by = []
        asked = captured.seen.origin.time
        for other in reversed(others.values()):
            if other.seen.origin.time < asked:
                other.overtaken_by.append(captured)  # counts once that one is answered at all
                break
            captured.overlapped = True
            if other.overlapped:
                break
            other.overlapped = True
        if not others:
            del self._open[place]

    def _end_transaction(self, seen: Seen) -> None:
        """Give a half message its outcome; an unknown one may be followed by another."""
        get = seen.ext_fields.get
        half = self._keys.get(get("msgId") or "") or self._keys.get(get("transactionId") or "")
        key = get("msgId") or get("transactionId")
        if key and self._is_inner_hop(seen, f"{END_TRANSACTION} {key}"):
            return
        state = transaction_state_of(seen.ext_fields)
        if half is None or not half.header.is_half or state is None:
            self._refuse(seen, Refusal(SkipReason.NOT_A_SEND, "END_TRANSACTION"))
            return
        self._refuse(seen, Refusal(SkipReason.ENDS_TRANSACTION, state.name))
        if not _is_final(half.state):
            half.state = state
        if not _is_final(half.state):
            half.due = self._now + MAX_CHECK_WAIT
        elif half.answer.is_stored or half.answer.status == ONEWAY:
            half.settled = True
            self._forget(half)


def _connection_of(key: Key) -> int:
    return hash(key[:2])


def _place_of(origin: Origin) -> str:
    return f"in packet {origin.packet} of {origin.capture}"


def _is_final(state: TransactionState | None) -> bool:
    return state in (TransactionState.COMMIT, TransactionState.ROLLBACK)


def _inner_hop_of(outer: Origin) -> Refusal:
    return Refusal(SkipReason.INNER_HOP, f"made by {outer.responder} of packet {outer.packet}")


def _note_inner_hop(captured: CapturedSend, proof: InnerHop) -> None:
    """Take one of the further attempts for what an answer proved it to be."""
    for one in captured.further_attempts:
        if one.seen.origin == proof.inner and one.refusal.why is SkipReason.ANOTHER_ATTEMPT:
            one.refusal = _inner_hop_of(proof.outer)
            captured.answer.attempts -= 1
