"""Where a report goes: the screen, one file of one form, or a folder with all forms.

Rules: a file or folder has its name only when it is whole. A folder is replaced only where it is a
report and that was asked for. CSV is for spreadsheets: what could be a formula is none.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dissectors.tables import safe_cell
from dissectors.times import text_of_time

from . import __version__
from .console import UNLIMITED, Terminal, When, terminal_of
from .decode_options import usage_error
from .figures import size
from .output import Output, naming
from .report_options import Format, ReportRequest
from .report_text import report_lines, shower_of
from .status import CommandError, ExitStatus

if TYPE_CHECKING:
    from analytics.result import ReportResult, TableResult

MARK = "rmqtool-report"
"""`format` in the JSON form, by which a folder is known as a report."""
JSON_NAME, PAGE_NAME = "report.json", "report.html"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class About(NamedTuple):
    """What a report was made from."""

    inputs: Sequence[str]
    """names of the inputs"""
    compare: Sequence[str]
    """names of the inputs that it is compared with"""
    chosen: dict[str, str]
    """what restricted the rows, by option"""
    remarks: Sequence[str]
    """what there is to say about the input"""


def check_output(request: ReportRequest) -> None:
    """Raise CommandError where the output cannot be written as asked."""
    path = Path(request.output)
    to_folder = _is_folder(request)
    if request.format is Format.parquet and not to_folder:
        single = len(request.tables) == 1 and request.output != "-"
        if not single:
            raise usage_error("--format parquet", "give -o FOLDER, or one table: -t NAME -o FILE")
    if request.format is Format.csv and not to_folder and len(request.tables) != 1:
        raise usage_error("--format csv", "give -o FOLDER, or one table: -t NAME")
    if request.output != "-" and path.parent and not path.parent.is_dir():
        raise CommandError(f"{path.parent} is no folder, so {path} cannot be written in it")
    if to_folder and path.exists():
        _refuse_folder(path, request.force)
    for name in [*request.inputs, *request.compare]:
        if request.output != "-" and os.path.exists(name) and path.exists():
            _refuse_input(path, name)


def _refuse_input(path: Path, name: str) -> None:
    if os.path.samefile(path, name):
        raise CommandError(
            f"{path} is an input; it would be overwritten",
            "give another name to -o",
            ExitStatus.USAGE,
        )


def _refuse_folder(path: Path, force: bool) -> None:
    if path.is_symlink() or not path.is_dir():
        raise CommandError(f"{path} exists and is no folder; give another name")
    if not any(path.iterdir()):
        return
    if not _is_report(path):
        raise CommandError(f"{path} exists and is no report; give another name")
    if not force:
        raise CommandError(f"{path} is a report already; --force replaces it")


def _is_report(folder: Path) -> bool:
    try:
        found = msgspec.json.decode((folder / JSON_NAME).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return False
    return isinstance(found, dict) and found.get("format") == MARK


def _is_folder(request: ReportRequest) -> bool:
    """Return whether the output is a folder: it has no suffix of a form, and is no screen."""
    if request.output == "-":
        return False
    path = Path(request.output)
    if path.is_dir() or request.format is None:
        return True
    return request.format in (Format.csv, Format.parquet) and not path.suffix


def write_report(
    request: ReportRequest, results: Sequence[ReportResult], remarks: Sequence[str]
) -> list[str]:
    """Write the report; return what was written where, empty for standard output."""
    about = About(request.inputs, request.compare, _chosen(request), remarks)
    if _is_folder(request):
        return [_write_folder(request, results, about)]
    output = Output(request.output)
    try:
        if request.format is Format.table:
            _write_text(output, results, request)
        else:
            output.write(_encoded(request.format or Format.json, results, about))
        output.finish()
    except BaseException:
        output.discard()
        raise
    return [f"{size(output.written)} → {output.path}"] if output.path is not None else []


def _write_text(output: Output, results: Sequence[ReportResult], request: ReportRequest) -> None:
    if output.path is None:
        terminal = terminal_of(sys.stdout, request.colour)
        encoding = sys.stdout.encoding or "utf-8"
    else:
        terminal = Terminal(False, UNLIMITED, request.colour is When.always)
        encoding = "utf-8"
    text = "\n".join(report_lines(results, terminal)) + "\n"
    output.write(text.encode(encoding, "replace"))


def _encoded(form: Format, results: Sequence[ReportResult], about: About) -> bytes:
    if form is Format.json:
        return json_of(results, about)
    if form is Format.html:
        return html_of(results, about)
    tables = [one for result in results for one in result.tables.values()]
    if not tables:
        raise CommandError("the input cannot say anything about this table")
    table = tables[0]
    return csv_of(table) if form is Format.csv else parquet_of(table)


def _write_folder(request: ReportRequest, results: Sequence[ReportResult], about: About) -> str:
    folder = Path(request.output)
    temporary = folder.parent / f".{folder.name}.{os.getpid()}.tmp"
    with naming(str(folder)):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        try:
            _fill(temporary, request.format, results, about)
            if folder.exists():
                shutil.rmtree(folder)
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    files = sorted(file.name for file in folder.iterdir())
    return f"{len(files)} files → {folder}/ ({', '.join(files[:3])}, …)"


def _fill(folder: Path, form: Format | None, results: Sequence[ReportResult], about: About) -> None:
    (folder / JSON_NAME).write_bytes(json_of(results, about))
    if form in (None, Format.html):
        (folder / PAGE_NAME).write_bytes(html_of(results, about))
    for result in results:
        for name, table in result.tables.items():
            if form in (None, Format.csv):
                (folder / f"{name}.csv").write_bytes(csv_of(table))
            if form in (None, Format.parquet):
                (folder / f"{name}.parquet").write_bytes(parquet_of(table))


def json_of(results: Sequence[ReportResult], about: About) -> bytes:
    """Return all reports as one JSON object; an absent table is named in `unknown`."""
    reports = [
        {
            "name": result.report.name,
            "title": result.report.title,
            "remarks": result.remarks,
            "unknown": [table.name for table in result.unknown],
            "tables": {
                name: {
                    "columns": [column._asdict() for column in one.table.columns],
                    "complete": not one.cut,
                    "rows": _plain_rows(one),
                }
                for name, one in result.tables.items()
            },
        }
        for result in results
    ]
    whole = {
        "format": MARK,
        "rmqtool": __version__,
        "created": text_of_time(time_ns()),
        "inputs": list(about.inputs),
        "compared_with": list(about.compare),
        "chosen": about.chosen,
        "remarks": list(about.remarks),
        "reports": reports,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _plain_rows(result: TableResult) -> list[dict[str, object]]:
    return [{name: _plain(value) for name, value in row.items()} for row in result.rows()]


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return text_of_time((value - _EPOCH) // timedelta(microseconds=1) * 1000)
    return value


def csv_of(result: TableResult) -> bytes:
    """Return a table as CSV with a head; texts are printable and no formulas."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    names = [column.name for column in result.table.columns]
    writer.writerow(names)
    for row in result.rows():
        writer.writerow([_csv_cell(row.get(name)) for name in names])
    return out.getvalue().encode("utf-8", "replace")


def _csv_cell(value: object) -> object:
    if isinstance(value, list):
        return safe_cell(" ".join(map(str, value)))
    if isinstance(value, bool):
        return "true" if value else "false"
    plain = _plain(value)
    return safe_cell(plain) if isinstance(plain, str) else plain


def parquet_of(result: TableResult) -> bytes:
    """Return a table as a Parquet file; its columns carry their unit and meaning."""
    from analytics.tables import parquet_bytes

    return parquet_bytes(result)


def html_of(results: Sequence[ReportResult], about: About) -> bytes:
    """Return the page."""
    from analytics.html import page_of

    facts = [("Input", ", ".join(about.inputs))]
    if about.compare:
        facts.append(("Compared with", ", ".join(about.compare)))
    facts += [(f"--{name}", text) for name, text in about.chosen.items()]
    facts += [("Remark", remark) for remark in about.remarks]
    facts.append(("Made", f"{text_of_time(time_ns())[:19]}Z by rmqtool {__version__}"))

    return page_of("RocketMQ report", facts, results, shower_of).encode("utf-8", "replace")


def _chosen(request: ReportRequest) -> dict[str, str]:
    """Return what restricted the rows, as it was written."""
    texts = {
        "where": request.where,
        "since": "" if request.since is None else text_of_time(request.since.ns),
        "until": "" if request.until is None else text_of_time(request.until.ns),
        "decode-as": ",".join(map(str, sorted(request.decode_as))),
    }
    return {name: text for name, text in texts.items() if text}
