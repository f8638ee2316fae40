"""What was read so far: rows of exchanges, messages and connections, frames, what it comes to.

One thread adds; the screen asks. What is asked for is what is there by then.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from dissectors.expert import ExpertKind
from dissectors.rows.column import Column
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.record import COLUMNS, ExchangeRecord
from dissectors.tcp.capture import capture_index, packet_number
from dissectors.tcp.decompression import MOST_TIMES

from ...api.summarised import SummaryFold
from ...api.tables import named as tables
from ...ui.console import one_line
from .disk import RowStore
from .frames import FrameStore

if TYPE_CHECKING:
    from analytics.diagnosis.engine import Diagnosis
    from dissectors.decode.exchange import Exchange
    from dissectors.decode.pipeline import Carried
    from dissectors.decode.totals import DecodeStats
    from dissectors.expert import ExpertInfo

MOST_VALUES: Final = 500
"""values of a column that a filter line offers"""
_SHORT: Final = 120


class SeenValues:
    """The values that the columns of a table had: what a filter line offers."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._values: dict[str, dict[str, None]] = {
            column.name: {} for column in columns if column.type == "string"
        }
        self._gets = {name: attrgetter(name) for name in self._values}

    def add(self, rows: Sequence[object]) -> None:
        """Note what rows have."""
        for name, values in self._values.items():
            if len(values) < MOST_VALUES:
                for value in set(map(self._gets[name], rows)):
                    if isinstance(value, str) and len(value) <= _SHORT:
                        values[value] = None

    def values(self, column: str) -> list[str]:
        """Return the values of a column, those that were seen first before others."""
        return list(self._values.get(column, ()))


class BrowseSession:
    """Everything that is browsed."""

    def __init__(self, name: str, most_rows: int | None = None, has_frames: bool = True) -> None:
        """`most_rows`: exchanges that are kept; None: all."""
        self.name = name
        """what is browsed, in a few words"""
        self.exchanges = RowStore(ExchangeRecord, COLUMNS, most_rows)
        self.messages = RowStore(MessageRecord, MESSAGE_COLUMNS, most_rows)
        self.connections = RowStore(ConversationRecord, CONVERSATION_COLUMNS, most_rows)
        self.frames = FrameStore() if has_frames else None
        """None: only rows are there"""
        self.seen = {
            tables.EXCHANGES: SeenValues(COLUMNS),
            tables.MESSAGES: SeenValues(MESSAGE_COLUMNS),
            tables.CONNECTIONS: SeenValues(CONVERSATION_COLUMNS),
        }
        self.captures: Sequence[str] = ()
        """names of what is read, by index"""
        self.decode_as: Sequence[int] = ()
        """ports that are taken for RocketMQ, as they were given"""
        self.tls_keylog = ""
        """file with keys of TLS, as it was given"""
        self.max_ratio = MOST_TIMES
        """bytes that each byte of a compressed capture may become"""
        self.stats: DecodeStats | None = None
        self.progress: Callable[[], tuple[int, int | None]] = lambda: (0, None)
        """bytes read, and of how many"""
        self.is_reading = True
        self.is_live = False
        """packets come as they happen"""
        self.problem: str | None = None
        """why reading ended early"""
        self.version = 0
        """changes with each thing that is added"""
        self._exchange_of = array("q")
        """of each message: number of its exchange"""
        self._fold = SummaryFold(diagnosed=True)
        self._lock = Lock()

    @property
    def is_empty(self) -> bool:
        """Nothing was found, and no more is read."""
        found = self.exchanges.count + self.messages.count + self.connections.count
        return not found and not self.is_reading

    def options_of_reading(self) -> list[str]:
        """Return the options with which other commands read the captures in the same way."""
        words = [word for port in self.decode_as for word in ("--decode-as", str(port))]
        if self.max_ratio != MOST_TIMES:
            words += ["--max-ratio", str(self.max_ratio)]
        return words

    def store(self, table: str) -> RowStore[Any]:
        """Return the rows of a table."""
        stores: dict[str, RowStore[Any]] = {
            tables.EXCHANGES: self.exchanges,
            tables.MESSAGES: self.messages,
            tables.CONNECTIONS: self.connections,
        }
        return stores[table]

    def add(
        self,
        rows: Sequence[ExchangeRecord],
        exchanges: Sequence[Exchange] = (),
        carried: Iterable[Carried] = (),
    ) -> None:
        """Take exchanges, their frames where they are there, and the messages in them."""
        if not rows:
            return
        first = self.exchanges.count
        if self.frames is not None:
            self.frames.add(exchanges)
        self.exchanges.add(rows)
        self.seen[tables.EXCHANGES].add(rows)
        with self._lock:
            self._fold.add(rows)
        place = {id(row): first + at for at, row in enumerate(rows)}
        messages: list[MessageRecord] = []
        for one in carried:
            self._exchange_of.extend([place[id(one.exchange)]] * len(one.messages))
            messages += one.messages
        self.add_messages(messages)
        if self.frames is not None and self.exchanges.first:
            self.frames.drop_before(self.exchanges.first)
        self.version += 1

    def add_messages(self, rows: Sequence[MessageRecord]) -> None:
        """Take messages."""
        if rows:
            self.messages.add(rows)
            self.seen[tables.MESSAGES].add(rows)
            self.version += 1

    def add_connections(self, rows: Sequence[ConversationRecord]) -> None:
        """Take connections that ended."""
        if rows:
            self.connections.add(rows)
            self.seen[tables.CONNECTIONS].add(rows)
            with self._lock:
                self._fold.add_connections(rows)
            self.version += 1

    def add_findings(self, findings: Sequence[ExpertInfo]) -> None:
        """Take findings."""
        if findings:
            with self._lock:
                self._fold.add_findings(findings)
            self.version += 1

    def exchange_of_message(self, number: int) -> int | None:
        """Return the number of the exchange that a message was seen in; None: not known."""
        return self._exchange_of[number] if number < len(self._exchange_of) else None

    def cut(self) -> ExpertInfo | None:
        """Return the first finding of a capture that ends inside a packet; None: there is none."""
        return self._fold.summary.findings.get(ExpertKind.CAPTURE_TRUNCATED)

    def cut_short(self) -> str:
        """Return where a capture is cut, in a few words; empty: none is."""
        found = self.cut()
        if found is None:
            return ""
        if found.packet == 0:  # a decoded log does not say which one
            return "cut inside a packet"
        text = f"cut after packet {packet_number(found.packet)}"
        if len(self.captures) > 1:
            text += f" of {one_line(Path(self.captures[capture_index(found.packet)]).name)}"
        return text

    def diagnosis(self) -> Diagnosis | None:
        """Return what is wrong by now."""
        with self._lock:
            return self._fold.diagnosis()

    def summary_lines(self, width: int, colour: bool) -> list[str]:
        """Return the summary by now, as printable lines."""
        from dissectors.decode.totals import DecodeStats

        from ...summary.summary_text import summary_lines
        from ...ui.console import Terminal

        with self._lock:
            return summary_lines(
                self._fold.summary,
                self.stats or DecodeStats(),
                self.captures,
                Terminal(True, width, colour),
                self._fold.diagnosis(),
            )

    def close(self) -> None:
        """Let go of everything."""
        for store in (self.exchanges, self.messages, self.connections):
            store.close()
        if self.frames is not None:
            self.frames.close()
