"""One self-contained HTML page from report tables: tiles, charts, incidents, tables.

The page loads nothing: no network, no other file. Every text goes through `charts.escaped`. The
caller formats numbers (`show`), so terminal and page agree.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from dissectors.printable import printable, shortened
from dissectors.quantities import counted

from ..compare import head_of
from ..diagnosis.problem import occurrences_text
from ..report import Chart, ReportTable, Row, TableColumn, sum_of
from ..result import ReportResult, TableResult
from .charts import (
    MOST_CARDS,
    Point,
    ShadedIncident,
    Show,
    escaped,
    flows_chart,
    flows_of,
    heat_chart,
    lines_chart,
    micros_of,
    number_of,
    overview_chart,
    points_of,
    tag,
    timeline_chart,
    topology_of,
)

PROBLEMS: Final = "diagnosis_problems"
OVER_TIME: Final = "latency_over_time"
_OPERATIONS: Final = "operations"
_INPUTS, _TOTAL = "quality_exchanges", "latency_total"
_NEEDED: Final = frozenset((PROBLEMS, OVER_TIME, _INPUTS, _TOTAL, _OPERATIONS))
_SEVERITIES: Final = ("error", "warning", "info")
_MOST_TITLE: Final = 240


class _Tile(NamedTuple):
    name: str
    value: str
    note: str = ""
    kind: str = ""


def summary_of(results: Sequence[ReportResult], show: Callable[[TableColumn], Show]) -> str:
    """Return tiles and overview as HTML, or an empty string if no table has the data."""
    tables = {
        name: table.rows()
        for result in results
        for name, table in result.tables.items()
        if name in _NEEDED
    }
    show_us, show_count = (show(TableColumn("", "int", unit, "")) for unit in ("µs", ""))
    tiles = "".join(
        tag(
            "div",
            tag("dt", escaped(tile.name))
            + tag("dd", escaped(tile.value))
            + (tag("p", escaped(tile.note), kind="dim") if tile.note else ""),
            kind=f"tile {tile.kind}".strip(),
        )
        for tile in _tiles(tables, show_us, show_count)
    )
    windows = [
        {**row, "unanswered": sum_of([row], "no_response") + sum_of([row], "unknown")}
        for row in tables.get(OVER_TIME, ())
        if row["broker"] is None
    ]
    chart = overview_chart(windows, incidents_in(tables.get(PROBLEMS, ())), show_us, show_count)
    if chart:
        title = tag("figcaption", "Timeline")
        chart = tag("figure", title + tag("div", chart, kind="scroll"), id="timeline")
    return (tag("dl", tiles, kind="tiles") if tiles else "") + chart


def incidents_in(problems: Sequence[Row]) -> list[ShadedIncident]:
    """Return the incidents, the most severe first, each as its first problem (the cause)."""
    causes: dict[object, tuple[int, Row]] = {}
    for place, row in enumerate(problems):
        causes.setdefault(row["incident"], (place, row))
    incidents = [
        ShadedIncident(
            row["incident"] if place < MOST_CARDS else None,
            _severity(row),
            str(row["title"]),
            micros_of(row["first_time"]) or 0,
            micros_of(row["last_time"]) or 0,
        )
        for place, row in causes.values()
    ]
    # the chart shades only the first ones
    return sorted(incidents, key=lambda item: (_SEVERITIES.index(item.severity), item.first))


def _severity(row: Row) -> str:
    return str(row["severity"]) if row["severity"] in _SEVERITIES else "info"


def _tiles(tables: Mapping[str, Sequence[Row]], show_us: Show, show: Show) -> Iterator[_Tile]:
    if (problems := tables.get(PROBLEMS)) is not None:
        yield _verdict(problems)
    inputs = tables.get(_INPUTS, ())
    ends = [row[name] for row in inputs for name in ("first_time", "last_time")]
    if times := [at for at in ends if isinstance(at, datetime)]:
        first, last = min(times), max(times)
        length = show_us((micros_of(last) or 0) - (micros_of(first) or 0))
        to = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        yield _Tile("Time range", length, f"{first:%Y-%m-%d %H:%M:%S} to {to} UTC")
    requests = tables.get(_OPERATIONS)
    if requests is not None:
        whole = sum_of(requests, "exchanges")
        failed = sum_of(requests, "failed")
        proven, unknown = sum_of(requests, "no_response"), sum_of(requests, "unknown")
        yield _Tile("Exchanges", show(whole), "requests, with their responses")
        yield _Tile(
            "Failed responses",
            show(failed),
            "responses that report a failure",
            "error" if failed else "",
        )
        yield _Tile(
            "Unanswered",
            show(proven + unknown),
            f"{show(unknown)} of them may have a response that was not captured"
            if unknown
            else "requests without a response",
            "warning" if proven + unknown else "",
        )
    calls = [row for row in tables.get(_TOTAL, ()) if not row["long_poll"]]
    if calls and calls[0]["p99_us"] is not None:
        median, longest = show_us(calls[0]["p50_us"]), show_us(calls[0]["max_us"])
        yield _Tile("p99 latency", show_us(calls[0]["p99_us"]), f"median {median}, max {longest}")


def _verdict(problems: Sequence[Row]) -> _Tile:
    if not problems:
        return _Tile("Verdict", "No problems found", kind="good wide")
    incidents = incidents_in(problems)
    severities = [_severity(row) for row in problems]
    parts = [
        f"{count} {severity if severity == 'info' or count == 1 else severity + 's'}"
        for severity in _SEVERITIES
        if (count := severities.count(severity))
    ]
    return _Tile(
        "Verdict",
        ", ".join(parts),
        incidents[0].title[:_MOST_TITLE],
        f"{incidents[0].severity} wide",
    )


_PACKETS: Final = ("request_packet", "response_packet", "packet")
SHOWN_AS_EVIDENCE: Final = frozenset((*_PACKETS, "capture"))
"""columns that repeat the evidence of a row"""
_NAMES: Final = ("unique_key", "operation", "response", "topic", "group", "client", "broker")
"""columns with names that filters use as well"""
_NO_EXCHANGE: Final = frozenset(("connects", "kind"))
"""columns of tables about failed connects and the capture, which no exchange shows"""
_NOBODY: Final = frozenset(("?", ""))
_MOST_TEXT: Final = 200
"""maximum characters of a name in a filter"""
_TIME: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


class RowEvidence(NamedTuple):
    """Locations of the evidence."""

    label: str
    """``packet 166``, or ``show``"""
    wireshark: str
    """display filter; empty: none"""
    browse: str
    """command line"""


@dataclass(frozen=True, slots=True)
class Proofs:
    """Find the evidence of rows."""

    inputs: Sequence[str] = ()
    """inputs of the report"""
    brokers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """broker name -> its addresses: exchanges may lack the broker name"""

    def of_row(self, row: Row) -> RowEvidence:
        """Return the evidence of a row."""
        numbers = {number for name in _PACKETS if isinstance(number := row.get(name), int)}
        if numbers:
            shown = self.of_packets(sorted(numbers), row.get("capture"))
            # the packet of a finding may be of no exchange
            return shown._replace(browse=self.browse("")) if "kind" in row else shown
        if not _NO_EXCHANGE.isdisjoint(row) or row.get("exchanges") == 0:
            # a filter of exchanges would show nothing
            return RowEvidence("show", "", self.browse(""))
        # an attempt without a packet is a failed connect: no exchange of its message has its broker
        names = [name for name in _NAMES if name != "broker" or "request_packet" not in row]
        tests = [self._test(name, text) for name in names if (text := _name_in(row, name))]
        start, length = row.get("window_start"), number_of(row.get("window_us"))
        if isinstance(start, datetime) and length is not None:
            end = start + timedelta(microseconds=length)
            tests.append(f"time >= {start:{_TIME}} and time < {end:{_TIME}}")
        source = row.get("source", row.get("capture"))
        if isinstance(source, str) and [*self.inputs] != [source]:
            tests.append(f"capture == {_quoted(source)}")
        return RowEvidence("show", "", self.browse(" and ".join(tests)))

    def of_packets(self, numbers: Sequence[object], capture: object = None) -> RowEvidence:
        """Return the evidence for packets of one capture, or of all inputs if None."""
        listed = ", ".join(map(str, numbers))
        test = f"request_packet in ({listed}) or response_packet in ({listed})"
        if isinstance(capture, str) and [*self.inputs] != [capture]:
            test = f"capture == {_quoted(capture)} and ({test})"
        label = f"packet{'' if len(numbers) == 1 else 's'} {listed}"
        return RowEvidence(label, f"frame.number in {{{listed}}}", self.browse(test))

    def browse(self, where: str) -> str:
        """Return the command that shows the rows of a filter; empty: all rows."""
        chosen = ["-Y", where] if where else []
        return shlex.join(["rmqtool", "browse", *self.inputs, *chosen])

    def _test(self, name: str, text: str) -> str:
        if name == "broker" and text in self.brokers:
            return f"server in ({', '.join(map(_quoted, self.brokers[text]))})"
        return f"{name} == {_quoted(text)}"


def _name_in(row: Row, name: str) -> str | None:
    value = row.get(name)
    if not isinstance(value, str) or value in _NOBODY or len(value) > _MOST_TEXT:
        return None
    if value != printable(value) or (name == "client" and "@" in value):  # an id, not an address
        return None
    return value


# Names from the network are in a filter only if short and printable; commands are quoted.
def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


MOST_ROWS = 500
"""maximum rows of a table on the page; files have all"""
MOST_SERIES = 8
"""maximum brokers with a line of their own, those with most rows"""
_FOLDED: Final = 8
"""rows visible without a click, as in `page.css`"""
_BRIEF: Final = 10
"""columns visible without a click"""

ShowColumn = Callable[[TableColumn], Show]
"""column -> formatter of its values"""


def page_of(
    title: str,
    about: Sequence[tuple[str, str]],
    results: Sequence[ReportResult],
    show: ShowColumn,
    inputs: Sequence[str] = (),
) -> str:
    """Return the page; `about` are (name, text) about the input, the time, and the program.

    `inputs` are the inputs of commands that show the evidence of a row.
    """
    links = "".join(
        tag("a", escaped(result.report.title), href=f"#{result.report.name}") for result in results
    )
    proofs = Proofs(inputs, _addresses(results))
    reports = "".join(_Section(result, show, proofs).html() for result in results)
    return page_around(title, about, links, reports, summary_of(results, show))


def _addresses(results: Sequence[ReportResult]) -> dict[str, list[str]]:
    """Return the addresses of each named broker."""
    found: dict[str, dict[str, None]] = {}
    for result in results:
        if (pairs := result.tables.get("latency_network")) is not None:
            for row in pairs.rows(MOST_ROWS):
                found.setdefault(str(row["broker"]), {})[str(row["server_address"])] = None
    return {name: list(addresses) for name, addresses in found.items()}


def page_around(
    title: str, about: Sequence[tuple[str, str]], links: str, main: str, top: str = ""
) -> str:
    """Return the page frame for `main`; `links`, `main`, and `top` are HTML, escaped already."""
    style, script = _asset("page.css"), _asset("page.js")
    # Only these two may run, by their hashes: what a capture contains could neither load nor run
    # anything even if an escape were forgotten.
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
        f'<header><h1>{escaped(title)}</h1><dl class="about">{known}</dl>{top}</header>'
        f"<nav>{links}</nav>"
        f"<main>{main}</main>"
        "<footer>A dash means no value (unknown or not applicable), never zero. Times are UTC."
        " Packet numbers are those of the capture named in the same row (frame.number in"
        " Wireshark).</footer>"
        f"<script>{script}</script></body></html>\n"
    )


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


class _Section:
    """One report on the page."""

    def __init__(self, result: ReportResult, show: ShowColumn, proofs: Proofs) -> None:
        self.result = result
        self.show = show
        self.proofs = proofs

    def html(self) -> str:
        """Return the report: notes, charts, tables with rows, rarely needed tables, the rest."""
        report, tables = self.result.report, self.result.tables
        parts = [
            f"<h2>{escaped(report.title)}</h2>",
            tag("p", escaped(report.question), kind="dim"),
        ]
        more: list[str] = []
        charts = [chart for chart in report.charts if chart.table in tables]
        if not any(
            chart.kind == "incidents" and tables[chart.table].data.num_rows for chart in charts
        ):
            parts.append(_list("", self.result.notes, "remarks"))  # the cards have the same content
        for chart in charts:
            if picture := self._chart(chart, tables[chart.table]):
                # a single flow says no more than the row of its table
                aside = chart.kind == "flows" and tables[chart.table].data.num_rows == 1
                (more if aside else parts).append(picture)
        for table in tables.values():
            if table.data.num_rows:
                aside = table.table.aside or not table.table.shown
                (more if aside else parts).append(self._table(table))
        if more:
            parts.append(tag("details", f"<summary>More</summary>{''.join(more)}", kind="more"))
        empty = [table.table for table in tables.values() if not table.data.num_rows]
        parts += _named("No rows", empty)
        parts += _named("Not in the input", self.result.unknown)
        return tag("section", "".join(parts), kind="report", id=report.name)

    def _chart(self, chart: Chart, result: TableResult) -> str:
        """Return a figure, or an empty string if there is nothing to draw."""
        picture = self._incidents(result) if chart.kind == "incidents" else self._svg(chart, result)
        if not picture:
            return ""
        caption = tag("figcaption", escaped(chart.title))
        return tag("figure", caption + tag("div", picture, kind="scroll"))

    def _svg(self, chart: Chart, result: TableResult) -> str:
        columns = {column.name: column for column in result.table.columns}
        shown = {name: self.show(column) for name, column in columns.items()}
        rows, parts = result.rows(), chart.parts
        if chart.kind == "heat":
            return heat_chart(chart.title, rows, parts, shown[parts["y"]], shown[parts["value"]])
        if chart.kind == "flows":
            return flows_chart(chart.title, flows_of(rows, parts), shown[parts["value"]])
        if chart.kind == "topology":
            return flows_chart(chart.title, topology_of(rows, parts), shown[parts["value"]])
        if chart.kind == "timeline":
            return timeline_chart(chart.title, rows, parts, shown[parts["colour"]], shown)
        y = columns[parts["y"].split()[0]]
        lines = _lines_of(chart, rows)
        least = 1.0 if y.type == "int" else 0.0
        return lines_chart(chart.title, lines, parts["axis"], shown[y.name], y.unit == "µs", least)

    def _incidents(self, result: TableResult) -> str:
        """Return problem cards grouped by incident, or an empty string if there are none."""
        time = next(column for column in result.table.columns if column.name == "first_time")
        incidents: dict[object, list[str]] = {}
        for row in result.rows(MOST_CARDS):
            card = problem_card(row, self.show(time), self.proofs)
            incidents.setdefault(row["incident"], []).append(card)
        cards = "".join(
            tag("li", "".join(cards), kind="incident", id=f"incident-{number}")
            for number, cards in incidents.items()
        )
        more = result.data.num_rows - MOST_CARDS
        rest = f"{more} more problems are in the table below." if more > 0 else ""
        if not cards:
            return ""
        return tag("ol", cards, kind="incidents") + (tag("p", rest, kind="dim") if rest else "")

    def _table(self, result: TableResult) -> str:
        """Return a table: a few rows and columns, and a switch that shows all of them."""
        table, whole = result.table, result.data.num_rows
        named = {column.name: column for column in table.columns}
        names = [name for name in table.brief or named if name not in SHOWN_AS_EVIDENCE]
        brief = [named.pop(name) for name in names[:_BRIEF]]
        rest = list(named.values())
        head = "".join(
            [
                *map(_head, brief),
                '<th class="ev" scope="col">evidence</th>',
                *(_head(c, "x") for c in rest),
            ]
        )
        cells = [[(column, self.show(column)) for column in columns] for columns in (brief, rest)]
        body = "".join(
            tag(
                "tr",
                "".join(_cell(row, column, shown) for column, shown in cells[0])
                + _evidence_cell(self.proofs.of_row(row))
                + "".join(_cell(row, column, shown, "x") for column, shown in cells[1]),
            )
            for row in result.rows(MOST_ROWS)
        )
        at_least = "at least " if result.cut else ""
        count_text = f"{at_least}{counted(whole, 'row')}"
        if whole > MOST_ROWS:
            count_text += f"; the page has the first {MOST_ROWS}; CSV and Parquet files have all"
        wanted = [
            *([f"all {min(whole, MOST_ROWS):,} rows"] if whole > _FOLDED else ()),
            *([f"all {len(table.columns)} columns"] if rest else ()),
        ]
        switch = f'<label><input type="checkbox"> {" and ".join(wanted)}</label>'
        return (
            f'<div class="table" id="{escaped(table.name)}"><h3>{escaped(table.title)}</h3>'
            f'<p class="dim">{escaped(count_text)}. {escaped(table.meaning)}</p>'
            f'<div class="rows"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
            f"</div>{switch if wanted else ''}</div>"
        )


def _named(what: str, tables: Sequence[ReportTable]) -> Iterator[str]:
    """Yield the names of empty tables, in one line."""
    if tables:
        names = ", ".join(table.title for table in tables)
        yield tag("p", escaped(f"{what}: {names}."), kind="dim")


def _lines_of(chart: Chart, rows: Sequence[Row]) -> dict[str, list[Point]]:
    """Return the lines of a chart: one per column, or with `by` one per value of that column."""
    parts = chart.parts
    x, names, width = parts["x"], parts["y"].split(), parts.get("width", "")
    by = parts.get("by")
    if by is None:
        return {head_of(name): points_of(rows, x, name, width) for name in names}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.get(by) is not None:
            groups.setdefault(str(row[by]), []).append(row)
    most = sorted(groups, key=lambda name: (-len(groups[name]), name))[:MOST_SERIES]
    if len(most) < 2 and "each" not in parts:  # that line is drawn already
        return {}
    return {name: points_of(groups[name], x, names[0], width) for name in most}


def _head(column: TableColumn, more: str = "") -> str:
    unit = f" ({column.unit})" if column.unit else ""
    kind = f"{'n ' if column.type in ('int', 'float') else ''}{more}".strip()
    button = tag("button", escaped(head_of(column.name)))
    return tag("th", button, kind=kind or None, scope="col", title=column.meaning + unit)


def _cell(row: Row, column: TableColumn, shown: Show, more: str = "") -> str:
    value = row.get(column.name)
    text = shortened(shown(value))
    number = column.type in ("int", "float")
    kinds = ("n" if number else "", "u" if value is None else "", more)
    # The text is rounded and has a unit; the page's script sorts by the number.
    exact = number_of(value) if number else None
    return tag(
        "td",
        escaped(text),
        kind=" ".join(filter(None, kinds)) or None,
        data_v=None if exact is None else repr(exact),
        title=text if len(text) > 40 and not number else None,
    )


def _evidence_cell(evidence: RowEvidence) -> str:
    return tag("td", _evidence(evidence), kind="ev")


def _evidence(evidence: RowEvidence) -> str:
    codes = (evidence.wireshark, evidence.browse)
    inner = "".join(tag("code", escaped(text)) for text in codes if text)
    return tag("details", tag("summary", escaped(evidence.label)) + inner)


def problem_card(row: Row, shown_time: Show, proofs: Proofs) -> str:
    """Return a problem card: title, advice, and behind a switch evidence and explanation."""
    kind = _severity(row)
    follows = " follows" if row["consequence_of"] is not None else ""
    first, last = shown_time(row["first_time"]), shown_time(row["last_time"])
    day = first.partition(" ")[0]
    until = first if first == last else last.removeprefix(f"{day} ")
    state = None if row["state"] is None else str(row["state"])
    times = row["count"] if isinstance(row["count"], int) else 1
    if any(text.endswith(f"={times}") for text in _texts_in(row["impact"])):
        times = 1  # a count of messages, which is already in the title
    when = occurrences_text(first, until, times, state)
    reason = f" ({row['reason']})" if row["reason"] else ""
    facts = f"{when}; confidence: {row['confidence']}{reason}; rule {row['rule']}"
    proof = str(row["filter"])
    numbers = re.fullmatch(r"frame\.number in \{([\d, ]+)\}", proof)
    browse = proofs.of_packets(numbers[1].split(", ")).browse if numbers else proofs.browse("")
    wireshark = f"<p>Wireshark: {tag('code', escaped(proof))}</p>" if proof else ""
    return (
        f'<article class="problem {kind}{follows}"><p><span class="severity">{escaped(kind)}</span>'
        f" <strong>{escaped(row['title'])}</strong></p>"
        f"{tag('p', escaped(facts), kind='dim')}<p>{escaped(row['advice'])}</p>"
        f"<details><summary>Evidence and explanation</summary>"
        f"{_list('', row['details'])}<p>{escaped(row['explanation'])}</p>"
        f"{_list('Evidence', row['evidence'])}"
        f"{wireshark}<p>{tag('code', escaped(browse))}</p>"
        f"{_list('See', row['references'])}</details></article>"
    )


def _texts_in(values: object) -> Sequence[str]:
    """Return the texts of a list; a table may have none."""
    return () if not isinstance(values, Sequence) or isinstance(values, str) else values


def _list(heading: str, values: object, kind: str | None = None) -> str:
    if not (texts := _texts_in(values)):
        return ""
    items = "".join(tag("li", escaped(value)) for value in texts)
    return (tag("p", escaped(heading)) if heading else "") + tag("ul", items, kind=kind)
