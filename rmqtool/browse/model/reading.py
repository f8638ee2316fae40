"""Read captures, decoded logs or an interface into a session, in a thread beside the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Thread

from analytics.inputs.inputs import Input, InputError
from analytics.inputs.rows import conversation_rows, exchange_rows, finding_rows, message_rows
from dissectors.decode.pipeline import Decode
from dissectors.foreign import Unreadable
from dissectors.rows.parquet import MissingLibraryError
from dissectors.tcp.source import CaptureError

from ...api.judged import RequestedTime
from .session import BrowseSession

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
