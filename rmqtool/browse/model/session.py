"""The data read so far: rows of exchanges, messages, and connections, frames, summary.

One thread adds; the screen reads the current state.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from analytics.inputs.inputs import Input, InputError
from analytics.inputs.rows import conversation_rows, exchange_rows, finding_rows, message_rows
from dissectors.decode.pipeline import Decode
from dissectors.findings import FindingKind
from dissectors.foreign import Unreadable
from dissectors.rows.column import Column
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
from dissectors.rows.parquet import MissingLibraryError
from dissectors.rows.record import COLUMNS, ExchangeRecord
from dissectors.tcp.capture import capture_index, packet_number
from dissectors.tcp.decompression import MOST_TIMES
from dissectors.tcp.source import CaptureError

from ...api.judged import RequestedTime
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
    from dissectors.findings import Finding

MOST_VALUES: Final = 500
"""most values per column for completion"""
_SHORT: Final = 120


class SeenValues:
    """Known values of the columns of a table, for completion."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._values: dict[str, dict[str, None]] = {
            column.name: {} for column in columns if column.type == "string"
        }
        self._gets = {name: attrgetter(name) for name in self._values}

    def add(self, rows: Sequence[object]) -> None:
        """Record the values of rows."""
        for name, values in self._values.items():
            if len(values) < MOST_VALUES:
                for value in set(map(self._gets[name], rows)):
                    if isinstance(value, str) and len(value) <= _SHORT:
                        values[value] = None

    def values(self, column: str) -> list[str]:
        """Return the values of a column, in the order first seen."""
        return list(self._values.get(column, ()))


class BrowseSession:
    """All data of a browser."""

    def __init__(self, name: str, most_rows: int | None = None, has_frames: bool = True) -> None:
        """`most_rows`: most exchanges that are kept; None: all."""
        self.name = name
        """short name of the input"""
        self.exchanges = RowStore(ExchangeRecord, COLUMNS, most_rows)
        self.messages = RowStore(MessageRecord, MESSAGE_COLUMNS, most_rows)
        self.connections = RowStore(ConversationRecord, CONVERSATION_COLUMNS, most_rows)
        self._stores: dict[str, RowStore[Any]] = {
            tables.EXCHANGES: self.exchanges,
            tables.MESSAGES: self.messages,
            tables.CONNECTIONS: self.connections,
        }
        self.frames = FrameStore() if has_frames else None
        """None: the input has only rows"""
        self.seen = {name: SeenValues(store.columns) for name, store in self._stores.items()}
        self.captures: Sequence[str] = ()
        """names of the inputs, by index"""
        self.decode_as: Sequence[int] = ()
        """ports that are taken for RocketMQ, as they were given"""
        self.tls_keylog = ""
        """file with keys of TLS, as it was given"""
        self.max_ratio = MOST_TIMES
        """bytes that each byte of a compressed capture may become"""
        self.stats: DecodeStats | None = None
        self.progress: Callable[[], tuple[int, int | None]] = lambda: (0, None)
        """bytes read, and total bytes"""
        self.is_reading = True
        self.is_live = False
        self.is_by_time = False
        """lists are sorted by time, once all is read"""
        self.problem: str | None = None
        """why reading ended early"""
        self.version = 0
        """incremented with each addition"""
        self._exchange_of = 0, array("q")
        """a message number, and the exchange numbers of the messages from it on"""
        self._fold = SummaryFold(diagnosed=True)
        self._lock = Lock()

    @property
    def is_empty(self) -> bool:
        """Whether reading ended without a result."""
        return not self.is_reading and not any(store.count for store in self._stores.values())

    def options_of_reading(self) -> list[str]:
        """Return the options that make other commands read the captures in the same way."""
        words = [word for port in self.decode_as for word in ("--decode-as", str(port))]
        if self.max_ratio != MOST_TIMES:
            words += ["--max-ratio", str(self.max_ratio)]
        return words

    def store(self, table: str) -> RowStore[Any]:
        """Return the rows of a table."""
        return self._stores[table]

    def add(
        self,
        rows: Sequence[ExchangeRecord],
        exchanges: Sequence[Exchange] = (),
        carried: Iterable[Carried] = (),
    ) -> None:
        """Add exchanges, their frames if any, and their messages."""
        if not rows:
            return
        first = self.exchanges.count
        if self.frames is not None:
            # Before the rows: once these are visible, their details can be opened.
            self.frames.add(exchanges)
        self.exchanges.add(rows)
        self.seen[tables.EXCHANGES].add(rows)
        with self._lock:
            self._fold.add(rows)
        place = {id(row): first + at for at, row in enumerate(rows)}
        messages: list[MessageRecord] = []
        for item in carried:
            self._exchange_of[1].extend([place[id(item.exchange)]] * len(item.messages))
            messages += item.messages
        self.add_messages(messages)
        if self.frames is not None and self.exchanges.first:
            self.frames.drop_before(self.exchanges.first)
        self.version += 1

    def add_messages(self, rows: Sequence[MessageRecord]) -> None:
        """Add messages."""
        if rows:
            self.messages.add(rows)
            first, numbers = self._exchange_of
            if self.messages.first > first:  # one assignment, because the screen reads it meanwhile
                self._exchange_of = self.messages.first, numbers[self.messages.first - first :]
            self.seen[tables.MESSAGES].add(rows)
            self.version += 1

    def add_connections(self, rows: Sequence[ConversationRecord]) -> None:
        """Add ended connections."""
        if rows:
            self.connections.add(rows)
            self.seen[tables.CONNECTIONS].add(rows)
            with self._lock:
                self._fold.add_connections(rows)
            self.version += 1

    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Add findings."""
        if findings:
            with self._lock:
                self._fold.add_findings(findings)
            self.version += 1

    def exchange_of_message(self, number: int) -> int | None:
        """Return the exchange number of a message, or None if unknown."""
        first, numbers = self._exchange_of
        return numbers[number - first] if 0 <= number - first < len(numbers) else None

    def cut(self) -> Finding | None:
        """Return the first finding of a capture that ends inside a packet, or None."""
        return self._fold.summary.findings.get(FindingKind.CAPTURE_TRUNCATED)

    def cut_short(self) -> str:
        """Return a short note on truncated captures, or an empty string."""
        finding = self.cut()
        if finding is None:
            return ""
        if finding.packet == 0:  # unknown in a decoded log
            return "cut inside a packet"
        text = f"cut after packet {packet_number(finding.packet)}"
        if len(self.captures) > 1:
            text += f" of {one_line(Path(self.captures[capture_index(finding.packet)]).name)}"
        return text

    def diagnosis(self) -> Diagnosis | None:
        """Return the current diagnosis."""
        with self._lock:
            return self._fold.diagnosis()

    def summary_lines(self, width: int, colour: bool) -> list[str]:
        """Return the current summary as printable lines."""
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
        """Close all files."""
        for store in self._stores.values():
            store.close()
        if self.frames is not None:
            self.frames.close()


Filling = Callable[[BrowseSession], Iterator[None]]
"""fills a session; yields periodically so that it can be stopped"""


def decoding(decode: Decode) -> Filling:
    """Return a reader that decodes captures, with connections and messages."""

    def filling(session: BrowseSession) -> Iterator[None]:
        session.captures = decode.sources
        session.stats = decode.stats
        session.progress = lambda: (decode.bytes_read, decode.bytes_total)
        for batch in decode.exchanges():
            session.add(decode.rows_of(batch), batch, decode.take_messages())
            _take_rest(session, decode)
            yield
        _take_rest(session, decode)

    return filling


def _take_rest(session: BrowseSession, decode: Decode) -> None:
    session.add_connections(decode.take_conversations())
    session.add_findings(decode.take_findings())


def reading_logs(logs: Sequence[Input], asked: RequestedTime) -> Filling:
    """Return a reader of the rows of decoded logs within the time range."""

    def filling(session: BrowseSession) -> Iterator[None]:
        session.captures = [log.name for log in logs]
        for log in logs:
            for rows in exchange_rows(log):
                session.add(asked.exchanges(rows))
                yield
            for messages in message_rows(log):
                session.add_messages(asked.messages(messages))
                yield
            for connections in conversation_rows(log):
                session.add_connections(list(asked.connections(connections)))
                yield
            for findings in finding_rows(log):
                session.add_findings(list(asked.findings(findings)))
                yield

    return filling


class BackgroundReading:
    """The thread that fills a session."""

    def __init__(
        self, session: BrowseSession, filling: Filling, stop: Callable[[], None] | None
    ) -> None:
        """`stop` ends a wait for packets."""
        self._session = session
        self._filling = filling
        self._stop = stop
        self._stopped = False
        self._thread = Thread(target=self._run, name="rmqtool-reading", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop reading and wait for the thread."""
        self._stopped = True
        if self._stop is not None:
            self._stop()
        self._thread.join(5)

    def wait(self) -> None:
        """Wait until everything is read."""
        self._thread.join()

    def _run(self) -> None:
        session = self._session
        filling = self._filling(session)
        try:
            for _ in filling:
                if self._stopped:
                    break
        except (CaptureError, InputError, Unreadable, MissingLibraryError, OSError) as error:
            session.problem = str(error)
        except Exception as error:  # keep the screen: the rows so far remain usable
            session.problem = f"{type(error).__name__}: {error}"
        finally:
            # Closes the generators inside it, and so the files that they read.
            close = getattr(filling, "close", None)
            if close is not None:
                close()
            session.is_reading = False
            session.version += 1
