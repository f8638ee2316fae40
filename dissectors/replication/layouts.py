"""Wire layouts between a slave and its master, for both kinds of replication.

Functions return None (or False) if the bytes cannot be such a message; anything that a RocketMQ
release could write is plausible.
RocketMQ: DefaultHAConnection, AutoSwitchHAConnection, HAConnectionState.
"""

from __future__ import annotations

import re
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

MAX_TRANSFER: Final = 4 * 1024 * 1024
"""largest transfer with its header: the read buffer of a slave"""
EMPTY_LOG: Final = -1
"""heartbeat offset of an AutoSwitch master that has nothing to transfer yet"""
MAX_OFFSET: Final = 1 << 56
"""physical offsets are below this"""
MIN_RECORD: Final = 91
"""bytes of the smallest stored message: a non-zero offset is at least this"""
MAX_ENTRIES: Final = 1024
"""maximum epochs in a master's handshake"""
RECORD_HEAD: Final = 36
"""bytes of a stored message up to the end of its physical offset"""
RECORD_MAGIC: Final = re.compile(rb"\xda\xa3\x20[\xa7\xab]")
"""second field of a stored message, V1 and V2"""

CLASSIC_HEADER: Final = Struct(">qi")
"""physical offset, size"""
AUTO_HEADER: Final = Struct(">iiqiqq")
"""state, size, physical offset, epoch, start of the epoch, confirm offset"""
CLASSIC_REPORT: Final = Struct(">q")
"""largest offset"""
AUTO_REPORT: Final = Struct(">iq")
"""state, largest offset"""
HANDSHAKE: Final = Struct(">ihhq")
"""by a slave: state, sync from last file, async learner, broker id"""
OLD_HANDSHAKE: Final = Struct(">ihhi50s")
"""by a slave, 5.0.0 to 5.1.0: state, two flags, length of the address, address"""
RESPONSE: Final = Struct(">iiqi")
"""by a master: state, bytes of the entries, largest offset, last epoch; the entries follow, in
5.0.0 after 16 zero bytes
"""
ENTRY: Final = Struct(">iq")
"""epoch, its start offset"""
INT: Final = Struct(">i")


class HaState(IntEnum):
    """HAConnectionState: state of an AutoSwitch connection."""

    READY = 0
    HANDSHAKE = 1
    TRANSFER = 2
    SUSPEND = 3
    SHUTDOWN = 4


class Header(NamedTuple):
    """Header of a transfer; classic ones have no epoch."""

    size: int
    """commit log bytes that follow; 0: a heartbeat"""
    offset: int
    """physical offset of the first byte"""
    state: int = HaState.TRANSFER
    """HaState"""
    epoch: int = -1
    """epoch of the data"""
    epoch_start: int = -1
    """physical offset at which that epoch begins"""
    confirm: int = -1
    """confirm offset of the master"""


def read_classic(data: bytes, at: int) -> Header | None:
    """Parse the 12-byte header at a place, or return None if it is invalid."""
    offset, size = CLASSIC_HEADER.unpack_from(data, at)
    if not (0 <= size <= MAX_TRANSFER and 0 <= offset < MAX_OFFSET):
        return None
    return Header(size, offset)


def read_auto_switch(data: bytes, at: int) -> Header | None:
    """Parse the 36-byte header at a place, or return None if it is invalid."""
    state, size, offset, epoch, start, confirm = AUTO_HEADER.unpack_from(data, at)
    if not (HaState.TRANSFER <= state <= HaState.SHUTDOWN and 0 <= size <= MAX_TRANSFER):
        return None
    if not (-1 <= offset < MAX_OFFSET and -1 <= confirm < MAX_OFFSET and epoch >= -1):
        return None
    if offset == EMPTY_LOG:  # a heartbeat; its epoch may begin anywhere
        fits = size == 0 and state == HaState.TRANSFER and -1 <= start < MAX_OFFSET
    else:
        fits = -1 <= start <= offset
    if not fits:
        return None
    return Header(size, offset, state, epoch, start, confirm)


def slave_of(head: bytes) -> str | None:
    """Return the broker id, or the address (5.0.0 to 5.1.0), in a slave's handshake."""
    if len(head) == HANDSHAKE.size:
        _, last_file, learner, broker = HANDSHAKE.unpack(head)
        fits = last_file in (0, 1) and learner in (0, 1) and broker >= 0
        return str(broker) if fits else None
    _, last_file, learner, length, address = OLD_HANDSHAKE.unpack(head)
    if last_file not in (0, 1) or learner not in (0, 1) or not 0 < length <= len(address):
        return None
    name: bytes = address[:length]
    return name.decode("ascii") if name.isascii() and name.decode().isprintable() else None


def need_of_response(head: bytes) -> int:
    """Return the size of a master's handshake that begins so; that of `head` if it is none."""
    if len(head) < RESPONSE.size:
        return RESPONSE.size
    size: int = RESPONSE.unpack_from(head)[1]
    if size < 0 or size % ENTRY.size or size > MAX_ENTRIES * ENTRY.size:
        return len(head)
    short = RESPONSE.size + size
    if len(head) < short or (size and _entries_at(head, RESPONSE.size) is not None):
        return short
    # 5.0.0 writes the entries behind a header of the size of a transfer's, filled with zeros.
    is_old = size > 0 and not any(head[RESPONSE.size : AUTO_HEADER.size])
    return AUTO_HEADER.size + size if is_old else len(head)


def entries_of(head: bytes) -> list[tuple[int, int]] | None:
    """Return the epochs and their start offsets in a master's handshake, or None if it is none."""
    if len(head) < RESPONSE.size:
        return None
    size = RESPONSE.unpack_from(head)[1]
    if len(head) == RESPONSE.size + size:
        return _entries_at(head, RESPONSE.size)
    if len(head) == AUTO_HEADER.size + size and not any(head[RESPONSE.size : AUTO_HEADER.size]):
        return _entries_at(head, AUTO_HEADER.size)
    return None


def _entries_at(head: bytes, at: int) -> list[tuple[int, int]] | None:
    """Return the entries at a place if they ascend and end with the last epoch."""
    _, size, largest, last = RESPONSE.unpack_from(head)
    if len(head) < at + size or not 0 <= largest < MAX_OFFSET:
        return None
    entries: list[tuple[int, int]] = []
    for place in range(at, at + size, ENTRY.size):
        epoch, start = ENTRY.unpack_from(head, place)
        if epoch < 0 or start < 0 or start >= MAX_OFFSET:
            return None
        if entries and (epoch <= entries[-1][0] or start < entries[-1][1]):
            return None
        entries.append((epoch, start))
    if entries and entries[-1][0] != last:
        return None
    return entries


def is_record_at(data: bytes, at: int, offset: int) -> bool:
    """Return whether a stored message with this physical offset begins at a place of `data`."""
    total = INT.unpack_from(data, at)[0]
    return (
        total >= MIN_RECORD
        and RECORD_MAGIC.match(data, at + 4) is not None
        and CLASSIC_REPORT.unpack_from(data, at + 28)[0] == offset
    )


def is_auto_switch_at(window: bytes, record: int, offset: int) -> bool:
    """Return whether a 36-byte header precedes a message; at offset 0 a shorter one seems to."""
    at = record - AUTO_HEADER.size
    header = read_auto_switch(window, at) if at >= 0 else None
    return header is not None and header.offset == offset and header.size >= RECORD_HEAD
