"""The output of a report: the screen, one file, or a folder with all formats.

Rules: a file or folder gets its name only when complete. A folder is replaced only on request, and
only if it is a report of rmqtool (`owned_folder`). CSV is safe for spreadsheets: no text is a
formula.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from time import time_ns
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from dissectors.owned_folder import MARKER, FolderRefused, OwnedFolder, check_folder
from dissectors.quantities import counted
from dissectors.tcp.source import is_capture_name
from dissectors.times import text_of_time

from ..ui.console import Style, Terminal, terminal_of_output
from ..ui.extras import REPORT_LIBRARIES, require
from ..ui.figures import size
from ..ui.json_text import encoded_json, visible_json
from ..ui.option_values import refuse_named, text_of_moment, usage_error
from ..ui.output import Output, naming, refuse_existing, refuse_inputs, write_text
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.status import CommandError, ExitStatus
from ..version import VERSION
from .options import ALL, ReportFormat, ReportRequest
from .text import report_lines, shower_of

if TYPE_CHECKING:
    from analytics.result import ReportResult, TableResult

MARK = "rmqtool-report"
"""`format` in the JSON output"""
KIND = "report"
"""kind of a report folder in `owned_folder`"""
JSON_NAME, PAGE_NAME = "report.json", "report.html"


class About(NamedTuple):
    """The origin of a report."""

    inputs: Sequence[str]
    compare: Sequence[str]
    """names of the inputs for comparison"""
    chosen: dict[str, str]
    """options that restrict the rows"""
    notes: Sequence[str]
    """notes on the input"""


def check_output(request: ReportRequest) -> None:
    """Raise CommandError if the output cannot be written as requested."""
    path = Path(request.output)
    to_folder = _is_folder(request)
    if request.format is ReportFormat.parquet and not to_folder:
        single = len(request.tables) == 1 and request.output != "-"
        if not single:
            raise usage_error(
                "--format parquet", "give -o FOLDER, or one table: --table NAME -o FILE"
            )
    if request.format is ReportFormat.table and to_folder:
        raise usage_error("--format table", f"{path} is a folder; name a file, or omit --format")
    if request.format is ReportFormat.csv and not to_folder and len(request.tables) != 1:
        raise usage_error("--format csv", "give -o FOLDER, or one table: --table NAME")
    if request.output != "-" and not path.parent.is_dir():
        raise CommandError(f"{path.parent} is not a folder, so {path} cannot be written in it")
    if to_folder:
        check_folder(path, KIND, request.force, [*request.inputs, *request.compare])
    inputs = [*request.inputs, *request.compare]
    refuse_inputs(request.output, [*inputs, *_captures_in(inputs)])
    if not to_folder:
        refuse_existing(request.output, request.force)


def _captures_in(names: Sequence[str]) -> Iterator[str]:
    """Yield the captures in the input folders."""
    for name in names:
        if os.path.isdir(name):
            yield from map(str, filter(is_capture_name, Path(name).iterdir()))


def _is_folder(request: ReportRequest) -> bool:
    """Return whether the output is a folder: not standard output, and no known suffix."""
    if request.output == "-":
        return False
    path = Path(request.output)
    if path.is_dir() or request.format is None:
        return True
    return request.format in (ReportFormat.csv, ReportFormat.parquet) and not path.suffix


def write_report(
    request: ReportRequest, results: Sequence[ReportResult], notes: Sequence[str]
) -> list[str]:
    """Write the report; return a note with its place, empty for standard output."""
    about = About(request.inputs, request.compare, _chosen(request), notes)
    if _is_folder(request):
        return [_write_folder(request, results, about)]
    with Output(request.output, force=request.force) as output:
        if request.format is ReportFormat.table:
            _write_text(output, results, request)
        else:
            form = request.format or ReportFormat.json
            shown = form is ReportFormat.json and output.path is None and sys.stdout.isatty()
            for data in _encoded(form, results, about):
                output.write(visible_json(data) if shown else data)
    return [f"{size(output.written)} → {output.path}"] if output.path is not None else []


def _write_text(output: Output, results: Sequence[ReportResult], request: ReportRequest) -> None:
    encoding = sys.stdout.encoding if output.path is None else None
    text = "\n".join(report_lines(results, output_terminal(request), request.tables)) + "\n"
    output.write(text.encode(encoding or "utf-8", "replace"))


def output_terminal(request: ReportRequest) -> Terminal:
    """Return the terminal of the output; a file has no width, and colours only on request."""
    return terminal_of_output(request.output, request.colour)


def _encoded(form: ReportFormat, results: Sequence[ReportResult], about: About) -> Iterable[bytes]:
    if form is ReportFormat.json:
        return json_of(results, about)
    if form is ReportFormat.html:
        return [html_of(results, about)]
    tables = [item for result in results for item in result.tables.values()]
    if not tables:
        raise CommandError("the input has no data for this table")
    table = tables[0]
    return [csv_of(table) if form is ReportFormat.csv else parquet_of(table)]


def _write_folder(request: ReportRequest, results: Sequence[ReportResult], about: About) -> str:
    folder = Path(request.output)
    with naming(str(folder)):
        try:
            owned = OwnedFolder(folder, KIND, request.force, [*request.inputs, *request.compare])
        except FolderRefused as refusal:  # here: from a batch of Spark, only its text comes back
            raise CommandError(str(refusal), status=ExitStatus.USAGE) from None
        try:
            _fill(owned.path, request.format, results, about)
            owned.finish()
        except BaseException:
            owned.discard()
            raise
    files = sorted(file.name for file in folder.iterdir() if file.name != MARKER)
    more = ", …" if len(files) > 3 else ""
    return f"{counted(len(files), 'file')} → {folder}/ ({', '.join(files[:3])}{more})"


def _fill(
    folder: Path, form: ReportFormat | None, results: Sequence[ReportResult], about: About
) -> None:
    with (folder / JSON_NAME).open("wb") as file:
        file.writelines(json_of(results, about))
    if form in (None, ReportFormat.html):
        (folder / PAGE_NAME).write_bytes(html_of(results, about))
    for result in results:
        for name, table in result.tables.items():
            if form in (None, ReportFormat.csv):
                (folder / f"{name}.csv").write_bytes(csv_of(table))
            if form in (None, ReportFormat.parquet):
                (folder / f"{name}.parquet").write_bytes(parquet_of(table))


def json_of(results: Sequence[ReportResult], about: About) -> Iterator[bytes]:
    """Yield all reports as one JSON object; an absent table is named in `unknown`."""
    # A table may have a million rows, of which only some thousands are in memory at a time. Random,
    # so that no text of a capture can contain it.
    place = token_hex()  # of the rows of a table, in an object without them
    reports = [
        {
            "name": result.report.name,
            "title": result.report.title,
            "remarks": result.notes,
            "unknown": [table.name for table in result.unknown],
            "tables": {
                name: {
                    "columns": [column._asdict() for column in item.table.columns],
                    "complete": not item.cut,
                    "rows": place,
                }
                for name, item in result.tables.items()
            },
        }
        for result in results
    ]
    whole = {
        "format": MARK,
        "rmqtool": VERSION,
        "created": text_of_time(time_ns()),
        "inputs": list(about.inputs),
        "compared_with": list(about.compare),
        "chosen": about.chosen,
        "remarks": list(about.notes),
        "reports": reports,
    }
    first, *others = _indented(encoded_json(whole)).split(f'"{place}"'.encode())
    tables = [item for result in results for item in result.tables.values()]
    yield first
    for table, following in zip(tables, others, strict=True):
        yield from _rows_as_json(table)
        yield following
    yield b"\n"


_PIECES: Final = 1024
"""rows written at a time"""
_ROW_AT: Final = 6
"""depth of a row: in the object, reports, a report, tables, a table, and rows"""


def _rows_as_json(result: TableResult) -> Iterator[bytes]:
    """Yield the rows of a table as an indented array."""
    from analytics.table_files import plain_value

    margin = b"\n" + b" " * _ROW_AT
    pieces, before = [], b"[" + margin
    for row in result.each_row():
        data = msgspec.json.encode({name: plain_value(value) for name, value in row.items()})
        pieces.append(before + _indented(data).replace(b"\n", margin))
        before = b"," + margin
        if len(pieces) == _PIECES:
            yield b"".join(pieces)
            pieces = []
    yield b"".join(pieces) + margin[:-1] + b"]" if result.data.num_rows else b"[]"


def _indented(data: bytes) -> bytes:
    return msgspec.json.format(data, indent=1)


def csv_of(result: TableResult) -> bytes:
    """Return a table as CSV with a header; texts are printable and never formulas."""
    from analytics.table_files import csv_of_table

    return csv_of_table(result)


def parquet_of(result: TableResult) -> bytes:
    """Return a table as a Parquet file; its columns carry their unit and meaning."""
    from analytics.table_files import parquet_bytes

    return parquet_bytes(result)


def html_of(results: Sequence[ReportResult], about: About) -> bytes:
    """Return the HTML page."""
    from analytics.page.html import page_of

    facts = [("Input", ", ".join(about.inputs))]
    if about.compare:
        facts.append(("Compared with", ", ".join(about.compare)))
    facts += [(f"--{name}", text) for name, text in about.chosen.items()]
    facts += [("Remark", remark) for remark in about.notes]
    facts.append(("Created", f"{text_of_time(time_ns())[:19]}Z by rmqtool {VERSION}"))

    page = page_of("RocketMQ report", facts, results, shower_of, about.inputs)
    return page.encode("utf-8", "replace")


def _chosen(request: ReportRequest) -> dict[str, str]:
    """Return the options that restrict the rows, as the user wrote them."""
    texts = {
        "where": request.where,
        "split": text_of_moment(request.split) or "",
        "since": text_of_moment(request.since) or "",
        "until": text_of_moment(request.until) or "",
        "decode-as": ",".join(map(str, sorted(request.decode_as))),
    }
    return {name: text for name, text in texts.items() if text}


def show_reports(request: ReportRequest) -> ExitStatus:
    """Write the list of reports to standard output or the `-o` file."""
    require("a report", "report", *REPORT_LIBRARIES)
    from analytics.reports import report_names, report_of

    for word in request.words:
        if word not in (*report_names(), ALL):
            raise usage_error("--list", f"{word} is not a report; omit it")
    refuse_named(request.named_options, ("tables",), "cannot be combined with --list; omit it")
    named = [] if ALL in request.words else list(dict.fromkeys(request.words))
    terminal = output_terminal(request)

    def labelled(depth: int, name: str, text: str) -> Labelled:
        label = f"{' ' * depth}{name}:"
        return Labelled(text, label=label, label_style=Style.BOLD, indent=len(label) + 1)

    lines = []
    for name in named or report_names():
        report = report_of(name)
        facts = [labelled(0, name, report.question)]
        for table in report.tables:
            facts.append(labelled(2, table.name, table.meaning))
            for column in table.columns:
                kind = f"{column.type}, {column.unit}" if column.unit else column.type
                text = f"{column.name} ({kind}): {column.meaning}"
                facts.append(Labelled(text, indent=4, hang=2))
        lines += fact_lines(facts, terminal)
    write_text(request.output, lines, request.force)
    return ExitStatus.OK
