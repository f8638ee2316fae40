"""What processes of one run tell each other: the task, then what each group of chunks gave."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from ..decode.pipeline import DecodeOptions
from ..decode.totals import CaptureStats, RunTotals
from ..rows.conversation_record import ConversationRecord
from ..rows.encoded import RowForm
from ..rows.message_record import MessageRecord
from ..rows.record import ExchangeRecord

GROUP: Final = 8
"""chunks of which the results are sent together, 768 KiB of the captures: with more, what is sent
no longer fits into the caches of the processor"""
COLUMN_GROUP: Final = 64
"""the same where rows are columns, of which each costs something however few rows there are"""


class RowRequest(msgspec.Struct, frozen=True):
    """Which rows are wanted, and how."""

    form: RowForm
    where: str = ""
    """filter expression; empty: all"""
    zone: str = "UTC"
    """whose clocks show times without an offset in it"""


class ShardTask(msgspec.Struct):
    """What one process has to do."""

    sources: list[str]
    options: DecodeOptions
    request: RowRequest
    is_fed: bool
    """the captures follow the task, see `feeding`; else they are read where they are"""


class ShardTotals(msgspec.Struct):
    """What one process found in all."""

    captures: list[CaptureStats]
    found: RunTotals


ShardFinding = tuple[int, str, str, int, int, int, int]
"""step, kind, and the other fields of `ExpertInfo`"""


class ChunkOutput(msgspec.Struct, array_like=True, omit_defaults=True):
    """What one chunk gave besides encoded rows."""

    number: int = 0
    """which of its group it is"""
    findings: list[ShardFinding] = []
    conversations: list[ConversationRecord] = []
    rows: list[ExchangeRecord] = []
    """where rows are handed on as they are"""
    runs: bytes = b""
    """which of them belong where, see `merging`"""
    messages: list[tuple[int, list[MessageRecord]]] = []
    """place in `rows` of an exchange, and its messages"""


class MostHeld(NamedTuple):
    """The most that was held at a time, of what has a limit for the whole run."""

    bytes: int
    """behind holes, and of bodies that are kept, when that was looked at"""
    waiting: int
    """requests and responses that wait for each other"""
    waiting_bytes: int
    """of their headers and bodies"""
    spent: int
    """bytes that messages became, beyond what reading them earned"""
    remembered: int
    """connections and queues of which something is remembered for messages"""


class Packed(NamedTuple):
    """Encoded rows that are in the data of a message, exchanges before messages."""

    size: int
    """bytes of it"""
    runs: bytes
    """which of them belong where, see `merging`"""


class Encoded(NamedTuple):
    """The same with its bytes."""

    data: memoryview
    """lines, or columns of Arrow"""
    runs: bytes


class ShardOutput(msgspec.Struct, array_like=True):
    """What a group of chunks gave, or the end (`totals`), or why it ended early (`problem`)."""

    seen: list[int] = []
    """exchanges of each chunk before the filter"""
    chosen: list[int] = []
    """exchanges of each chunk behind it"""
    message_rows: list[int] = []
    """messages of these"""
    chunks: list[ChunkOutput] = []
    """those that gave something besides encoded rows"""
    exchanges: Packed | None = None
    messages: Packed | None = None
    """the rows of all chunks, where they are encoded"""
    held: MostHeld = MostHeld(0, 0, 0, 0, 0)
    """the most that was held at a time by then"""
    bytes_read: int = 0
    begun: list[CaptureStats] = []
    """once the time of the first packet is known, the captures by then"""
    totals: ShardTotals | None = None
    problem: list[str] | None = None
    """path, reason and hint of a `CaptureError`"""
