"""Delayed messages: delay levels, and the timer of 5.x.

A message waits in RocketMQ's system topic, with its original topic in properties, and is stored
again in that topic when it is due. Pending ones are restored after a restart.
RocketMQ: ScheduleMessageService, TimerMessageStore, HookUtils.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from dissectors.foreign import integer_of
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.topic_names import SCHEDULE_TOPIC, TIMER_TOPIC

from ..events import EventKind
from ..request import BadRequest
from ..room import ENTRY
from ..state import BrokerState
from ..store.memory import NewMessage, StoreFull
from ..store.shelf import StoredRecord

TIMER_UNITS: Final = {"TIMER_DELAY_SEC": 1000, "TIMER_DELAY_MS": 1, "TIMER_DELIVER_MS": 1}
"""properties of timer messages, the first one counts, and their units in ms"""
# timerPrecisionMs
_PRECISION_MS: Final = 1000
_RETRY_SECONDS: Final = 1.0


class Schedule:
    """The delayed messages of one broker."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._due: list[tuple[int, int]] = []
        """(when, commit log offset); some of them the store has forgotten since"""
        self._lost = 0
        state.store.on_forget.append(self._forgotten)
        self._recalled: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def put(self, message: NewMessage) -> StoredRecord:
        """Store a message, or schedule it if its properties say so.

        Raises BadRequest for a due time out of range, and what `MessageStore.put` raises.
        """
        properties = message.properties
        if "DELAY" in properties:
            level = self._level_of(properties["DELAY"])
            if level > 0:
                return self._put_level(message, level)
        elif self._state.options.is_5 and not TIMER_UNITS.keys().isdisjoint(properties):
            due = due_ms(properties, self._state.now_ms())
            if due > self._state.now_ms():
                return self._put_timer(message, due)
        return self._state.put(message)

    def recall(self, topic: str, unique_key: str) -> StoredRecord | None:
        """Recall a timer message; return None if it is not pending."""
        for _, offset in self._due:
            record = self._state.store.at(offset)
            if record is None or offset in self._recalled:
                continue
            if record.topic == TIMER_TOPIC:
                properties = record.message().properties
                if (properties.get("REAL_TOPIC"), properties.get("UNIQ_KEY")) == (
                    topic,
                    unique_key,
                ):
                    self._recalled.add(offset)
                    self._finish(record)
                    return record
        return None

    def restore(self, record: StoredRecord) -> None:
        """Schedule a message again after a restart; raise StoreFull for too many."""
        if record.topic == SCHEDULE_TOPIC:
            due = record.store_ms + self._delay_of(record.queue_id + 1)  # queue 0 is level 1
        else:
            out = integer_of(record.message().properties.get("TIMER_OUT_MS", ""))
            # TIMER_OUT_MS is up to a second too early, see `_aligned`
            due = record.store_ms if out is None else out + _PRECISION_MS
        self._push(due, record)

    def close(self) -> None:
        """Stop delivering."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- internal -------------------------------------------------------------------------------

    def _level_of(self, text: str) -> int:
        level = integer_of(text)
        return 0 if level is None else min(level, len(self._state.options.delays_ms))

    def _delay_of(self, level: int) -> int:
        delays = self._state.options.delays_ms
        return delays[min(level, len(delays)) - 1]

    def _put_level(self, message: NewMessage, level: int) -> StoredRecord:
        self._check_room()
        queues = len(self._state.options.delays_ms)
        self._state.topic_of_retries(SCHEDULE_TOPIC, queues)
        properties = with_original_place(message)
        # as HookUtils.checkIfTimerMessage: with a delay level, the timer's properties do not count
        for name in TIMER_UNITS:
            properties.pop(name, None)
        record = self._state.put(
            replace(message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=properties)
        )
        self._push(record.store_ms + self._delay_of(level), record)
        return record

    def _put_timer(self, message: NewMessage, due: int) -> StoredRecord:
        if due - self._state.now_ms() > self._state.options.timer_max_ms:
            raise BadRequest(
                "timer message illegal, the delay time should not be bigger than the max delay "
                f"{self._state.options.timer_max_ms}ms; or if set del msg, the delay time should "
                "be bigger than the current time",
                ResponseCode.MESSAGE_ILLEGAL,
            )
        self._check_room()
        properties = with_original_place(message)
        properties["TIMER_OUT_MS"] = str(_aligned(due))
        self._state.topic_of_retries(TIMER_TOPIC)
        record = self._state.put(
            replace(message, topic=TIMER_TOPIC, queue_id=0, properties=properties)
        )
        self._push(due, record)
        return record

    def _check_room(self) -> None:
        """Raise StoreFull if no further message may wait."""
        if not self._state.room.takes(ENTRY):
            raise StoreFull

    def _push(self, due: int, record: StoredRecord) -> None:
        if not self._state.room.take(ENTRY):
            raise StoreFull
        entry = (due, record.physical_offset)
        heapq.heappush(self._due, entry)
        if self._due[0] is entry:
            self._arm()

    def _forgotten(self, record: StoredRecord) -> None:
        """Handle a message that a full store evicted: it is not delivered."""
        if record.topic not in (SCHEDULE_TOPIC, TIMER_TOPIC):
            return
        self._lost += 1
        if self._lost * 2 > len(self._due):  # amortized: each entry is visited a few times at most
            begin, before = record.physical_offset, len(self._due)
            self._due = [entry for entry in self._due if entry[1] > begin]
            heapq.heapify(self._due)
            self._recalled = {offset for offset in self._recalled if offset > begin}
            self._state.room.take((len(self._due) - before) * ENTRY)
            self._lost = 0

    def _arm(self, least: float = 0.0) -> None:
        self.close()
        if self._due:
            seconds = max(least, (self._due[0][0] - self._state.now_ms()) / 1000)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._deliver_due)

    def _deliver_due(self) -> None:
        self._timer = None
        now = self._state.now_ms()
        least = 0.0
        while self._due and self._due[0][0] <= now:
            entry = self._due[0]
            record = self._state.store.at(entry[1])
            try:
                if record is not None:
                    self._deliver(record)
            except StoreFull:
                least = _RETRY_SECONDS
                break
            except ValueError:  # a damaged record of the store file, with no queue of the broker
                if record is not None:
                    self._finish(record)
            if self._due and self._due[0] is entry:  # a delivered message may have evicted it
                heapq.heappop(self._due)
                self._state.room.take(-ENTRY)
        self._arm(least)

    def _deliver(self, record: StoredRecord) -> None:
        if record.physical_offset in self._recalled:
            self._recalled.discard(record.physical_offset)
            return
        stored = record.message()
        message = _delivered(stored)
        if self._state.topics.get(message.topic) is None:  # deleted in the meantime
            self._finish(record)
            return
        self._state.put(message)
        self._finish(record)
        self._state.tell(EventKind.DELIVERED, topic=message.topic, detail="its time has come")

    def _finish(self, record: StoredRecord) -> None:
        # a restart must not deliver it again
        if self._state.store.journal is not None:
            self._state.store.journal.finish_message(record.physical_offset)


def due_ms(properties: Mapping[str, str], now_ms: int) -> int:
    """Return the due time of a timer message, else `now_ms`; BadRequest if not a number."""
    for name, unit in TIMER_UNITS.items():
        text = properties.get(name)
        if text is None:
            continue
        number = integer_of(text)
        if number is None:
            raise BadRequest(f"{name} is not a number", ResponseCode.MESSAGE_ILLEGAL)
        return number * unit + (0 if name == "TIMER_DELIVER_MS" else now_ms)
    return now_ms


def _aligned(due: int) -> int:
    """Return TIMER_OUT_MS as RocketMQ stores it: rounded down to a second below the due time."""
    return (due - 1) // _PRECISION_MS * _PRECISION_MS


def with_original_place(message: NewMessage) -> dict[str, str]:
    """Return the properties of a message that waits in a system topic."""
    return {**message.properties, "REAL_TOPIC": message.topic, "REAL_QID": str(message.queue_id)}


def original_place(stored: StoredMessage) -> tuple[str, int]:
    """Return the topic and queue that a message of a system topic waits for."""
    queue_id = integer_of(stored.properties.get("REAL_QID", "0")) or 0
    return stored.properties.get("REAL_TOPIC", stored.topic), max(queue_id, 0)


def _delivered(stored: StoredMessage) -> NewMessage:
    """Return the message with its original topic."""
    properties = dict(stored.properties)
    properties.pop("DELAY", None)
    if stored.topic == TIMER_TOPIC:
        for name in TIMER_UNITS:
            properties.pop(name, None)
    return replace(
        NewMessage.of_stored(stored, *original_place(stored), properties),
        prepared_transaction_offset=stored.prepared_transaction_offset,
    )
