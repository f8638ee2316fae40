"""What processes of one run tell each other: the task, then what each group of chunks gave."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from ..decode.pipeline import DecodeOptions
from ..decode.totals import CaptureStats, RunTotals
from ..rows.encoded import RowForm
from .merging import LAST

if TYPE_CHECKING:
    from ..rows.conversation_record import ConversationRecord
    from ..rows.message_record import MessageRecord
    from ..rows.record import ExchangeRecord

GROUP: Final = 8
"""chunks of which the results are sent together, 768 KiB of the captures: with more, what is sent
no longer fits into the caches of the processor"""
NOTHING: Final = msgspec.Raw(b"\x90")
"""no rows"""
COLUMN_GROUP: Final = 64
"""the same where rows are columns, of which each costs something however few rows there are"""


_DECODERS: Final[dict[object, msgspec.msgpack.Decoder[Any]]] = {}
"""what makes rows, by their type: to make it takes longer than to make some of them"""
Row = TypeVar("Row")
Made = TypeVar("Made")


class RowKind(StrEnum):
    """What a row is."""

    exchanges = "exchanges"
    """with their messages, where the options ask for these"""
    messages = "messages"
    """no exchanges: all messages, as lines of JSON"""
    commands = "commands"
    """all commands, as lines of JSON"""


class RowRequest(msgspec.Struct, frozen=True):
    """Which rows are wanted, and how."""

    form: RowForm
    where: str = ""
    """filter expression; empty: all"""
    zone: str = "UTC"
    """whose clocks show times without an offset in it"""
    kind: RowKind = RowKind.exchanges
    body_limit: int = 0
    """bytes that are shown of the body of a command"""


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
    """What one chunk gave besides encoded rows; rows are made again only where there are any."""

    number: int = 0
    """which of its group it is"""
    findings: list[ShardFinding] = []
    conversations: msgspec.Raw = NOTHING
    rows: msgspec.Raw = NOTHING
    """where rows are handed on as they are"""
    runs: bytes = b""
    """which of them belong where, see `merging`"""
    messages: msgspec.Raw = NOTHING
    """place in `rows` of an exchange, and its messages"""

    def all_conversations(self) -> list[ConversationRecord]:
        """Return the connections that ended."""
        if self.conversations == NOTHING:
            return []
        from ..rows.conversation_record import ConversationRecord

        return _made(self.conversations, list[ConversationRecord])

    def all_rows(self) -> list[ExchangeRecord]:
        """Return the rows that are handed on as they are."""
        from ..rows.record import ExchangeRecord

        return _made(self.rows, list[ExchangeRecord])

    def all_messages(self) -> list[tuple[int, list[MessageRecord]]]:
        """Return messages with the place of their exchange in the rows."""
        if self.messages == NOTHING:
            return []
        from ..rows.message_record import MessageRecord

        return _made(self.messages, list[tuple[int, list[MessageRecord]]])


def packed_rows(rows: list[Row]) -> msgspec.Raw:
    """Return rows as a chunk has them."""
    return msgspec.Raw(msgspec.msgpack.encode(rows)) if rows else NOTHING


def _made(packed: msgspec.Raw, kind: type[Made]) -> Made:
    """Return rows as they were."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.msgpack.Decoder(kind)
    made: Made = decoder.decode(packed)
    return made


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
    commands: int = 0
    """commands that are held back for their order"""
    command_bytes: int = 0
    """of their headers and bodies"""


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
    floor: int = LAST
    """packet before which no command comes any more"""
    given_bytes: int = 0
    """bytes of headers and bodies of the commands that it gave"""
    bytes_read: int = 0
    packets: int = 0
    """packets read"""
    begun: list[CaptureStats] = []
    """once the time of the first packet is known, the captures by then"""
    totals: ShardTotals | None = None
    problem: list[str] | None = None
    """path, reason and hint of a `CaptureError`"""
