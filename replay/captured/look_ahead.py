"""Match captured commands to send requests with outcomes, in sending order.

A message must be known before it is due, so reading runs ahead until the response, a further
attempt, or the end of a transaction is seen, within a bounded capture time and bounded memory.
Later packets still complete the outcome for the comparison, but no longer change what is sent.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple
from weakref import WeakSet

from dissectors.budget import Budget
from dissectors.conversations.conversation import Pdu
from dissectors.remoting.code_sets import STORED
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
    RequestKey,
    Seen,
    SkipReason,
    add_response,
    any_header_of,
    send_header_of,
    transaction_state_of,
)
from .relay_hops import InnerHop, RelayHops
from .sending_order import CLIENT_WAITS, SendingOrder

MAX_WAIT: Final = 15 * SECOND
"""capture time that a response, another attempt or the first end of a transaction is waited for"""
MAX_CHECK_WAIT: Final = 90 * SECOND
"""capture time that the response to a check-back is waited for"""
MAX_WAITING: Final = 10_000
"""pending requests"""
MAX_WAITING_BYTES: Final = 32 * 1024 * 1024
"""their bodies"""
MAX_KEYS: Final = 16_384
"""messages that are remembered for the sake of further attempts, each some 2 KiB; a client tries
again after 3 s"""
MOST_OPEN: Final = 16_384
"""requests without response that are remembered for the sake of those sent meanwhile"""
CONNECTION_BYTES: Final = 8192
"""bytes of a connection that a send which waits keeps in memory"""


class _Pending(NamedTuple):
    """A pending request: the first or a further attempt of a message."""

    captured: CapturedSend
    """the send that has the outcome"""
    origin: Origin
    """the request"""
    broker: str
    """broker that it was sent to"""
    pdu: Pdu | None
    """of a further attempt the request in the capture; None where it was let go"""


class LookAhead:
    """Takes captured requests and responses; returns settled send requests, in order."""

    def __init__(
        self,
        raw: bool = False,
        names: BrokerNames | None = None,
        relays: Iterable[Relay] = (),
        budget: Budget | None = None,
    ) -> None:
        """`raw`: all requests are replayed, each as a message of its own.

        `relays`: those already known. `budget`: records what was bounded, and where.
        """
        self._names = BrokerNames() if names is None else names
        self._raw = raw
        bound = (Budget() if budget is None else budget).bound
        self._waiting = bound("sends that wait for responses", MAX_WAITING, "continued without")
        self._bodies = bound("bytes of sends that wait", MAX_WAITING_BYTES, "continued without")
        self._known = bound("messages that may be tried again", MAX_KEYS, "forgotten")
        self._unanswered = bound("requests without response", MOST_OPEN, "forgotten")
        # all loops over the sources share the budget; what the last one held is gone
        self._waiting.held = self._bodies.held = 0
        self._queue: deque[CapturedSend | Refused] = deque()
        # the first entry is often removed, which is slow in a plain dict
        self._pending: OrderedDict[RequestKey, _Pending] = OrderedDict()
        self._requests: deque[tuple[RequestKey, int]] = deque()
        """entries of `_pending` that hold a request, and their sizes"""
        self._request_bytes = 0
        self._open: OrderedDict[tuple[str, int], OrderedDict[RequestKey, CapturedSend]] = (
            OrderedDict()  # the most recently used last
        )
        self._opened = 0
        self._keys: OrderedDict[str, CapturedSend] = OrderedDict()
        self._hops = RelayHops(relays)
        self._order = SendingOrder()
        self._responding: OrderedDict[int, None] = OrderedDict()  # connections of logs, by hash
        self._now = 0

    def request(self, seen: Seen) -> None:
        """Take the next request, which is a send or the end of a transaction."""
        # packets may be out of order, but what is over stays over
        self._now = max(self._now, seen.origin.time)
        if seen.command.code == END_TRANSACTION and not self._raw:
            self._end_transaction(seen)
            return
        header = any_header_of(seen) if self._raw else send_header_of(seen)
        if isinstance(header, Refusal):
            self._refuse(seen, header)
            return
        broker = header.broker_name or self._names.of(seen.origin.server_address)
        captured = CapturedSend(seen, header, broker)
        captured.response.server_address, captured.response.broker = (
            seen.origin.server_address,
            broker,
        )
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
        if seen.command.is_oneway:
            captured.response.status = ONEWAY
            # a half message still waits for the end of its transaction
            captured.settled = self._raw or not header.is_half
        self._queue.append(captured)
        self._bodies.held += captured.held

    def response(
        self,
        key: RequestKey,
        time: int,
        code: int,
        remark: str | None,
        fields: dict[str, str],
        pdu: Pdu | None = None,
    ) -> None:
        """Take the next response to a send request that was passed to `request`."""
        self._now = max(self._now, time)
        pending = self._pending.pop(key, None)
        if pdu is None:
            # a log has no packets that show whether the other direction was captured
            self._note_responding(key)
        if pending is None:
            return
        captured, origin, broker, request = pending
        self._close(key, captured)
        self._order.response(captured, origin, time)
        response = captured.response
        unique_key = captured.header.unique_key or ""
        proofs = self._hops.add_response(origin, unique_key, time, fields.get("msgId") or "")
        for proof in proofs:
            _note_inner_hop(captured, proof)
        # A late response to an earlier attempt adds nothing. Neither does one to an inner hop: the
        # outcome is that of the outer hop, as the client saw it.
        better = not response.is_durable and code in STORED
        if not response.is_stored or better or any(proof.outer == origin for proof in proofs):
            add_response(response, code, remark, fields)
            response.latency_us = (time - origin.time) // 1000
            if not captured.released:  # otherwise it is no longer needed
                response.pdu, response.request = pdu, request or captured.seen.pdu
            response.server_address, response.broker = origin.server_address, broker
        if not response.is_stored or (
            not self._raw and self._hops.may_be_inner(origin, unique_key)
        ):
            return
        if self._raw or not captured.header.is_half or _is_final(captured.state):
            captured.settled = True
            if response.is_durable:
                self._forget(captured)

    @property
    def relays(self) -> set[Relay]:
        """Relays known so far."""
        return self._hops.relays

    def at(self, time: int) -> None:
        """Advance to a time of the capture."""
        self._now = max(self._now, time)

    def take(self, everything: bool = False) -> list[CapturedSend | Refused]:
        """Return settled requests in sending order; `everything` at the end of the capture."""
        taken: list[CapturedSend | Refused] = []
        queue = self._queue
        while queue:
            first = queue[0]
            if isinstance(first, CapturedSend):
                if not (everything or first.settled or self._is_over(first)):
                    break
                first.settled, first.overtaken_by = True, []
                first.response.uncaptured = self._is_uncaptured(first, everything)
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
        """Return whether a response may exist but was not captured.

        It may if the other direction was not captured or has a gap since, or if the capture ended
        before the client's timeout.
        """
        if captured.response.status != UNANSWERED:
            return False
        seen = captured.seen
        ended = ended and self._now - seen.origin.time < CLIENT_WAITS
        if seen.pdu is None:
            return ended or _connection_of(seen.origin.key) not in self._responding
        other = seen.pdu.direction.peer
        if not other.packets or other.reassembler.gaps > captured.gaps:
            return True
        return ended and not seen.pdu.direction.conversation.closing

    def _note_responding(self, key: RequestKey) -> None:
        """Remember that a connection of a log has responses."""
        connection = _connection_of(key)
        self._responding[connection] = None
        self._responding.move_to_end(connection)
        if len(self._responding) > MAX_KEYS:
            self._responding.popitem(last=False)

    def _refuse(self, seen: Seen, refusal: Refusal) -> Refused:
        seen.body, seen.messages, seen.pdu = b"", None, None
        refused = Refused(seen, refusal)
        self._queue.append(refused)
        self._bodies.held += seen.size
        return refused

    def _is_inner_hop(self, seen: Seen, key: str) -> bool:
        """Return whether a relay made the request, which is then not replayed."""
        outer = self._hops.request(seen.origin, key)
        if outer is not None:
            self._refuse(seen, _inner_hop_of(outer))
        return outer is not None

    def _is_another_attempt(self, captured: CapturedSend, key: str) -> bool:
        """Return whether the request is a further attempt of a message not certainly stored.

        Such a message is replayed once, and its captured outcome is that of the last attempt. For
        messages not flushed or replicated in time, no further attempt is awaited.
        """
        seen = captured.seen
        # A producer keeps the UNIQ_KEY for a retry; a stored message with the same one is another.
        if seen.command.is_oneway:
            return False
        first = self._keys.get(key)
        if (
            first is None
            or first.response.is_durable
            or first.header.topic != captured.header.topic
        ):
            self._remember(key, captured)
            return False
        response = first.response
        response.attempts += 1
        if not response.is_stored:
            response.server_address, response.broker = seen.origin.server_address, captured.broker
            response.status, response.code, response.remark = UNANSWERED, None, None
        first.due = self._now + MAX_WAIT
        self._wait_for(seen, first, captured.broker, seen.pdu)
        detail = f"attempt {response.attempts} of {key}"
        refused = self._refuse(seen, Refusal(SkipReason.ANOTHER_ATTEMPT, detail))
        if first.further_attempts is None:
            first.further_attempts = WeakSet()
        first.further_attempts.add(refused)
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
        """Note that the message is stored: a request with the same id is another message."""
        key = captured.header.unique_key
        if key is not None and self._keys.get(key) is captured:
            del self._keys[key]

    def _wait_for(
        self, seen: Seen, captured: CapturedSend, broker: str, further: Pdu | None = None
    ) -> None:
        pending = self._pending
        pending[seen.origin.key] = _Pending(captured, seen.origin, broker, further)
        if further is not None:
            self._hold_request(seen)
        # the entry that was just added stays
        while len(pending) > 1:
            oldest = next(iter(pending))
            if not self._is_past(pending[oldest].captured):
                if len(pending) <= self._known.most:
                    return
                self._known.end(_place_of(pending[oldest].origin))
            del pending[oldest]

    def _hold_request(self, seen: Seen) -> None:
        """Release the earliest requests if the held ones exceed the memory limit."""
        self._requests.append((seen.origin.key, seen.size))
        self._request_bytes += seen.size
        while self._request_bytes > self._bodies.most:
            key, size = self._requests.popleft()
            self._request_bytes -= size
            pending = self._pending.get(key)
            if pending is not None:
                self._pending[key] = pending._replace(pdu=None)

    def _is_past(self, captured: CapturedSend) -> bool:
        """Return whether no later packet can belong to it."""
        return 0 < captured.due < self._now - MAX_CHECK_WAIT

    def _note_open(self, captured: CapturedSend, seen: Seen) -> None:
        if seen.command.is_oneway:
            return
        self._wait_for(seen, captured, captured.broker)
        place = seen.origin.capture, seen.origin.conversation
        others = self._open.pop(place, None) or OrderedDict()
        while others and next(iter(others.values())).due <= self._now:
            del others[next(iter(others))]
            self._opened -= 1
        self._opened += seen.origin.key not in others
        others[seen.origin.key] = captured
        self._open[place] = others
        self._forget_open()

    def _forget_open(self) -> None:
        """Forget the least recently used connections.

        A request no longer pending says nothing about later sends.
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

    def _close(self, key: RequestKey, captured: CapturedSend) -> None:
        """Note the response: later sends were sent without waiting for it."""
        place = key[0], key[1]
        others = self._open.get(place)
        if others is None or others.pop(key, None) is None:
            return
        self._opened -= 1
        for overtaken in captured.overtaken_by:
            overtaken.overlapped = captured.overlapped = True
        captured.overtaken_by = []
        sent_at = captured.seen.origin.time
        for other in reversed(others.values()):
            if other.seen.origin.time < sent_at:
                if not other.settled:  # after that, its order is no longer asked for
                    other.overtaken_by.append(captured)  # counts once that request is answered
                break
            captured.overlapped = True
            if other.overlapped:
                break
            other.overlapped = True
        if not others:
            del self._open[place]

    def _end_transaction(self, seen: Seen) -> None:
        """Set the outcome of a half message; another may follow an unknown one."""
        get = seen.command.ext_fields.get
        half = self._keys.get(get("msgId") or "") or self._keys.get(get("transactionId") or "")
        key = get("msgId") or get("transactionId")
        if key and self._is_inner_hop(seen, f"{END_TRANSACTION} {key}"):
            return
        state = transaction_state_of(seen.command.ext_fields)
        if half is None or not half.header.is_half or state is None:
            self._refuse(seen, Refusal(SkipReason.NOT_A_SEND, "END_TRANSACTION"))
            return
        self._refuse(seen, Refusal(SkipReason.ENDS_TRANSACTION, state.name))
        if not _is_final(half.state):
            half.state = state
        if not _is_final(half.state):
            half.due = self._now + MAX_CHECK_WAIT
        elif half.response.is_stored or half.response.status == ONEWAY:
            half.settled = True
            self._forget(half)


def _connection_of(key: RequestKey) -> int:
    return hash(key[:2])


def _place_of(origin: Origin) -> str:
    return f"in packet {origin.packet} of {origin.capture}"


def _is_final(state: TransactionState | None) -> bool:
    return state in (TransactionState.COMMIT, TransactionState.ROLLBACK)


def _inner_hop_of(outer: Origin) -> Refusal:
    return Refusal(SkipReason.INNER_HOP, f"made by {outer.server_address} of packet {outer.packet}")


def _note_inner_hop(captured: CapturedSend, proof: InnerHop) -> None:
    """Reclassify a further attempt as an inner hop that a response proved."""
    for attempt in captured.further_attempts or ():
        if attempt.seen.origin == proof.inner and attempt.refusal.why is SkipReason.ANOTHER_ATTEMPT:
            attempt.refusal = _inner_hop_of(proof.outer)
            captured.response.attempts -= 1
