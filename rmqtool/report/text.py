"""Reports as text: notes first, then one table per question.

Rules: unknown values are a dash, never zero; a table that the input cannot fill is named with the
reason. Text from the network is made printable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from analytics.compare import head_of
from dissectors.quantities import counted

from ..ui.columns import ABSENT, LineColumn, text_of_hidden
from ..ui.console import Style, Terminal, cells, one_line
from ..ui.figures import count, duration, moment, size
from ..ui.remark import cause_of
from ..ui.screen.panels import Labelled, fact_lines
from ..ui.screen.shapes import table_lines

if TYPE_CHECKING:
    from analytics.report import ReportTable, Row, TableColumn
    from analytics.result import ReportResult, TableResult

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LINE = 100
_NAMED_ROWS: Final = 40
"""rows of a file-only table when it is requested by name"""
UNKNOWN = ABSENT
_SENTENCES: Final = ("title", "limit")
"""columns that are useless when cut: printed below the row if they do not fit"""
_NUMBER: Final = 14
"""width of a number, which must not be cut"""
_TIME: Final = 24
"""width of a time"""
_LEAST: Final = 12
"""smallest useful width of a text"""


def report_lines(
    results: Sequence[ReportResult], terminal: Terminal, named: Collection[str] = ()
) -> list[str]:
    """Return the reports as printable lines; tables of `named` also if they are for files."""
    lines: list[str] = []
    for result in results:
        lines += _heading(result.report.title, result.report.question, terminal, bool(lines))
        for remark in result.notes:
            lines += fact_lines([Labelled(one_line(remark), indent=2)], _narrowed(terminal))
        for table in result.tables.values():
            shown = table.table.shown or (_NAMED_ROWS if table.table.name in named else 0)
            if shown:
                lines += ["", *_table_lines(table, terminal, shown)]
        for unknown in result.unknown:
            text = f"{unknown.title}: not in the input"
            lines += ["", *fact_lines([Labelled(text, hang=2)], terminal)]
    return lines


def _heading(title: str, question: str, terminal: Terminal, apart: bool) -> list[str]:
    """Return the title, followed by the question or with it on the next line."""
    title, question = one_line(title).upper(), one_line(question)
    style = Style.BOLD + Style.CYAN
    if (taken := cells(title) + 2) + cells(question) <= terminal.width:
        facts = [Labelled(question, Style.DIM, title, style, taken)]
    else:
        facts = [Labelled(title, style), Labelled(question, Style.DIM)]
    lines = fact_lines(facts, terminal)
    return ["", *lines] if apart else lines


def _narrowed(terminal: Terminal) -> Terminal:
    return terminal._replace(width=min(terminal.width, _LINE))


def _table_lines(result: TableResult, terminal: Terminal, shown: int) -> list[str]:
    table, whole = result.table, result.data.num_rows
    if not whole:
        none = Labelled("none", label=f"{table.title}:", label_style=Style.BOLD)
        return fact_lines([none._replace(indent=len(table.title) + 2)], terminal)
    rows = result.rows(shown)
    lines, hidden = table_lines(rows, columns_of(table), terminal)
    if hidden:
        text = f"{text_of_hidden(hidden)}; use --format json, csv, or parquet"
        lines += fact_lines([Labelled(text, Style.DIM, hang=2)], terminal)
    more = whole - len(rows)
    if more > 0:
        at_least = "at least " if result.cut else ""
        rows_text = f"{at_least}{counted(more, 'more row')}"
        rest = f"… {rows_text}: use --format json, csv, or parquet"
        lines += fact_lines([Labelled(rest, Style.DIM, hang=2)], terminal)
    return [*fact_lines([Labelled(table.title, Style.BOLD)], terminal), *lines]


def columns_of(table: ReportTable) -> list[LineColumn[Row]]:
    """Return the brief columns of a table, the most important first."""
    by_name = {column.name: column for column in table.columns}
    names = table.brief or tuple(by_name)
    # Packet numbers lead back to the capture, so they are dropped last.
    ranked = [(0 if name == "packet" else rank, name) for rank, name in enumerate(names, 1)]
    return [_column(by_name[name], rank) for rank, name in ranked]


def _column(column: TableColumn, rank: int) -> LineColumn[Row]:
    name, show = column.name, shower_of(column)
    right = column.type in ("int", "float")
    is_remark = name == "remark"
    is_sentence = is_remark or name in _SENTENCES

    def cell(row: Row) -> str:
        value = row.get(name)
        if is_remark and isinstance(value, str):
            return cause_of(value)
        return show(value)

    title = title_of(name)
    least = _NUMBER if right else _TIME if column.type == "time" else _LEAST
    most = max(_NUMBER, len(title)) if right else 200 if is_sentence else 48
    return LineColumn(title, cell, rank, least, most, right, wraps=is_sentence)


def title_of(name: str) -> str:
    """Return the heading of a column, without the unit, which the cells show."""
    return head_of(name).upper()


def shower_of(column: TableColumn) -> Callable[[object], str]:
    """Return the function that formats a value as a cell; None becomes a dash."""
    by_unit: Mapping[str, Callable[[float], str]] = {
        "µs": lambda value: duration(round(value)),
        "ms": lambda value: duration(round(value * 1000)),
        "bytes": lambda value: size(round(value)),
        "share": percentage,
        "1/s": lambda value: f"{value:,.1f}/s",
    }
    if column.type in ("int", "float"):
        number = by_unit.get(column.unit) or (_whole if column.type == "int" else _plain)
        return lambda value: UNKNOWN if not isinstance(value, int | float) else number(value)
    by_type: Mapping[str, Callable[[object], str]] = {
        "time": _time,
        "bool": lambda value: "yes" if value else "no",
        "list": lambda value: ", ".join(map(_text, value)) if isinstance(value, list) else "",
    }
    show = by_type.get(column.type, _text)
    return lambda value: UNKNOWN if value is None else show(value)


def percentage(part: float) -> str:
    """Return a share as a percentage; only exact values become 0% and 100%."""
    if part in (0, 1):
        return f"{part:.0%}"
    # What would be rounded to 0.0% or 100.0% is neither.
    if 0 < part < 0.001:
        return "<0.1%"
    return f"{100 * part:.1f}%" if part < 0.9995 or part > 1 else "99.9%"


def _whole(value: float) -> str:
    return count(int(value))


def _plain(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _text(value: object) -> str:
    return one_line(str(value))


def _time(value: object) -> str:
    if not isinstance(value, datetime):
        return _text(value)
    text = moment((value - _EPOCH) // timedelta(microseconds=1) * 1000).replace("T", " ")
    return text[:23] + text[26:]  # to the millisecond
