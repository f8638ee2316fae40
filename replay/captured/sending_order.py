"""Sending order in a capture: which clients sent concurrently, and which kept queue order.

A client is the host and the producer group of its sends, over all its connections. Memory is
bounded by number.
RocketMQ: MessageQueueSelector, TopicPublishInfo.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeVar

from dissectors.endpoint import host_of
from dissectors.times import SECOND

from .captured_send import CapturedSend, Origin

MOST: Final = 8192
"""clients, topics of clients and queues of those that are remembered, the latest of each"""
CLIENT_WAITS: Final = 3 * SECOND
"""how long a client waits for a response by default; then it sends again"""

_Value = TypeVar("_Value")


@dataclass(slots=True)
class _Client:
    """Sends of one client."""

    latest: Origin | None = None
    """the latest one"""
    concurrent: bool = False
    """whether it ever sent while an earlier send waited for a response that came"""


@dataclass(slots=True)
class _Topic:
    """Sends of one client to one topic."""

    queue: int = 0
    """the queue of the latest one"""
    waiting: Origin | None = None
    """the latest one, as long as its response is missing"""
    repeats: bool = False
    """whether a queue was chosen twice in a row, the second time after the response"""
    overlaps: bool = False
    """whether two sends to one queue were pending at once"""


class SendingOrder:
    """Takes requests and responses in capture order; notes the sending order in each send."""

    def __init__(self) -> None:
        # keyed by hash: the keys may be long
        self._clients: OrderedDict[int, _Client] = OrderedDict()
        self._topics: OrderedDict[int, _Topic] = OrderedDict()
        self._queues: OrderedDict[int, Origin] = OrderedDict()  # the latest send

    def request(self, captured: CapturedSend) -> None:
        """Take the next send."""
        origin = captured.seen.origin
        client, topic, queue = _places_of(captured)
        sender = _latest(self._clients, client, _Client())
        turn = _latest(self._topics, topic, _Topic())
        # A queue selector chooses one queue twice in a row; the round robin of a producer does not.
        if turn.queue == queue and turn.waiting is None:
            turn.repeats = True
        turn.queue = queue
        turn.waiting = None if captured.seen.command.is_oneway else origin
        sender.latest = origin
        self._queues.pop(queue, None)
        _latest(self._queues, queue, origin)
        _note_order(captured, sender, turn)

    def response(self, captured: CapturedSend, request: Origin, time: int) -> None:
        """Take the response to a request of a send."""
        client, topic, queue = _places_of(captured)
        sender = _latest(self._clients, client, _Client())
        turn = _latest(self._topics, topic, _Topic())
        if time - request.time < CLIENT_WAITS:  # else the client has given up and sent again
            sender.concurrent |= _is_meanwhile(sender.latest, request)
            turn.overlaps |= _is_meanwhile(self._queues.get(queue), request)
        if turn.waiting == request:
            turn.waiting = None
        _note_order(captured, sender, turn)


def _note_order(captured: CapturedSend, sender: _Client, turn: _Topic) -> None:
    captured.concurrent = sender.concurrent
    captured.in_turn = turn.repeats and not turn.overlaps


def _is_meanwhile(latest: Origin | None, request: Origin) -> bool:
    """Return whether a send left while a request was pending; one packet may hold both."""
    return latest is not None and latest.time >= request.time and latest != request


def _places_of(captured: CapturedSend) -> tuple[int, int, int]:
    """Return the keys of a send's client, topic, and queue."""
    header, origin = captured.header, captured.seen.origin
    client = hash((origin.capture, host_of(origin.client_address), header.group))
    topic = hash((client, header.topic))
    return client, topic, hash((topic, captured.broker, header.queue_id))


def _latest(entries: OrderedDict[int, _Value], key: int, new: _Value) -> _Value:
    """Return the value of a key and mark it most recently used; drop the oldest."""
    value = entries.pop(key, new)
    entries[key] = value
    if len(entries) > MOST:
        entries.popitem(last=False)
    return value
