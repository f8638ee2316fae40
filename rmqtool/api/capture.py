"""A capture, and what can be asked of it: rows, frames, problems, a summary.

Rules: nothing is read before something is asked; each question reads the input anew, in chunks, so
that memory does not depend on its size, but for what is returned as a whole (Arrow, pandas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.shards import decode_of

from .choice import Choice, Time, choice_of, chosen, in_window, test_of
from .inputs import Inputs, inputs_of
from .tables import named as tables
from .tables.table import Table
from .translated import translated

if TYPE_CHECKING:
    import os

    import pandas
    import pyarrow

    from dissectors.decode.command_row import CommandRow
    from dissectors.decode.decoded_log import Finding
    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord
    from dissectors.rows.record import ExchangeRecord

    Given = str | os.PathLike[str] | bytes | bytearray | memoryview | Iterable[Any]


class Capture:
    """What was captured; `rmqtool.read` makes it."""

    def __init__(self, inputs: Inputs, decode_as: frozenset[int] = frozenset(), jobs: int = 1):
        self._inputs = inputs
        self._decode_as = decode_as
        self._jobs = jobs

    def __repr__(self) -> str:
        names = [one if isinstance(one, str) else "…" for one in self._inputs.parts]
        return f"Capture({', '.join(map(repr, names[:4]))}{', …' if len(names) > 4 else ''})"

    # -- rows -------------------------------------------------------------------------------------

    def exchanges(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
    ) -> Iterator[ExchangeRecord]:
        """Give each request with its response, or what is known of them, as they are settled.

        `where` is a filter as of ``--where``; `since` and `until` are of the request. Raise
        FilterError and ArgumentError at once, ReadError while reading.
        """
        return self._rows(tables.EXCHANGES, choice_of(where, since, until, limit))

    def commands(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        body_limit: int | None = None,
    ) -> Iterator[CommandRow]:
        """Give each command with all of its header and its body taken apart, in capture order.

        `body_limit`: bytes of a body that are shown; None: 4 MiB. Raise as `exchanges` does.
        """
        return self._rows(tables.COMMANDS, choice_of(where, since, until, limit), body_limit)

    def messages(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        body_limit: int | None = None,
    ) -> Iterator[MessageRecord]:
        """Give each message in each exchange that shows it: sent, stored, delivered, acknowledged.

        `body_limit`: bytes of a body that are shown; None: none. Raise as `exchanges` does.
        """
        return self._rows(tables.MESSAGES, choice_of(where, since, until, limit), body_limit)

    def connections(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
    ) -> Iterator[ConversationRecord]:
        """Give each TCP connection, when it has ended; `since` and `until` are of its first packet.

        Raise as `exchanges` does.
        """
        return self._rows(tables.CONNECTIONS, choice_of(where, since, until, limit))

    def findings(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
    ) -> Iterator[Finding]:
        """Give what is odd about the capture itself: gaps, damage, bodies that do not decode.

        Raise as `exchanges` does.
        """
        return self._rows(tables.FINDINGS, choice_of(where, since, until, limit))

    # -- frames -----------------------------------------------------------------------------------

    def to_batches(
        self,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        body_limit: int | None = None,
    ) -> Iterator[pyarrow.RecordBatch]:
        """Give a table as Arrow batches, one in memory at a time.

        Raise ArgumentError for a table that there is not, MissingExtraError without pyarrow, and
        what `exchanges` raises.
        """
        from .frames import arrow_batches, form_of

        choice = choice_of(where, since, until, limit)
        rows = self._batches(tables.table_named(table), choice, body_limit)
        return arrow_batches(form_of(tables.table_named(table)), rows)

    def to_arrow(
        self,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        body_limit: int | None = None,
    ) -> pyarrow.Table:
        """Return a table as one Arrow table; raise as `to_batches` does."""
        from .frames import arrow_table, form_of

        choice = choice_of(where, since, until, limit)
        rows = self._batches(tables.table_named(table), choice, body_limit)
        return arrow_table(form_of(tables.table_named(table)), rows)

    def to_pandas(
        self,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        body_limit: int | None = None,
    ) -> pandas.DataFrame:
        """Return a table as a pandas DataFrame; raise as `to_batches` does.

        Names are categorical, numbers may be missing (`Int64`), times are UTC.
        """
        from .frames import data_frame, load_pandas

        load_pandas()
        return data_frame(
            self.to_arrow(
                table, where, since=since, until=until, limit=limit, body_limit=body_limit
            )
        )

    # -- inside -----------------------------------------------------------------------------------

    def _rows(self, name: str, choice: Choice, body_limit: int | None = None) -> Iterator[Any]:
        batches = self._batches(tables.table_named(name), choice, body_limit)
        return (row for batch in batches for row in batch)

    def _batches(
        self, table: Table[Any], choice: Choice, body_limit: int | None = None
    ) -> Iterator[Sequence[Any]]:
        """Give the rows that are asked for; the filter is looked at now, the input when read."""
        names: list[str] = []
        tests = [
            one
            for one in (in_window(table, choice), test_of(choice.where, table.fields(names)))
            if one is not None
        ]
        shown = table.body_limit if body_limit is None else body_limit
        return self._read(table, choice, tests, names, shown)

    def _read(
        self,
        table: Table[Any],
        choice: Choice,
        tests: Sequence[Callable[[object], bool]],
        names: list[str],
        body_limit: int,
    ) -> Iterator[Sequence[Any]]:
        """Read to the end, or to the limit; `names` becomes those of the captures."""
        room = choice.limit
        if room == 0:
            return
        with translated():
            decode = self._decode(table, choice, body_limit)
            names[:] = decode.sources
            show = table.shown
            for batch in table.batches(decode):
                rows = chosen(batch, tests, room)
                yield rows if show is None else [show(row, names, body_limit) for row in rows]
                if room is not None:
                    room -= len(rows)
                    if not room:
                        return

    def _decode(self, table: Table[Any], choice: Choice, body_limit: int) -> Decode:
        """Return a run that makes the rows of a table."""
        windowed = table.windowed
        options = DecodeOptions(
            decode_as=self._decode_as,
            since=choice.since if windowed else None,
            until=choice.until if windowed else None,
            conversations=table.name == tables.CONNECTIONS,
            messages=table.name == tables.MESSAGES,
            body_limit=body_limit,
        )
        jobs = 1 if table.name == tables.COMMANDS else self._jobs
        return decode_of(self._inputs.opened(), options, jobs)


def read(*given: Given, decode_as: Iterable[int] = (), jobs: int = 1) -> Capture:
    """Return the capture in what is given: names of files and folders, bytes, or lists of them.

    ``-`` is standard input. All captures together are one: a connection goes on from one to the
    next. `decode_as` are TCP ports of which every connection is taken to be RocketMQ; `jobs` is the
    number of processes that decode. Nothing is read yet. Raise ReadError for a name that does not
    exist, ArgumentError for what is no input.
    """
    return Capture(inputs_of(given), frozenset(decode_as), jobs)
