"""The top of the HTML page: tiles, and the overview over time.

Rules: each figure comes from a report table; if no report has it, it is omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from ..report import Row, TableColumn, sum_of
from ..result import ReportResult
from .charts import MOST_CARDS, ShadedIncident, Show, escaped, micros_of, overview_chart, tag

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
            f"{show(proven)} proven, {show(unknown)} unknown",
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
