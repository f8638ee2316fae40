"""One run of `decode`: rows from captures, filtered, into a sink; then notes.

Rules: rows go to the output, everything else to standard error. A run that is stopped leaves no
half result; a run that follows a capture is stopped on purpose, so its result is finished.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, cast

from dissectors.decode.exchange_forms import columns_of, lines_of, log_of
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.decode.totals import COMMIT_LOG
from dissectors.findings import FindingKind, Severity
from dissectors.processes.choice import decode_of
from dissectors.quantities import counted
from dissectors.remoting.bodies.custom import decoding_with
from dissectors.rows.encoded import EncodedBatch, EncodedRows, RowForm
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.tables import csv_header, csv_of, jsonl_of
from dissectors.times import between

from ..api.tables.exchanges import EXCHANGES
from ..ui.columns import text_of_hidden
from ..ui.common_options import Order, RowFormat
from ..ui.errors import print_note, said
from ..ui.figures import text_of_counts
from ..ui.interrupt import first_ends
from ..ui.option_values import usage_error
from ..ui.output import refuse_inputs
from ..ui.screen.progress import Progress
from ..ui.sorting import Key, by_key, sort_key
from ..ui.status import ExitStatus
from .exchange_lines import exchange_lines
from .fail_on import Counts
from .options import DecodeRequest, View
from .row_run import (
    Row,
    RowSource,
    chosen_sink,
    encoded_rows_for,
    has_window,
    in_core,
    is_live,
    output_of,
    output_terminal,
    parquet_sink,
    rows_of_table,
)
from .sinks import DecodedLogSink, EncodedSink, LinesSink, Sink, SortedSink, SummarySink
from .undecoded import nothing_decoded, refuse_terminal

if TYPE_CHECKING:
    from ..summary.watch import Watch


def run_decode(
    request: DecodeRequest, decode: Decode | None = None, rows: RowSource[Any] | None = None
) -> ExitStatus:
    """Run the command; raise CommandError on failure.

    `decode` reads what is not a capture file; None: the captures that the request names. `rows` are
    its rows; None: those of the view.
    """
    if request.view is View.commands:
        from . import views  # noqa: F401 # before workers are forked, which use it
    with decoding_with(request.plugins):
        if decode is None:
            decode = decode_of(request.sources, decode_options(request), request.processes)
        refuse_inputs(request.output, [*decode.sources, request.tls_keylog])
        refuse_terminal(decode.sources, "decode pcap -")
        result = _run(request, decode, _rows_of_view(request, decode) if rows is None else rows)
        if not request.quiet:
            for note in [*result.written, *notes_of(decode, result, request)]:
                print_note(note)
        return _status(request, decode, result)


def _rows_of_view(request: DecodeRequest, decode: Decode) -> RowSource[Any]:
    if request.view is View.tree:
        from .views import tree_rows

        return tree_rows(request, decode)
    if request.view is View.commands:
        from .views import command_rows

        return command_rows(request, decode)
    if request.view is View.follow:
        from .follow_lines import follow_rows

        return follow_rows(request, decode)
    if request.view is View.list_messages:
        from .message_lines import listed_messages

        return listed_messages(request, decode)
    if request.view is View.messages:
        from .export_messages import message_rows

        return message_rows(request, decode)
    return exchange_rows(request, decode)


def _status(request: DecodeRequest, decode: Decode, result: RunCounts) -> ExitStatus:
    """Return the exit status of the run, and report the reason if it is not OK."""
    nothing = nothing_decoded(decode.stats)
    if nothing is not None and not result.seen and request.limit != 0:
        return said(nothing.message, nothing.hint)
    status = check(decode) if request.check else ExitStatus.OK
    for line in result.held:
        status = said(line, status=ExitStatus.DIFFERENCES)
    return status


def decode_options(request: DecodeRequest) -> DecodeOptions:
    """Return the options of the core, without the bounds that are compared here."""
    since, until = (
        None if moment is None or not in_core(moment, request) else moment.ns
        for moment in (request.since, request.until)
    )
    return DecodeOptions(
        decode_as=request.decode_as,
        tls_keylog=request.tls_keylog,
        max_ratio=request.max_ratio,
        follow=request.follow,
        since=since,
        until=until,
        conversations=request.to_folder or request.watched or is_diagnosed(request),
        messages=request.message_rows or request.view is View.list_messages,
        body_limit=request.body_limit or 0,
        overdue_after=request.overdue_after,
    )


class RunCounts(NamedTuple):
    """The result of a run."""

    seen: int
    """rows before filters"""
    chosen: int
    """rows in the result"""
    written: list[str]
    """notes on files written and columns without space"""
    held: list[str]
    """conditions of --fail-on that hold"""


def _run(request: DecodeRequest, decode: Decode, rows: RowSource[Row]) -> RunCounts:
    if request.to_folder and (request.sort or request.columns):
        raise usage_error("--sort and --columns", "do not apply to a decoded log")
    if request.sort in (Order.time, Order.latency):
        unsorted = rows
        key = sort_key(request.sort, unsorted.time)
        rows = unsorted._replace(batches=lambda: by_key(unsorted.batches(), key))
    sink = rows.sink()
    if request.sorts_shown_rows:
        sink = SortedSink(sink, _place_of(decode.sources, rows.time))
    may_show = _may_show_progress(request)
    progress = Progress(sys.stderr, may_show, rows.noun, endless=request.follow)
    loop = _Loop(request, decode, rows, sink, progress)
    try:
        # Ctrl-C is the usual end of live input; a run over files is aborted, and leaves no output.
        with first_ends(decode.stop) if is_live(request) else nullcontext():
            loop.run()
        progress.clear()
        written = sink.finish(decode)
    except BaseException:
        progress.clear()
        sink.discard()
        raise
    held = loop.counts.held(request.fail_on) if loop.counts is not None else []
    written_notes = [written] if written else []
    if sink.hidden:
        written_notes.append(f"{text_of_hidden(sink.hidden)}; use --columns or -T jsonl")
    return RunCounts(loop.seen, loop.chosen, written_notes, held)


def _place_of(names: Sequence[str], time: Callable[[Row], int | None]) -> Callable[[Row], Key]:
    """Return the sort key: by capture, then by time."""
    places = {name: place for place, name in enumerate(names)}

    def place_of(row: Any) -> Key:
        at = time(row)
        return None if at is None else (places.get(row.capture, 0), at)

    return place_of


def _may_show_progress(request: DecodeRequest) -> bool:
    """Return whether progress may be shown: nothing else updates the terminal."""
    rows_on_screen = request.output == "-" and sys.stdout.isatty()
    rows_on_screen = rows_on_screen and not request.sorts_shown_rows
    return not request.quiet and not (rows_on_screen and request.view is not View.summary)


class _Loop(Generic[Row]):
    """Moves rows from the captures to the sink."""

    def __init__(
        self,
        request: DecodeRequest,
        decode: Decode,
        rows: RowSource[Row],
        sink: Sink[Row],
        progress: Progress,
    ) -> None:
        self.seen = 0
        self.chosen = 0
        self._request = request
        self._decode = decode
        self._rows = rows
        self._sink = sink
        self._progress = progress
        self.counts = Counts() if request.fail_on else None
        self._watch = watch_of(request, decode)
        self._window: Callable[[Row], bool] | None = None
        self._has_window = has_window(request)

    def run(self) -> None:
        """Read to the end, or to the limit."""
        encoded = encoded_rows_for(self._request, self._decode, self._rows, self._sink.form)
        if encoded is not None:
            self._run_encoded(encoded)
            return
        decode, live = self._decode, is_live(self._request)
        batches = self._rows.batches()
        for batch in batches:
            if batch:
                self._take(batch)
            if self._request.overdue_after:
                self._take_overdue()
            self._take_findings()
            if live:
                self._sink.idle()
            self._progress.update(decode.bytes_read, decode.bytes_total, self.chosen)
            if self.chosen == self._request.limit:
                break

    def _run_encoded(self, batches: Iterator[EncodedBatch]) -> None:
        for batch in batches:
            self.seen += batch.seen
            self.chosen += batch.chosen
            if batch.rows is not None:
                self._sink.write_encoded(batch.rows, batch.messages)
            self._take_findings()
            decode = self._decode
            self._progress.update(decode.bytes_read, decode.bytes_total, self.chosen)

    def _take(self, batch: Sequence[Row]) -> None:
        number = len(batch)
        if self._watch is not None:  # it judges all traffic, whatever is shown
            self._watch.engine.add_exchanges(cast(Sequence[ExchangeRecord], batch))
        batch = self._in_window(batch)
        self.seen += len(batch)
        batch = self._chosen_of(batch)
        # Before rows shown as overdue are left out: `_take_overdue` did not count them.
        if batch and self.counts is not None:
            self.counts.add(cast(Sequence[ExchangeRecord], batch))
        if batch and self._request.overdue_after:  # `_take_overdue` has shown some of them
            batch = without_stayed(batch, self._decode.stayed_overdue())
        if batch:
            self.chosen += len(batch)
            self._sink.write(batch)
        if self._request.message_rows:
            from ..api.tables.messages import messages_of

            chosen = cast(Sequence[ExchangeRecord], batch)
            messages = messages_of(self._decode, chosen, len(batch) < number)
            if messages:
                self._sink.write_messages(messages)

    def _in_window(self, batch: Sequence[Row]) -> Sequence[Row]:
        if not self._has_window or not batch:
            return batch
        holds = self._window = self._window or self._window_test()
        return [row for row in batch if holds(row)]

    def _chosen_of(self, batch: Sequence[Row]) -> Sequence[Row]:
        """Return the matching rows, within the remaining limit."""
        test = self._rows.test
        if test is not None:
            batch = [row for row in batch if test(row)]
        if self._request.limit is not None:
            batch = batch[: self._request.limit - self.chosen]
        return batch

    def _take_overdue(self) -> None:
        """Show overdue pending requests; they are counted when settled."""
        overdue = cast(Sequence[Row], self._decode.take_overdue())
        batch = self._chosen_of(self._in_window(overdue))
        if batch:
            self.chosen += len(batch)
            self._sink.write(batch)

    def _take_findings(self) -> None:
        findings = self._decode.take_findings()
        if findings and self._sink.wants_findings:
            self._sink.write_findings(findings)
        conversations = self._decode.take_conversations()
        if conversations:
            self._sink.write_conversations(conversations)
        if self._watch is not None:
            self._watch.engine.add_findings(findings)
            self._watch.engine.add_connections(conversations)
            from ..summary.watch import event_lines

            for line in event_lines(self._watch.look()):
                print(line, file=sys.stderr)

    def _window_test(self) -> Callable[[Row], bool]:
        """Return the test of the time; times of day are on the day of the first packet."""
        request = self._request
        holds = between(request.since, request.until, self._decode.stats.first_time)
        time = self._rows.time
        return lambda row: holds(time(row))


def without_stayed(
    batch: Sequence[Row], stayed: Collection[tuple[int, int | None]]
) -> Sequence[Row]:
    """Return rows without those that were already shown unchanged."""
    if not stayed:
        return batch
    rows = cast(Sequence[ExchangeRecord], batch)
    rest = [row for row in rows if (row.conversation, row.request_packet) not in stayed]
    return cast(Sequence[Row], rest)


def watch_of(request: DecodeRequest, decode: Decode) -> Watch | None:
    """Return the live diagnosis, or None if it was not requested."""
    if not request.watched:
        return None
    from analytics.diagnosis.engine import Engine
    from analytics.diagnosis.registry import rules

    from ..summary.watch import Watch

    return Watch(Engine(rules()), decode.pending)


def notes_of(decode: Decode, found: RunCounts, request: DecodeRequest) -> list[str]:
    """Return notes on the result that its rows do not show."""
    stats = decode.stats
    lines = []
    if not found.chosen and request.limit != 0 and nothing_decoded(stats) is None:
        lines.append(_why_nothing(decode, found, request))
    severe = {
        kind.name: number
        for kind, number in stats.finding_counts.items()
        if kind.severity >= Severity.WARNING
    }
    if severe and request.view is not View.summary:
        missing = f" ({counted(stats.gap_bytes, 'byte')} not captured)" if stats.gap_bytes else ""
        more = "see --summary"
        if request.view is not View.commands and FindingKind.BAD_MESSAGE.name in severe:
            more = "for details decode to a log (-T parquet -o LOG/) and read its table findings"
        lines.append(f"the capture has {text_of_counts(severe)}{missing}; {more}")
    return lines


_NOUNS = {View.commands: "command", View.follow: "command", View.list_messages: "message"}
"""noun of a row"""


def _why_nothing(decode: Decode, result: RunCounts, request: DecodeRequest) -> str:
    stats = decode.stats
    packets = stats.packets
    if result.seen:
        noun = _NOUNS.get(request.view, "exchange")
        return f"no matches ({counted(result.seen, noun)} checked)"
    if any(source.format == COMMIT_LOG for source in stats.captures):
        return "no message in the commit log"
    if not packets:
        return "no packet in the capture"
    if not stats.conversations:
        skipped: dict[str, int] = {}
        for capture in stats.captures:
            for why, number in capture.skipped.items():
                skipped[why] = skipped.get(why, 0) + number
        why = f" ({text_of_counts(skipped)})" if skipped else ""
        return f"no TCP conversation in {counted(packets, 'packet')}{why}"
    if not stats.rocketmq_conversations:
        protocols = text_of_counts(stats.not_decoded)
        return f"no RocketMQ in {counted(stats.conversations, 'conversation')} ({protocols})"
    is_of_messages = request.view is View.list_messages
    if (request.since, request.until) != (None, None):
        what = "no message was seen" if is_of_messages else "nothing happened"
        return f"{what} between --since and --until"
    what = "message" if is_of_messages else "command"
    if request.follow_conversation is not None:
        return (
            f"no {what}s in conversation {request.follow_conversation}; --summary lists the"
            " conversations"
        )
    return f"no {what} in {counted(stats.rocketmq_conversations, 'RocketMQ conversation')}"


def check(decode: Decode) -> ExitStatus:
    """Return FINDINGS, with a message, if the capture has findings of severity error."""
    errors = {
        kind.name: number
        for kind, number in decode.stats.finding_counts.items()
        if kind.severity is Severity.ERROR
    }
    if not errors:
        return ExitStatus.OK
    print_note(f"--check: findings of severity error: {text_of_counts(errors)}")
    return ExitStatus.FINDINGS


def exchange_rows(request: DecodeRequest, decode: Decode) -> RowSource[ExchangeRecord]:
    """Return exchanges with the requested filter and sink."""
    rows = rows_of_table(EXCHANGES, request, decode, lambda: _exchange_sink(request, decode))
    # Several processes write encoded rows of their own (`encoded_rows_for`).
    if request.view is not View.exchanges or type(decode) is not Decode:
        return rows
    if request.message_rows:
        in_columns = request.format is RowFormat.parquet and not request.body_limit
        return rows._replace(log=lambda: _log_of(decode)) if in_columns else rows
    if request.format.is_json:
        return rows._replace(encoded=lambda: _encoded(decode, lines_of))
    if request.format is RowFormat.parquet:
        return rows._replace(encoded=lambda: _encoded(decode, columns_of))
    return rows


def _log_of(decode: Decode) -> Iterator[EncodedBatch]:
    from dissectors.message_rows.message_table import MessageTable

    chunks = decode.counted_exchanges()
    return log_of(decode.sources, chunks, decode.add_findings, MessageTable())


def _encoded(decode: Decode, form: Callable[..., Iterable[EncodedRows]]) -> Iterable[EncodedRows]:
    return form(decode.sources, decode.counted_exchanges(), decode.add_findings)


def _exchange_sink(request: DecodeRequest, decode: Decode) -> Sink[ExchangeRecord]:
    names = decode.sources
    if request.columns:
        return chosen_sink(request, EXCHANGES, names, exchange_lines)
    if request.to_folder:
        form = str(request.format)
        options = request.restrictions()
        return DecodedLogSink(
            *(Path(request.output), request.force, options, names, form, request.message_rows),
            request.partition,
        )
    if request.format is RowFormat.parquet:
        return parquet_sink(request, EXCHANGES.arrow_columns(), "exchange", RowForm.arrow)
    output = output_of(request)
    terminal = output_terminal(request)
    if request.view is View.summary:
        return SummarySink(output, terminal, names, request.format.is_json, is_diagnosed(request))
    if request.format.is_json:
        return EncodedSink(output, jsonl_of, to_screen=terminal.is_terminal, form=RowForm.jsonl)
    if request.format is RowFormat.csv:
        return EncodedSink(output, csv_of, csv_header(), form=RowForm.csv)
    return LinesSink(output, exchange_lines(terminal, len(names), is_live(request)))


def is_diagnosed(request: DecodeRequest) -> bool:
    """Return whether the summary has a diagnosis, which needs all rows."""
    return request.view is View.summary and not request.where and request.limit is None
