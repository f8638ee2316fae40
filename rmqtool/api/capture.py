"""A capture and its queries: rows, frames, problems, a summary.

Rules: nothing is read before a query; each query reads the input again, in chunks, so memory does
not depend on its size, except for complete results (Arrow, pandas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.processes.choice import decode_of
from dissectors.remoting.bodies.custom import NamedDecoder, decoding_with
from dissectors.remoting.bodies.messages import PREVIEW_LIMIT as PREVIEW
from dissectors.tcp.decompression import MOST_TIMES

from ..errors import ArgumentError
from ..ui.sorting import by_key, sort_key
from .choice import Choice, Time, choice_of, chosen, in_window, test_of
from .inputs import Inputs, evidence_of, translated
from .tables import named as tables
from .tables.table import Table

if TYPE_CHECKING:
    import os

    import pandas
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from analytics.diagnosis.engine import Engine
    from dissectors.broker_store.store_folder import StoreFolder
    from dissectors.decode.decoded_log import FindingRecord
    from dissectors.rows.command_record import CommandRow
    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord
    from dissectors.rows.record import ExchangeRecord

    from .judged import Problems, RequestedTime
    from .lives import Traces
    from .summarised import CaptureSummary


TASKS_DECODE: Final = {
    tables.EXCHANGES: "exchanges",
    tables.CONNECTIONS: "conversations",
    tables.FINDINGS: "findings",
}
"""table → name in the Spark data source"""


_BATCH: Final = 1000
"""rows of a sorted batch"""


class Capture:
    """A capture, as `rmqtool.read` returns it."""

    def __init__(
        self,
        inputs: Inputs,
        decode_as: frozenset[int] = frozenset(),
        jobs: int = 1,
        plugins: Sequence[NamedDecoder] = (),
        tls_keylog: str = "",
        max_ratio: int = MOST_TIMES,
    ) -> None:
        self._inputs = inputs
        self._plugins = plugins
        self._decode_as = decode_as
        self._tls_keylog = tls_keylog
        self._max_ratio = max_ratio
        self._jobs = 1 if plugins else jobs  # the functions of plug-ins are of this process

    def __repr__(self) -> str:
        names = [part if isinstance(part, str) else "…" for part in self._inputs.parts]
        return f"Capture({', '.join(map(repr, names[:4]))}{', …' if len(names) > 4 else ''})"

    # -- rows -------------------------------------------------------------------------------------

    def exchanges(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        sort: str | None = None,
    ) -> Iterator[ExchangeRecord]:
        """Yield exchanges (a request and its response, as far as known) as they are settled.

        `where` is a filter as in ``--where``; `since` and `until` apply to the request. `sort`:
        ``time``, or ``latency`` for the slowest first; all rows are read before the first one.
        Raise FilterError and ArgumentError at once, ReadError while reading.
        """
        return self._rows(tables.EXCHANGES, choice_of(where, since, until, limit, sort))

    def commands(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        body_limit: int | None = None,
    ) -> Iterator[CommandRow]:
        """Yield commands with their full header and decoded body, in capture order.

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
        sort: str | None = None,
        body_limit: int | None = None,
    ) -> Iterator[MessageRecord]:
        """Yield each message of each exchange: sent, stored, delivered, acknowledged.

        `body_limit`: bytes of a body that are shown; None: none. `sort` as in `exchanges`. Raise
        as `exchanges` does.
        """
        return self._rows(tables.MESSAGES, choice_of(where, since, until, limit, sort), body_limit)

    def connections(
        self,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
    ) -> Iterator[ConversationRecord]:
        """Yield TCP connections as they end; `since` and `until` apply to the first packet.

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
    ) -> Iterator[FindingRecord]:
        """Yield findings about the capture itself: gaps, damage, undecodable bodies.

        Raise as `exchanges` does.
        """
        return self._rows(tables.FINDINGS, choice_of(where, since, until, limit))

    # -- frames -----------------------------------------------------------------------------------

    def to_batches(
        self,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        columns: Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        sort: str | None = None,
        body_limit: int | None = None,
    ) -> Iterator[pyarrow.RecordBatch]:
        """Yield a table as Arrow batches, one in memory at a time.

        `columns`: only these, in this order; None: all. `sort` is for exchanges and messages, as
        in `exchanges`. Raise ArgumentError for an unknown table
        or column, MissingExtraError without pyarrow, and the errors of `exchanges`.
        """
        from .frames import arrow_batches, form_of

        choice = choice_of(where, since, until, limit, sort)
        rows = self._in_order(tables.table_named(table), choice, body_limit)
        return arrow_batches(form_of(tables.table_named(table), columns), rows)

    def to_arrow(
        self,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        columns: Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        sort: str | None = None,
        body_limit: int | None = None,
    ) -> pyarrow.Table:
        """Return a table as one Arrow table; raise as `to_batches` does."""
        from .frames import arrow_table, form_of

        choice = choice_of(where, since, until, limit, sort)
        rows = self._in_order(tables.table_named(table), choice, body_limit)
        return arrow_table(form_of(tables.table_named(table), columns), rows)

    def to_pandas(
        self,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        columns: Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        sort: str | None = None,
        body_limit: int | None = None,
        categories: bool = False,
    ) -> pandas.DataFrame:
        """Return a table as a pandas DataFrame; raise as `to_batches` does.

        Texts are strings, numbers may be missing (`Int64`), times are UTC; `latency` is a
        timedelta next to `latency_us`, and `keys` is `message_keys`. `categories`: texts that
        repeat are categorical, which saves memory.
        """
        from .frames import data_frame, load_pandas

        load_pandas()
        return data_frame(
            self.to_arrow(
                table,
                where,
                columns=columns,
                since=since,
                until=until,
                limit=limit,
                sort=sort,
                body_limit=body_limit,
            ),
            categories,
        )

    # -- logs and Spark ---------------------------------------------------------------------------

    def to_parquet(
        self,
        folder: str | os.PathLike[str],
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
        limit: int | None = None,
        messages: bool = True,
        body_limit: int | None = None,
        replace: bool = False,
    ) -> Path:
        """Write a decoded log in Parquet, as ``decode pcap -T parquet -o`` does; return its folder.

        The filter applies to exchanges; `messages`: also write their messages. `replace`: an
        existing decoded log may be replaced. Raise WriteError and the errors of `to_batches`;
        after an error no partial log is left.
        """
        from .log import write_log

        table, choice = tables.table_named(tables.EXCHANGES), choice_of(where, since, until, limit)
        tests = self._tests(table, choice, [])
        decode = self._decode(
            choice,
            conversations=True,
            messages=messages,
            body_limit=body_limit if body_limit is not None else PREVIEW * bool(self._plugins),
        )
        target = Path(folder)
        with translated(), decoding_with(self._plugins):
            write_log(decode, target, choice, tests, replace)
        return target

    def to_spark(
        self,
        spark: SparkSession,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
    ) -> DataFrame:
        """Return a table as a Spark DataFrame.

        Exchanges, connections, and findings of files are decoded in Spark tasks, which need
        the files under the same path: small ones whenever the DataFrame is computed, large ones
        once, now. Other tables are decoded here and sent to Spark. Raise as `to_batches` does.
        """
        choice = choice_of(where, since, until, None)
        chosen_table = tables.table_named(table)
        self._tests(chosen_table, choice, [])  # report an invalid filter now
        files = self._inputs.files
        whole = choice == Choice()
        if files is not None and (table == tables.EXCHANGES or whole) and table in TASKS_DECODE:
            from analytics.inputs.capture_frame import capture_frame

            return capture_frame(
                spark, files, TASKS_DECODE[table], sorted(self._decode_as), where,
                choice.since, choice.until, self._tls_keylog, self._max_ratio,
            )  # fmt: skip
        return spark.createDataFrame(self.to_arrow(table, where, since=since, until=until))

    # -- verdicts ---------------------------------------------------------------------------------

    def problems(
        self,
        *,
        rules: Iterable[str] = (),
        since: Time | None = None,
        until: Time | None = None,
        stores: Iterable[str | os.PathLike[str]] = (),
    ) -> Problems:
        """Return the problems that ``rmqtool diagnose`` finds: by incident, the cause first.

        `rules`: IDs of the rules to check; none: all. `stores`: copies of brokers' store folders,
        to look messages up in. Raise ArgumentError for an unknown rule, ReadError for a folder
        without a commit log.
        """
        from .judged import Problems, RequestedTime, engine_of, rules_named

        engine = engine_of(rules_named(rules))
        engine.context.store = evidence_of(stores)
        choice = choice_of("", since, until, None)
        asked = RequestedTime.of(choice)
        with translated():
            self._judge(engine, choice, asked)
            asked.limit(engine)
            return Problems.of(engine.diagnosis())

    def summary(self) -> CaptureSummary:
        """Return the summary: operations, responses, clients, findings, problems.

        `print` shows it as text, a notebook as tables.
        """
        from .summarised import summarised

        with translated():
            return summarised(self._decode(Choice(), conversations=True))

    def trace(
        self,
        key: str = "",
        *,
        where: str = "",
        stores: Iterable[str | os.PathLike[str]] = (),
    ) -> Traces:
        """Return the traces of the messages of a key, or that match a filter of messages.

        `key`: a unique key, an offset message id or a business key. `stores`: copies of brokers'
        store folders, to look messages up in. Raise ArgumentError without a key and a filter, and
        as `exchanges` does.
        """
        table = tables.table_named(tables.MESSAGES)
        if not key.strip() and not where.strip():
            raise ArgumentError("no message selected; pass a key or where=")
        evidence = evidence_of(stores)
        test = test_of(where, table.fields([]))
        return self._lives(key.strip() or None, test, () if evidence is None else evidence.stores)

    # -- inside -----------------------------------------------------------------------------------

    def _judge(self, engine: Engine, _choice: Choice, asked: RequestedTime) -> None:
        """Feed all rows to the engine."""
        from .judged import fed

        for _ in fed(self._decode(Choice(), conversations=True), engine, asked):
            pass

    def _lives(
        self,
        key: str | None,
        test: Callable[[object], bool] | None,
        stores: Sequence[StoreFolder],
    ) -> Traces:
        from .lives import lives_in

        limit = PREVIEW if self._plugins else 0
        with translated(), decoding_with(self._plugins):
            decode = self._decode(Choice(), conversations=True, messages=True, body_limit=limit)
            return lives_in(decode, key, test, stores)

    def _rows(self, name: str, choice: Choice, body_limit: int | None = None) -> Iterator[Any]:
        batches = self._in_order(tables.table_named(name), choice, body_limit)
        return (row for batch in batches for row in batch)

    def _in_order(
        self, table: Table[Any], choice: Choice, body_limit: int | None
    ) -> Iterator[Sequence[Any]]:
        """Yield the chosen rows in the chosen order, of which the limit takes the first ones."""
        if choice.sort is None:
            return self._batches(table, choice, body_limit)
        if table.name not in (tables.EXCHANGES, tables.MESSAGES):
            raise ArgumentError("sort: only exchanges and messages can be sorted")
        batches = self._batches(table, replace(choice, limit=None), body_limit)
        return _first(by_key(batches, sort_key(choice.sort, table.time)), choice.limit)

    def _batches(
        self, table: Table[Any], choice: Choice, body_limit: int | None = None
    ) -> Iterator[Sequence[Any]]:
        """Yield the chosen rows; check the filter now, and read the input on iteration."""
        names: list[str] = []
        tests = self._tests(table, choice, names)
        if body_limit is None:
            body_limit = PREVIEW if self._plugins and table.body_limit == 0 else table.body_limit

        def started() -> Decode:
            decode = self._decode(
                choice if table.windowed else Choice(),
                conversations=table.name == tables.CONNECTIONS,
                messages=table.name == tables.MESSAGES,
                body_limit=body_limit,
                jobs=1 if table.name == tables.COMMANDS else self._jobs,
            )
            names[:] = decode.sources  # in which the tests look captures up
            return decode

        return _read_rows(table, started, choice.limit, tests, self._plugins, body_limit)

    def _tests(
        self, table: Table[Any], choice: Choice, names: Sequence[str]
    ) -> list[Callable[[object], bool]]:
        """Return the tests of a row; `names` are the captures, by index."""
        # the time first: it is cheaper to test
        tests = (in_window(table, choice), test_of(choice.where, table.fields(names)))
        return [test for test in tests if test is not None]

    def _decode(
        self,
        choice: Choice,
        *,
        conversations: bool = False,
        messages: bool = False,
        body_limit: int = 0,
        jobs: int | None = None,
    ) -> Decode:
        """Return a run over the input from its beginning."""
        options = DecodeOptions(
            decode_as=self._decode_as,
            tls_keylog=self._tls_keylog,
            max_ratio=self._max_ratio,
            follow=self._inputs.live,
            since=choice.since,
            until=choice.until,
            conversations=conversations,
            messages=messages,
            body_limit=body_limit,
        )
        return decode_of(self._inputs.opened(), options, self._jobs if jobs is None else jobs)


def _first(batches: Iterator[Sequence[Any]], limit: int | None) -> Iterator[Sequence[Any]]:
    """Yield the first rows of batches, without empty ones."""
    rows = islice((row for batch in batches for row in batch), limit)
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _read_rows(
    table: Table[Any],
    started: Callable[[], Decode],
    room: int | None,
    tests: Sequence[Callable[[object], bool]],
    plugins: Sequence[NamedDecoder],
    body_limit: int,
) -> Iterator[Sequence[Any]]:
    """Read to the end, or until `room` rows were yielded; `started` opens the input.

    Plug-ins are active only while rows are decoded, not while the caller uses them.
    """
    batches: Iterator[Sequence[Any]] | None = None
    show = table.shown
    while room is None or room > 0:
        with translated(), decoding_with(plugins):
            if batches is None:
                decode = started()
                batches = iter(table.batches(decode))
            batch = next(batches, None)
            if batch is None:
                return
            decode.take_findings()  # the table that wants them has them
            rows = chosen(batch, tests, room)
            if show is not None:
                shown = [show(row, decode.sources, body_limit) for row in rows]
        yield rows if show is None else shown
        if room is not None:
            room -= len(rows)
