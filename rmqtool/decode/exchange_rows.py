"""Exchanges as rows of a run: their source, and the sink of each format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from dissectors.decode.exchange_forms import lines_of
from dissectors.decode.pipeline import Decode
from dissectors.rows.encoded import EncodedBatch, EncodedRows, RowForm
from dissectors.rows.record import ExchangeRecord

from ..api.tables.exchanges import EXCHANGES
from ..ui.common_options import RowFormat
from .exchange_lines import exchange_lines
from .options import DecodeRequest, View
from .row_run import (
    RowSource,
    chosen_sink,
    is_live,
    output_of,
    output_terminal,
    parquet_sink,
    rows_of_table,
)
from .sinks import Sink


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
        return rows._replace(encoded=lambda: _columns_of(decode))
    return rows


def _columns_of(decode: Decode) -> Iterable[EncodedRows]:
    from dissectors.decode.exchange_forms import columns_of

    return _encoded(decode, columns_of)


def _log_of(decode: Decode) -> Iterator[EncodedBatch]:
    from dissectors.decode.exchange_forms import log_of
    from dissectors.message_rows.message_table import MessageTable

    chunks = decode.counted_exchanges()
    return log_of(decode.sources, chunks, decode.add_findings, MessageTable())


def _encoded(decode: Decode, form: Callable[..., Iterable[EncodedRows]]) -> Iterable[EncodedRows]:
    return form(decode.sources, decode.counted_exchanges(), decode.add_findings)


def _exchange_sink(request: DecodeRequest, decode: Decode) -> Sink[ExchangeRecord]:
    from . import sinks

    names = decode.sources
    if request.columns:
        return chosen_sink(request, EXCHANGES, names, exchange_lines)
    if request.to_folder:
        form = str(request.format)
        options = request.restrictions()
        return sinks.DecodedLogSink(
            *(Path(request.output), request.force, options, names, form, request.message_rows),
            request.partition,
        )
    if request.format is RowFormat.parquet:
        return parquet_sink(request, EXCHANGES.arrow_columns(), "exchange", RowForm.arrow)
    output = output_of(request)
    terminal = output_terminal(request)
    if request.view is View.summary:
        return sinks.SummarySink(
            output, terminal, names, request.format.is_json, is_diagnosed(request)
        )
    if request.format.is_json:
        from dissectors.rows.tables import jsonl_of

        return sinks.EncodedSink(
            output, jsonl_of, to_screen=terminal.is_terminal, form=RowForm.jsonl
        )
    if request.format is RowFormat.csv:
        from dissectors.rows.tables import csv_header, csv_of

        return sinks.EncodedSink(output, csv_of, csv_header(), form=RowForm.csv)
    return sinks.LinesSink(output, exchange_lines(terminal, len(names), is_live(request)))


def is_diagnosed(request: DecodeRequest) -> bool:
    """Return whether the summary has a diagnosis, which needs all rows."""
    return request.view is View.summary and not request.where and request.limit is None
