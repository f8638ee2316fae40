"""One direction of a TLS session: what waits, what it is encrypted by, how far it is."""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from typing import Final, final

from .handshake import HandshakeReader
from .protection import Protection
from .records import Record, RecordReader

_RECORD_COST: Final = 256
"""bytes of memory that a record that waits takes beside its content"""


class TlsStage(IntEnum):
    """Which secret a direction of TLS 1.3 is encrypted by."""

    CLEAR = 0
    EARLY = 1
    HANDSHAKE = 2
    TRAFFIC = 3


@final
class TlsSide:
    """One direction."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.reader = RecordReader()
        self.handshake = HandshakeReader()
        self.queue: deque[Record] = deque()
        self.queued = 0
        """bytes of memory that the queue takes"""
        self.protection: Protection | None = None
        self.stage = TlsStage.CLEAR
        self.said_hello = False
        self.skipping = False
        """records come first that these keys do not open"""
        self.cut = False
        """nothing that comes behind what waits can be read"""
        self.ended = False

    def add(self, record: Record) -> None:
        """Let a record wait for its turn."""
        self.queue.append(record)
        self.queued += len(record.content) + _RECORD_COST

    def take(self) -> None:
        """Remove the record whose turn it was."""
        self.queued -= len(self.queue.popleft().content) + _RECORD_COST

    def end(self) -> None:
        """Read nothing more."""
        self.ended = True
        self.protection = None
        self.queue.clear()
        self.queued = 0
        self.reader.forget()
        self.handshake.forget()
