"""Decoded logs as inputs of the API: rows, frames, problems, a summary, message traces.

Rules: nothing is decoded again, so there are no commands, and bodies are as the log has them.
Missing data is an error, never an empty result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.inputs.inputs import Input, InputError
from analytics.inputs.inputs import inputs_of as logs_named
from analytics.inputs.rows import conversation_rows, exchange_rows, finding_records, message_rows
from analytics.inputs.window import TimeWindow
from dissectors.decode.decoded_log import FindingRecord, Manifest
from dissectors.decode.totals import CaptureStats, DecodeStats, set_sums
from dissectors.findings import Finding, FindingKind
from dissectors.tcp.capture import CAPTURE_SHIFT
from dissectors.times import Moment, moment_of

from ..errors import ArgumentError, ReadError
from .capture import Capture
from .choice import Choice, Time, choice_of, chosen, in_window
from .inputs import Inputs, translated
from .tables import named as tables
from .tables.table import Table

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame, SparkSession

    from analytics.diagnosis.engine import Engine
    from analytics.life.search import MessageSearch
    from dissectors.broker_store.store_folder import StoreFolder

    from .judged import RequestedTime
    from .lives import Traces
    from .summarised import CaptureSummary

_CAPTURES = "read the captures; its manifest.json names them"


class DecodedLog(Capture):
    """A decoded log; `rmqtool.read` returns it for decoded logs."""

    def __init__(self, names: Sequence[str]) -> None:
        """Raise ReadError for a log that is damaged, or newer than this program."""
        super().__init__(Inputs(names))
        with _translated():
            self._logs = logs_named(names)
        self._names = names

    def to_parquet(
        self,
        folder: str | os.PathLike[str],  # noqa: ARG002
        where: str = "",  # noqa: ARG002
        **options: Any,  # noqa: ARG002
    ) -> Path:
        """Raise ReadError: the input is a decoded log already."""
        raise ReadError(
            "already a decoded log",
            self._logs[0].name,
            hint="copy its folder, or use pyarrow.parquet.write_table(log.to_arrow(…), …)",
        )

    def to_spark(
        self,
        spark: SparkSession,
        table: str = tables.EXCHANGES,
        where: str = "",
        *,
        since: Time | None = None,
        until: Time | None = None,
    ) -> DataFrame:
        """Return a table as a DataFrame of Spark, whose tasks read the files of the logs.

        A filtered table beside the exchanges is read now and given to Spark. Raise as `to_batches`
        does.
        """
        choice = choice_of(where, since, until, None)
        self._tests(self._table_named(table), choice, [])  # report an invalid filter now
        if table == tables.EXCHANGES or choice == Choice():
            from analytics.inputs.source import log_frame

            name = "conversations" if table == tables.CONNECTIONS else table
            with _translated():
                logs = self._logs_in(choice)
                frame = log_frame(spark, logs, name, where, choice.since, choice.until)
            if frame is not None:
                return frame
        return spark.createDataFrame(self.to_arrow(table, where, since=since, until=until))

    def summary(self) -> CaptureSummary:
        """Return the summary: operations, responses, clients, findings, problems.

        Inputs, and the numbers of frames, commands, and gaps, are those of the manifest.
        """
        from .summarised import CaptureSummary, SummaryFold

        fold = SummaryFold(diagnosed=True)
        stats = self._stats()
        names = [capture.name for capture in stats.captures]
        with _translated():
            for log in self._logs:
                for exchanges in exchange_rows(log):
                    fold.add(exchanges)
                for connections in conversation_rows(log):
                    fold.add_connections(connections)
                for findings in finding_records(log):
                    fold.add_findings(_infos_of(findings, names))
        return CaptureSummary(fold.summary, stats, names, fold.diagnosis())

    def _judge(self, engine: Engine, choice: Choice, asked: RequestedTime) -> None:
        from .judged import fed_rows

        with _translated():
            for log in self._logs_in(choice):
                for _ in fed_rows(log, engine, asked):
                    pass

    def _lives(
        self,
        key: str | None,
        test: Callable[[object], bool] | None,
        stores: Sequence[StoreFolder],
    ) -> Traces:
        from analytics.life.life import lives_found
        from analytics.life.search import MessageSearch

        from .lives import Traces, add_stores

        search = MessageSearch(key, test)
        with _translated():
            for log in self._logs:
                search_log(log, search)
            add_stores(stores, search)
        return Traces(lives_found(search, [self._stats()], stores))

    # -- inside -----------------------------------------------------------------------------------

    def _batches(
        self, table: Table[Any], choice: Choice, body_limit: int | None = None
    ) -> Iterator[Sequence[Any]]:
        table = self._table_named(table.name)
        if body_limit is not None:
            raise ArgumentError(
                "body_limit: a decoded log keeps bodies as they were written", hint=_CAPTURES
            )
        tests = self._tests(table, choice, [])
        return self._rows_of(table, choice, tests)

    def _rows_of(
        self, table: Table[Any], choice: Choice, tests: Sequence[Callable[[object], bool]]
    ) -> Iterator[Sequence[Any]]:
        room = choice.limit
        with _translated():
            logs = self._logs_in(choice)
        batches = (rows for log in logs for rows in _READERS[table.name](log))
        while room is None or room > 0:
            with _translated():
                batch = next(batches, None)
            if batch is None:
                return
            rows = chosen(batch, tests, room)
            yield rows
            if room is not None:
                room -= len(rows)

    def _tests(
        self, table: Table[Any], choice: Choice, names: Sequence[str]
    ) -> list[Callable[[object], bool]]:
        window = in_window(table, choice, always=True)
        whole = super()._tests(table, Choice(choice.where), names)
        return [*([window] if window is not None else []), *whole]

    def _stats(self) -> DecodeStats:
        return stats_of([log.manifest for log in self._logs if log.manifest is not None])

    def _logs_in(self, choice: Choice) -> Sequence[Input]:
        """Return the logs, without the parts outside the time range."""
        window = TimeWindow(choice.since, choice.until)
        return self._logs if window == TimeWindow() else logs_named(self._names, window)

    def _table_named(self, name: str) -> Table[Any]:
        """Return a table that every log has; raise ReadError if one lacks it."""
        table = tables.table_named(name)
        if name == tables.COMMANDS:
            raise ReadError(
                "a decoded log has exchanges, not their commands",
                self._logs[0].name,
                hint=_CAPTURES,
            )
        lacks = [log.name for log in self._logs if not _HAVE[name](log)]
        if lacks:
            raise ReadError(f"this decoded log has no {name}", lacks[0], hint=_CAPTURES)
        return table


_READERS: dict[str, Callable[[Input], Iterator[Sequence[Any]]]] = {
    tables.EXCHANGES: exchange_rows,
    tables.MESSAGES: message_rows,
    tables.CONNECTIONS: conversation_rows,
    tables.FINDINGS: finding_records,
}
_HAVE: dict[str, Callable[[Input], bool]] = {
    tables.EXCHANGES: lambda _: True,
    tables.MESSAGES: lambda log: log.messages is not None,
    tables.CONNECTIONS: lambda log: log.conversations is not None,
    tables.FINDINGS: lambda log: log.findings is not None,
}


def search_log(
    log: Input, search: MessageSearch, since: Moment | None = None, until: Moment | None = None
) -> None:
    """Feed a decoded log to a search, batch by batch; raise ReadError if it has no messages."""
    from .lives import Given

    if log.messages is None:
        raise ReadError("this decoded log has no messages", log.name, hint=_CAPTURES)
    starts = (
        [capture.first_time for capture in log.manifest.captures]
        if log.manifest is not None
        else []
    )
    first = next((moment for start in starts if start and (moment := moment_of(start))), None)
    feed = Given(search, since, until, first.ns if first is not None else 0)
    search.attempts.begin_input(log.name)
    for rows in message_rows(log):
        feed.add(rows)
    for exchanges in exchange_rows(log):
        feed.add_exchanges(exchanges)
    for connections in conversation_rows(log):
        search.attempts.add_connections(connections)


def stats_of(manifests: Sequence[Manifest]) -> DecodeStats:
    """Return the combined statistics of the runs that wrote the logs."""
    stats = DecodeStats(captures=[])
    set_sums(stats, manifests)  # type: ignore[arg-type]
    stats.conversations = sum(item.conversations for item in manifests)
    counts = dict.fromkeys(FindingKind, 0)
    for manifest in manifests:
        for entry in manifest.captures:
            fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
            first, last = fields.pop("first_time"), fields.pop("last_time")
            stats.captures.append(
                CaptureStats(**fields, first_ts=_ns_of(first), last_ts=_ns_of(last))
            )
        for name, number in manifest.findings.items():
            if name in FindingKind.__members__:
                counts[FindingKind[name]] += number
    stats.finding_counts = {kind: number for kind, number in counts.items() if number}
    return stats


def _ns_of(text: str | None) -> int | None:
    moment = moment_of(text) if text is not None else None
    return None if moment is None else moment.ns


def _infos_of(findings: Sequence[FindingRecord], names: Sequence[str]) -> list[Finding]:
    """Return findings in the form of a run; `names` are the captures, by index."""
    # As in a run: the upper bits of a packet's id are the index of its capture.
    places = {name: index for index, name in enumerate(names)}
    return [
        Finding(
            FindingKind[finding.kind],
            finding.detail,
            finding.time or 0,
            (places.get(finding.capture or "", 0) << CAPTURE_SHIFT) + (finding.packet or 0),
            -1 if finding.conversation is None else finding.conversation,
            -1 if finding.offset is None else finding.offset,
        )
        for finding in findings
        if finding.kind in FindingKind.__members__
    ]


@contextmanager
def _translated() -> Iterator[None]:
    """Translate errors of reading logs to `rmqtool.Error`."""
    try:
        with translated():
            yield
    except InputError as error:
        raise ReadError(error.message, hint=error.hint) from error
