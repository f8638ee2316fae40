"""Track half messages in a commit log: committed, rolled back, given up, or open.

A commit is a record in the topic of the message that names the log offset of the half message.
After a commit or a rollback the broker writes an OP record that names its queue offset. A check of
the broker stores the half message again. RocketMQ: TransactionalMessageBridge,
TransactionalMessageServiceImpl, EndTransactionProcessor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from ..foreign import natural_of
from ..remoting.messages.message import StoredMessage
from ..remoting.topic_names import CHECKED_OUT_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from ..rows.message_record import COMMITTED, ROLLED_BACK

ABANDONED: Final = "given_up"
"""checked too often by the broker"""
ENDED: Final = "ended"
"""committed or rolled back: the deciding bytes of the log are missing"""
MOST_HALVES: Final = 100_000
"""maximum open half messages; the oldest are dropped"""
_MOST_ENDS: Final = 10_000
"""maximum half messages in one OP record: a broker writes at most 4 KiB of digits"""
_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"


@dataclass(slots=True)
class StoredHalf:
    """A half message in the log."""

    message: StoredMessage
    """its record, without the body"""
    breaks: int
    """damaged places before it"""
    committed: bool = False


class StoredHalfEnd(NamedTuple):
    """Outcome of a half message."""

    half: StoredMessage
    """its record, without the body"""
    outcome: str
    """COMMITTED, ROLLED_BACK, ABANDONED or ENDED"""
    record: StoredMessage
    """record with the outcome"""


class StoredHalves:
    """Open half messages of a log; pass it each record in order."""

    def __init__(self) -> None:
        self._by_queue: dict[tuple[int, int], StoredHalf] = {}
        """queue and offset in the half topic → half message"""
        self._by_log: dict[int, StoredHalf] = {}
        """log offset → half message"""
        self._breaks = 0

    def miss(self) -> None:
        """Note that bytes of the log are missing here."""
        self._breaks += 1

    def take(self, message: StoredMessage) -> Iterator[StoredHalfEnd]:
        """Yield the outcomes of half messages that a record decides."""
        if message.topic == HALF_TOPIC:
            self._keep(message)
        elif message.topic == OP_HALF_TOPIC:
            yield from self._op(message)
        elif message.topic == CHECKED_OUT_TOPIC:
            yield StoredHalfEnd(message, ABANDONED, message)
        elif message.transaction == "commit":
            half = self._by_log.get(message.prepared_transaction_offset)
            if half is not None and half.message.unique_key == message.unique_key:
                half.committed = True
                yield StoredHalfEnd(half.message, COMMITTED, message)

    def _keep(self, message: StoredMessage) -> None:
        half = StoredHalf(without_body(message), self._breaks)
        self._by_queue[message.queue_id, message.queue_offset] = half
        self._by_log[message.physical_offset] = half
        if len(self._by_queue) > MOST_HALVES:
            self._by_queue.pop(next(iter(self._by_queue)))
        if len(self._by_log) > MOST_HALVES:
            self._by_log.pop(next(iter(self._by_log)))

    def _op(self, message: StoredMessage) -> Iterator[StoredHalfEnd]:
        # Latin-1 decodes any bytes; only digits between commas count.
        for text in message.body.decode("latin-1").split(",", _MOST_ENDS)[:_MOST_ENDS]:
            offset = natural_of(text)
            half = None if offset is None else self._by_queue.pop((message.queue_id, offset), None)
            if half is None:
                continue
            self._by_log.pop(half.message.physical_offset, None)
            if not half.committed:
                # Without an earlier commit it is a rollback, unless the commit may be missing.
                outcome = ROLLED_BACK if half.breaks == self._breaks else ENDED
                yield StoredHalfEnd(half.message, outcome, message)


def is_check(half: StoredMessage) -> bool:
    """Return whether a half message was stored again by a check of the broker."""
    return _CHECK_TIMES in half.properties


def without_body(message: StoredMessage) -> StoredMessage:
    """Return a record without its body, to save memory."""
    return replace(message, body=b"", raw_properties=None)
