"""One self-contained HTML page from report tables: charts, tables, what must be known first.

Rules: the page asks for nothing (no network, no file beside it): style and script are within, and a
content security policy allows these two by their hashes and nothing else, so that what a capture
contains can neither load nor run anything even if an escape were forgotten. Every text goes through
`charts.escaped`. How numbers are shown is the caller's (`show`), so terminal and page agree.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files

from dissectors.printable import shortened

from ..compare import head_of
from ..report import Chart, ReportTable, Row, TableColumn
from ..result import ReportResult, TableResult
from .charts import Point, Show, escaped, heat_chart, lines_chart, number_of, points_of
from .charts_flows import flows_chart, timeline_chart
from .incidents import incident_cards

MOST_ROWS = 500
"""Rows of a table on the page; files have all."""
MOST_SERIES = 8
"""Brokers that have a line of their own, those with most rows."""
ShowColumn = Callable[[TableColumn], Show]
"""Column -> how its values are shown."""


def page_of(
    title: str,
    about: Sequence[tuple[str, str]],
    results: Sequence[ReportResult],
    show: ShowColumn,
) -> str:
    """Return the page; `about` are (name, text) about the input, the time, the program."""
    links = "".join(
        f'<a href="#{escaped(one.report.name)}">{escaped(one.report.title)}</a>' for one in results
    )
    reports = "".join(_report(one, show) for one in results)
    return page_around(title, about, links, reports)


def page_around(title: str, about: Sequence[tuple[str, str]], links: str, main: str) -> str:
    """Return the page around a main part; `links` and `main` are HTML that is escaped already."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash_of(style)}'; script-src '{_hash_of(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    known = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(text)}</dd>" for name, text in about)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escaped(title)}</title><style>{style}</style></head><body>"
        f'<header><h1>{escaped(title)}</h1><dl class="about">{known}</dl></header>'
        f"<nav>{links}</nav>"
        f"<main>{main}</main>"
        "<footer>A dash is unknown, never zero. Times are UTC. Packet numbers are those of the"
        " capture named in the same row (frame.number in Wireshark).</footer>"
        f"<script>{script}</script></body></html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _report(result: ReportResult, show: ShowColumn) -> str:
    report = result.report
    remarks = "".join(f"<li>{escaped(remark)}</li>" for remark in result.remarks)
    drawn = {chart.table for chart in report.charts}
    parts = [
        f'<section class="report" id="{escaped(report.name)}"><h2>{escaped(report.title)}</h2>'
        f'<p class="dim">{escaped(report.question)}</p>',
        f'<ul class="remarks">{remarks}</ul>' if remarks else "",
    ]
    done = set()
    for chart in report.charts:
        table = result.tables.get(chart.table)
        picture = chart_of(chart, table, show) if table is not None else ""
        if not picture:
            continue
        parts.append(
            f'<figure><figcaption>{escaped(chart.title)}</figcaption><div class="scroll">'
            f"{picture}</div></figure>"
        )
        last = [one for one in report.charts if one.table == chart.table][-1] is chart
        if table is not None and last:
            parts.append(_table(table, show, is_open=False))
            done.add(chart.table)
    for name, one in result.tables.items():
        if name not in done:
            parts.append(_table(one, show, is_open=bool(one.table.shown) and name not in drawn))
    parts += [
        f'<p class="dim">{escaped(table.title)}: unknown, the input cannot say.</p>'
        for table in result.unknown
    ]
    return "".join(parts) + "</section>"


def chart_of(chart: Chart, result: TableResult, show: ShowColumn) -> str:
    """Return a chart as SVG with its legend; empty where there is nothing to draw."""
    columns = {column.name: column for column in result.table.columns}
    shown = {name: show(column) for name, column in columns.items()}
    rows, parts = result.rows(), chart.parts
    if chart.kind == "incidents":
        return incident_cards(rows, shown[parts["time"]])
    if chart.kind == "heat":
        value = shown[parts["value"]]
        return heat_chart(chart.title, rows, parts, shown[parts["y"]], value)
    if chart.kind == "flows":
        return flows_chart(chart.title, rows, parts, shown[parts["value"]])
    if chart.kind == "timeline":
        return timeline_chart(chart.title, rows, parts, shown[parts["colour"]], shown)
    return lines_chart(chart.title, _lines_of(chart, rows), shown[parts["y"].split()[0]])


def _lines_of(chart: Chart, rows: Sequence[Row]) -> dict[str, list[Point]]:
    """Return the lines of a chart: a column each, or with `by` a line for each value of that."""
    parts = chart.parts
    x, names, width = parts["x"], parts["y"].split(), parts.get("width", "")
    only, by = parts.get("only"), parts.get("by")
    if by is None:
        chosen = rows if only is None else [row for row in rows if row.get(only) is None]
        return {head_of(name): points_of(chosen, x, name, width) for name in names}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.get(by) is not None:
            groups.setdefault(str(row[by]), []).append(row)
    most = sorted(groups, key=lambda name: (-len(groups[name]), name))[:MOST_SERIES]
    if len(most) < 2 and "each" not in parts:  # that line is drawn already
        return {}
    return {name: points_of(groups[name], x, names[0], width) for name in most}


def _table(result: TableResult, show: ShowColumn, is_open: bool) -> str:
    table, whole = result.table, result.data.num_rows
    at_least = "at least " if result.cut else ""
    said = f"{at_least}{whole:,} row{'' if whole == 1 else 's'}"
    if whole > MOST_ROWS:
        said += f", the first {MOST_ROWS} are here, all are in the CSV and Parquet files"
    head = "".join(_head(column) for column in _in_order(table))
    body = _body(result, show) if whole else ""
    opened = " open" if is_open and whole else ""
    return (
        f'<details{opened} id="{escaped(table.name)}"><summary><h3>{escaped(table.title)}</h3> '
        f'<span class="dim">{escaped(said)}. {escaped(table.meaning)}</span></summary>'
        f'<div class="rows"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div></details>"
    )


def _in_order(table: ReportTable) -> list[TableColumn]:
    """Return the columns, those that a terminal shows first."""
    rank = {name: index for index, name in enumerate(table.brief)}
    return sorted(table.columns, key=lambda column: rank.get(column.name, len(rank)))


def _head(column: TableColumn) -> str:
    unit = f" ({column.unit})" if column.unit else ""
    kind = ' class="n"' if column.type in ("int", "float") else ""
    return (
        f'<th{kind} scope="col" title="{escaped(column.meaning + unit)}">'
        f"<button>{escaped(head_of(column.name))}</button></th>"
    )


def _body(result: TableResult, show: ShowColumn) -> str:
    cells = [(column, show(column)) for column in _in_order(result.table)]
    return "".join(
        f"<tr>{''.join(_cell(row, column, shown) for column, shown in cells)}</tr>"
        for row in result.rows(MOST_ROWS)
    )


def _cell(row: Row, column: TableColumn, shown: Show) -> str:
    value = row.get(column.name)
    text = escaped(shortened(shown(value)))
    if value is None:
        return f'<td class="{"n " if column.type in ("int", "float") else ""}u">{text}</td>'
    if column.type in ("int", "float"):
        number = number_of(value)
        data = "" if number is None else f' data-v="{number!r}"'
        return f'<td class="n"{data}>{text}</td>'
    title = f' title="{text}"' if len(text) > 40 else ""
    return f"<td{title}>{text}</td>"
