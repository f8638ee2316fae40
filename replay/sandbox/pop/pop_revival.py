"""What POP consumers did not acknowledge in time: it comes again.

RocketMQ: PopReviveService, ConsumerOrderInfoManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container

from dissectors.remoting.topic_names import RETRY_PREFIX

from ..state import ANY_QUEUE, BrokerState
from ..store.memory import NewMessage, StoreFull
from .pop_queues import PopKey, PopQueues


def retry_topic(group: str, topic: str) -> str:
    """Return the topic in which messages of `topic` come again for a POP group."""
    return f"{RETRY_PREFIX}{group}_{topic}"


class PopRevival:
    """Brings back what POP groups of one broker did not acknowledge."""

    def __init__(
        self,
        state: BrokerState,
        queues: PopQueues,
        ordered: Container[str],
        commit: Callable[[PopKey], None],
    ) -> None:
        """`ordered` are the groups that keep the order; `commit` stores how far a group is."""
        self._state = state
        self._queues = queues
        self._ordered = ordered
        self._commit = commit
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Stop: no message comes again any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def arm(self) -> None:
        """Wait for the next message whose time is over; after each change of what is held."""
        deadline = self._queues.next_deadline
        self.close()
        if deadline is not None:
            seconds = max(0.001, (deadline - self._state.now_ms()) / 1000)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        for expired in self._queues.expire(self._state.now_ms()):
            if expired.key.group in self._ordered:
                self._queues.go_back(expired.key, expired.offset)
            else:
                self._revive(expired.key, expired.offset)
            self._commit(expired.key)
        self.arm()

    def _revive(self, key: PopKey, offset: int) -> None:
        """Store a message anew in the group's retry topic."""
        record = self._state.store.queue(key.topic, key.queue_id).at(offset)
        if record is None:
            return
        stored = record.message()
        topic = stored.properties.get("RETRY_TOPIC", key.topic)
        retries = self._state.topic_of_retries(retry_topic(key.group, topic))
        properties = {**stored.properties, "RETRY_TOPIC": topic}
        properties.pop("POP_CK", None)
        properties.setdefault("1ST_POP_TIME", str(self._state.now_ms()))
        message = NewMessage.again(stored, retries.name, 0, properties)
        try:
            again = self._state.put(message)
        except StoreFull:
            # It stays with the group and is tried once more later.
            state = self._queues.queue(key)
            state.next_offset = min(state.next_offset, offset)
            return
        self._state.holds.arrived((topic, ANY_QUEUE), again)
