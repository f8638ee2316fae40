"""Half messages: stored apart until commit, rollback, or the last check.

RocketMQ: TransactionalMessageServiceImpl, AbstractTransactionalMessageCheckListener,
EndTransactionProcessor.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from dissectors.foreign import integer_of
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.sysflag import COMMIT, TRANSACTION_MASK
from dissectors.remoting.topic_names import CHECKED_OUT_TOPIC, HALF_TOPIC

from ..events import EventKind
from ..room import BoundedTable, weight_of
from ..state import BrokerState
from ..store.memory import NewMessage, StoreFull
from ..store.shelf import StoredRecord
from .schedule import Schedule, original_place, with_original_place

_PENDING_LIMIT: Final = 200_000
"""half messages that wait at one broker"""
_FREE_CHECKS: Final = 1_000
"""checks of half messages that may be settled"""


@dataclass(slots=True)
class Half:
    """A half message without an outcome."""

    group: str
    """producer group that can be asked"""
    next_ms: int
    """time of the next check"""
    checks: int = 0


class HalfMessages:
    """The half messages of one broker."""

    def __init__(self, state: BrokerState, schedule: Schedule) -> None:
        self._state = state
        self._schedule = schedule
        self._pending = BoundedTable[int, Half](state.room, lambda _, half: weight_of(half.group))
        self._checks: list[tuple[int, int]] = []
        """heap of (time of the next check, commit log offset); some of them are settled since"""
        state.store.on_forget.append(self._forgotten)
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms = 0
        self._turn = 0

    def __len__(self) -> int:
        return len(self._pending)

    def put(self, message: NewMessage) -> StoredRecord:
        """Store a half message; return its record. Raises what `MessageStore.put` raises."""
        if len(self._pending) >= _PENDING_LIMIT:
            raise StoreFull
        properties = with_original_place(message)
        self._state.topic_of_retries(HALF_TOPIC)
        half = replace(
            message,
            topic=HALF_TOPIC,
            queue_id=0,
            properties=properties,
            sys_flag=message.sys_flag & ~TRANSACTION_MASK,
        )
        if not self._state.room.takes(weight_of(properties.get("PGROUP", ""))):
            raise StoreFull
        record = self._state.put(half)
        self._wait_for(record, properties)
        return record

    def restore(self, record: StoredRecord) -> None:
        """Restore a half message without an outcome; raise StoreFull for too many."""
        self._wait_for(record, record.message().properties)

    def _wait_for(self, record: StoredRecord, properties: dict[str, str]) -> None:
        immunity = integer_of(properties.get("CHECK_IMMUNITY_TIME_IN_SECONDS", ""))
        wait = self._state.options.transaction_timeout_ms
        if immunity is not None and immunity >= 0:
            wait = immunity * 1000
        due = record.store_ms + wait
        group = properties.get("PGROUP", "")
        if not self._pending.put(record.physical_offset, Half(group, due)):
            raise StoreFull
        heapq.heappush(self._checks, (due, record.physical_offset))
        # settled ones stay until their time: they are removed in bulk before they add up
        if len(self._checks) > 2 * len(self._pending) + _FREE_CHECKS:
            self._checks = [(half.next_ms, offset) for offset, half in self._pending.items()]
            heapq.heapify(self._checks)
        if self._timer is None or due < self._armed_ms:
            self._arm(due)

    def end(self, physical_offset: int, outcome: int, group: str) -> str | None:
        """Settle a half message; return None, or the reason if that fails.

        `outcome` is COMMIT or ROLLBACK. Raises what `MessageStore.put` raises.
        """
        half, record = self._pending.get(physical_offset), self._state.store.at(physical_offset)
        if half is None or record is None:
            return "Find prepared transaction message failed"
        if half.group != group:
            return "The producer group wrong"
        if outcome == COMMIT:
            message = _committed(record.message(), record)
            # else it was deleted in the meantime
            if self._state.topics.get(message.topic) is not None:
                self._schedule.put(message)
        self._settle(physical_offset)
        return None

    def _settle(self, physical_offset: int) -> None:
        self._pending.drop(physical_offset)
        if self._state.store.journal is not None:
            self._state.store.journal.finish_message(physical_offset)

    def _forgotten(self, record: StoredRecord) -> None:
        """Handle a message that a full store evicted."""
        if record.topic == HALF_TOPIC:
            self._pending.drop(record.physical_offset)

    def close(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- checks ---------------------------------------------------------------------------------

    def _arm(self, due: int) -> None:
        """Schedule the next check, replacing the previous time."""
        self.close()
        self._armed_ms = due
        # at least 20 ms, so that checks that are due all the time do not keep the loop busy
        seconds = max(0.02, (due - self._state.now_ms()) / 1000)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check_due)

    def _check_due(self) -> None:
        self._timer = None
        now = self._state.now_ms()
        checked = []
        while self._checks and self._checks[0][0] <= now:
            _, offset = heapq.heappop(self._checks)
            half, record = self._pending.get(offset), self._state.store.at(offset)
            if half is not None and record is not None:
                self._check(half, record, now)
                checked.append((half.next_ms, offset))
        for check in checked:  # only now: one that found no room is due at once
            heapq.heappush(self._checks, check)
        if self._checks:
            self._arm(self._checks[0][0])

    def _check(self, half: Half, record: StoredRecord, now: int) -> None:
        options = self._state.options
        if half.checks >= options.transaction_checks:
            self._give_up(record)
            return
        half.next_ms = now + options.transaction_interval_ms
        # Any client of the group may know the outcome: in turn, as ProducerManager asks them.
        members = list(self._state.clients.producers.get(half.group, {}))
        # a check that reaches nobody does not count
        if not members:
            return
        half.checks += 1
        self._turn += 1
        connection = members[self._turn % len(members)]
        stored = record.message()
        offset_id = self._state.store.offset_id(record)
        fields, body = check_request(stored, record, offset_id, half.checks)
        connection.ask(RequestCode.CHECK_TRANSACTION_STATE, fields, body)
        self._state.tell(
            EventKind.CHECK,
            connection,
            f"check {half.checks} of a half message, group {half.group}",
            topic=fields["topic"],
        )

    def _give_up(self, record: StoredRecord) -> None:
        self._state.topic_of_retries(CHECKED_OUT_TOPIC)
        message = replace(
            _committed(record.message(), record), topic=CHECKED_OUT_TOPIC, queue_id=0, sys_flag=0
        )
        try:
            self._state.put(message)
        except StoreFull:
            return
        self._settle(record.physical_offset)


def check_request(
    stored: StoredMessage, record: StoredRecord, offset_id: str, checks: int
) -> tuple[dict[str, str], bytes]:
    """Return the ext fields and body of the check request for a half message."""
    properties = {**stored.properties, "TRANSACTION_CHECK_TIMES": str(checks)}
    topic, queue_id = original_place(stored)
    message = structs.replace(
        stored, topic=topic, queue_id=queue_id, properties=properties, raw_properties=None
    )
    unique_key = properties.get("UNIQ_KEY", "")
    fields = {
        "topic": topic,
        "commitLogOffset": str(record.physical_offset),
        "tranStateTableOffset": str(record.queue_offset),
        "offsetMsgId": offset_id,
        "msgId": unique_key,
        "transactionId": unique_key,
    }
    return fields, encode_message(message.sealed())


def _committed(stored: StoredMessage, record: StoredRecord) -> NewMessage:
    """Return the message with its original topic."""
    properties = dict(stored.properties)
    for name in ("REAL_TOPIC", "REAL_QID", "TRAN_MSG"):
        properties.pop(name, None)
    return replace(
        NewMessage.of_stored(stored, *original_place(stored), properties),
        # as EndTransactionProcessor
        sys_flag=stored.sys_flag & ~TRANSACTION_MASK | COMMIT,
        prepared_transaction_offset=record.physical_offset,
    )
