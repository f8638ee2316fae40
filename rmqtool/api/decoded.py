"""Decoded logs as what programs ask: rows, frames, problems, a summary, lives of messages.

Rules: a log has what was written when it was decoded, and nothing is decoded anew: there are no
commands in it, and bodies are as the log has them. What it does not have is said, never empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analytics.inputs.inputs import Input, InputError
from analytics.inputs.inputs import inputs_of as logs_named
from analytics.inputs.rows import conversation_rows, exchange_rows, finding_records, message_rows
from dissectors.decode.decoded_log import Finding, Manifest
from dissectors.decode.totals import CaptureStats, DecodeStats, set_sums
from dissectors.expert import ExpertInfo, ExpertKind
from dissectors.tcp.capture import CAPTURE_SHIFT
from dissectors.times import Moment, moment_of

from ..errors import ArgumentError, ReadError
from .capture import Capture
from .choice import Choice, Time, choice_of, chosen, in_window
from .inputs import Inputs
from .tables import named as tables
from .tables.table import Table
from .translated import translated

if TYPE_CHECKING:
    import os

    from pyspark.sql import DataFrame, SparkSession

    from analytics.life.search import MessageSearch

    from .judged import Problems
    from .lives import Traces
    from .summarised import CaptureSummary

_CAPTURES = "read the captures: they are named in its manifest.json"


class DecodedLog(Capture):
    """What was decoded before; `rmqtool.read` makes it of decoded logs."""

    def __init__(self, names: Sequence[str]) -> None:
        """Raise ReadError for a log that is damaged, or newer than this program."""
        super().__init__(Inputs(names))
        with _translated():
            self._logs = logs_named(names)

    def to_parquet(
        self,
        folder: str | os.PathLike[str],  # noqa: ARG002
        where: str = "",  # noqa: ARG002
        **options: Any,  # noqa: ARG002
    ) -> Path:
        """Raise ReadError: it is a decoded log already."""
        raise ReadError(
            "a decoded log already",
            self._logs[0].name,
            hint="copy its folder; a part of it: pyarrow.parquet.write_table(log.to_arrow(…), …)",
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
        self._tests(self._table_named(table), choice, [])  # a wrong filter is said now
        if table == tables.EXCHANGES or choice == Choice():
            from analytics.inputs.log_frame import log_frame

            name = "conversations" if table == tables.CONNECTIONS else table
            with _translated():
                frame = log_frame(spark, self._logs, name, where, choice.since, choice.until)
            if frame is not None:
                return frame
        return spark.createDataFrame(self.to_arrow(table, where, since=since, until=until))

    def problems(
        self,
        *,
        rules: Any = (),
        since: Time | None = None,
        until: Time | None = None,
    ) -> Problems:
        """Return the problems that ``rmqtool diagnose`` finds: by incident, the cause first."""
        from .judged import Problems, engine_of, rules_named

        engine = engine_of(rules_named(rules))
        choice = choice_of("", since, until, None)
        with _translated():
            for log in self._logs:
                engine.begin_input(log.name)
                for exchanges in self._rows_in(tables.EXCHANGES, exchange_rows(log), choice):
                    engine.add_exchanges(exchanges)
                for connections in conversation_rows(log):
                    engine.add_connections(connections)
                for findings in finding_records(log):
                    engine.add_findings(_infos_of(findings, []))
        return Problems(engine.diagnosis().problems)

    def summary(self) -> CaptureSummary:
        """Return what it comes to: operations, answers, clients, findings, what is wrong.

        What was read, and the numbers of frames, commands and gaps, are those of the manifest.
        """
        from .summarised import CaptureSummary, SummaryFold

        fold = SummaryFold(diagnosed=True)
        stats = stats_of([log.manifest for log in self._logs if log.manifest is not None])
        names = [one.name for one in stats.captures]
        with _translated():
            for log in self._logs:
                for exchanges in exchange_rows(log):
                    fold.add(exchanges)
                for connections in conversation_rows(log):
                    fold.add_connections(connections)
                for findings in finding_records(log):
                    fold.add_findings(_infos_of(findings, names))
        return CaptureSummary(fold.summary, stats, names, fold.diagnosis())

    def _lives(self, key: str | None, test: Callable[[object], bool] | None) -> Traces:
        from analytics.life.life import Surroundings, life_of
        from analytics.life.search import MessageSearch

        from .lives import Traces

        search = MessageSearch(key, test)
        with _translated():
            for log in self._logs:
                search_log(log, search)
        stats = stats_of([log.manifest for log in self._logs if log.manifest is not None])
        around = Surroundings(
            search.fetches,
            search.senders_seen,
            search.client_ids,
            stats.gap_bytes,
            sum(stats.not_decoded.values()),
            stats.replications,
        )
        return Traces(life_of(found, around) for found in search.messages)

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
        return self._given(table, choice.limit, tests)

    def _given(
        self, table: Table[Any], room: int | None, tests: Sequence[Callable[[object], bool]]
    ) -> Iterator[Sequence[Any]]:
        batches = (rows for log in self._logs for rows in _READERS[table.name](log))
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

    def _rows_in(
        self, name: str, batches: Iterator[Sequence[Any]], choice: Choice
    ) -> Iterator[Sequence[Any]]:
        tests = self._tests(tables.table_named(name), choice, [])
        return (chosen(batch, tests, None) for batch in batches)

    def _table_named(self, name: str) -> Table[Any]:
        """Return a table that every log has; raise ReadError where one has not."""
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
    """Give a decoded log to a search, batch by batch; raise ReadError where it has no messages."""
    from .lives import Given

    if log.messages is None:
        raise ReadError("this decoded log has no messages", log.name, hint=_CAPTURES)
    starts = [one.first_time for one in log.manifest.captures] if log.manifest is not None else []
    first = next((found for one in starts if one and (found := moment_of(one))), None)
    given = Given(search, since, until, first.ns if first is not None else 0)
    for rows in message_rows(log):
        given.add(rows)
    for exchanges in exchange_rows(log):
        given.add_exchanges(exchanges)


def stats_of(manifests: Sequence[Manifest]) -> DecodeStats:
    """Return what the manifests say of the runs that wrote the logs, together."""
    stats = DecodeStats(captures=[])
    set_sums(stats, manifests)  # type: ignore[arg-type]
    stats.conversations = sum(one.conversations for one in manifests)
    counts = dict.fromkeys(ExpertKind, 0)
    for manifest in manifests:
        for entry in manifest.captures:
            found = {name: getattr(entry, name) for name in entry.__struct_fields__}
            first, last = found.pop("first_time"), found.pop("last_time")
            stats.captures.append(
                CaptureStats(**found, first_ts=_ns_of(first), last_ts=_ns_of(last))
            )
        for name, number in manifest.expert.items():
            if name in ExpertKind.__members__:
                counts[ExpertKind[name]] += number
    stats.expert_counts = {kind: number for kind, number in counts.items() if number}
    return stats


def _ns_of(text: str | None) -> int | None:
    moment = moment_of(text) if text is not None else None
    return None if moment is None else moment.ns


def _infos_of(findings: Sequence[Finding], names: Sequence[str]) -> list[ExpertInfo]:
    """Return findings as a run gives them; `names` are the captures, by index."""
    places = {name: index for index, name in enumerate(names)}
    return [
        ExpertInfo(
            ExpertKind[one.kind],
            one.detail,
            one.time or 0,
            (places.get(one.capture or "", 0) << CAPTURE_SHIFT) + (one.packet or 0),
            -1 if one.conversation is None else one.conversation,
            -1 if one.offset is None else one.offset,
        )
        for one in findings
        if one.kind in ExpertKind.__members__
    ]


@contextmanager
def _translated() -> Iterator[None]:
    """Raise what reading logs raises as errors of the one family."""
    try:
        with translated():
            yield
    except InputError as error:
        raise ReadError(str(error), hint=str(getattr(error, "hint", ""))) from error
