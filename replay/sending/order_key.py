"""Ordered messages: queue selectors, and the Java client's selection by key.

RocketMQ: MessageQueueSelector, SelectMessageQueueByHash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dissectors.remoting.java_hash import java_hash

from ..message import Message, MessageQueue

Selector = Callable[[Sequence[MessageQueue], Message], MessageQueue]
"""chooses the queue of a message among those of its topic"""


class KeySelector:
    """Selects one queue per key, the same as a Java client."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.why = f"order key {key!r}"

    def __call__(self, queues: Sequence[MessageQueue], _: Message) -> MessageQueue:
        """Return the queue of the key."""
        number = java_hash(self.key)
        # Java's abs(hash % size) gives the same: its remainder has the sign of the hash
        place = abs(number) % len(queues)
        return queues[place]


def selector_of(selector: Selector | None, order_key: str | None) -> Selector | None:
    """Return the given selector, or one for the order key, or None."""
    return selector if order_key is None else KeySelector(order_key)
