"""Messages between the processes of a run: the task, then the output of each group of chunks."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from ..decode.pipeline import DecodeOptions
from ..decode.totals import CaptureStats, RunTotals
from ..rows.conversation_record import ConversationRecord
from ..rows.encoded import RowForm
from ..rows.message_record import MessageRecord
from ..rows.record import ExchangeRecord
from .merging import LAST

GROUP: Final = 8
"""chunks whose results are sent together (768 KiB of capture): more would exceed the CPU cache"""
COLUMN_GROUP: Final = 64
"""chunks per group for columnar rows, whose cost is mostly per batch"""


class RowKind(StrEnum):
    """Kind of the requested rows."""

    exchanges = "exchanges"
    """exchanges, with messages if the options ask for them"""
    messages = "messages"
    """all messages as JSON lines, without exchanges"""
    commands = "commands"
    """all commands as JSON lines"""


class RowRequest(msgspec.Struct, frozen=True):
    """Selection and form of the requested rows."""

    form: RowForm
    where: str = ""
    """filter expression; empty: all"""
    zone: str = "UTC"
    """time zone of times without an offset in `where`"""
    kind: RowKind = RowKind.exchanges
    body_limit: int = 0
    """maximum bytes of a command's body to show"""


class ShardTask(msgspec.Struct):
    """Task of one process."""

    sources: list[str]
    options: DecodeOptions
    request: RowRequest
    is_fed: bool
    """the captures follow the task (see `feeding`); otherwise the process opens them itself"""


ShardFinding = tuple[str, str, int, int, int, int]
"""kind, and the other fields of `Finding`"""


class ChunkOutput(msgspec.Struct, array_like=True):
    """Output of one chunk besides encoded rows; sent only if there is any."""

    number: int = 0
    """index of the chunk in its group"""
    findings: list[list[ShardFinding]] = []
    """findings of each step"""
    conversations: list[ConversationRecord] = []
    """ended connections"""
    rows: list[ExchangeRecord] = []
    """rows, unless they are encoded"""
    runs: bytes = b""
    """runs of the rows, see `merging`"""
    messages: list[tuple[int, list[MessageRecord]]] = []
    """messages, with the index of their exchange in `rows`"""


class MostHeld(NamedTuple):
    """Peaks of the values that have a limit for the whole run."""

    bytes: int
    """bytes held behind holes or in kept bodies, when last checked"""
    waiting: int
    """requests and responses waiting for their counterpart"""
    waiting_bytes: int
    """header and body bytes of `waiting`"""
    spent: int
    """bytes decompressed beyond what reading earned"""
    remembered: int
    """connections and queues remembered for messages"""
    commands: int = 0
    """commands held back for ordering"""
    command_bytes: int = 0
    """header and body bytes of `commands`"""


class Encoded(NamedTuple):
    """Encoded rows with their runs."""

    data: memoryview
    """lines, or columns of Arrow"""
    runs: bytes


class ShardOutput(msgspec.Struct, array_like=True):
    """Output of a group of chunks, or an error (`problem`); encoded rows follow as data."""

    seen: int = 0
    """exchanges or commands before the filter"""
    chosen: list[int] = []
    """rows of each chunk after the filter"""
    message_rows: list[int] = []
    """messages of each chunk, besides its exchanges, after the filter"""
    chunks: list[ChunkOutput] = []
    """chunks with outputs besides encoded rows"""
    row_bytes: int = 0
    """bytes of the encoded rows; the rest of the data are messages of exchanges"""
    row_runs: bytes = b""
    """runs of the encoded rows, see `merging`"""
    message_runs: bytes = b""
    """runs of the messages of exchanges"""
    held: MostHeld = MostHeld(0, 0, 0, 0, 0)
    """peaks so far"""
    floor: int = LAST
    """no more commands of packets before this one will come"""
    given_bytes: int = 0
    """header and body bytes of the emitted commands"""
    bytes_read: int = 0
    packets: int = 0
    """packets read"""
    captures: list[CaptureStats] = []
    """once the time of the first packet is known, captures begun; at the end, all of them"""
    totals: RunTotals | None = None
    """at the end of the run: totals of the process"""
    problem: list[str] | None = None
    """path, reason and hint of a `CaptureError`"""
