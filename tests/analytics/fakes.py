"""Report results without Spark: a column of each kind, and texts that would like to run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow

from analytics.report import Chart, Report, ReportTable, TableColumn
from analytics.result import ReportResult, TableResult

EVIL = (
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "</style><style>body{display:none}",
    "=cmd|' /C calc'!A0",
    "\x1b[2J\u202eevil\x00",
    "<svg onload=document.title='owned'>",
    "{{7*7}} ${7*7} <!--",
)
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
_TYPES = {
    "string": pyarrow.string(),
    "int": pyarrow.int64(),
    "float": pyarrow.float64(),
    "bool": pyarrow.bool_(),
    "time": pyarrow.timestamp("us", tz="UTC"),
    "list": pyarrow.list_(pyarrow.string()),
}


def table_of(
    name: str, columns: tuple[TableColumn, ...], rows: list[dict[str, object]], **more: object
) -> TableResult:
    """A table as if it had been computed."""
    schema = pyarrow.schema([(column.name, _TYPES[column.type]) for column in columns])
    data = pyarrow.Table.from_pylist(rows, schema=schema)
    table = ReportTable(name, f"Title of {name}", "A row each.", columns)
    return TableResult(table._replace(**more), data)


def brokers(texts: tuple[str, ...] = EVIL) -> TableResult:
    """One row per text: grouped by it, with numbers of each unit, the last row all unknown."""
    columns = (
        TableColumn("broker", "string", "", "who"),
        TableColumn("exchanges", "int", "", "how many"),
        TableColumn("p99_us", "int", "µs", "how long"),
        TableColumn("failed_share", "float", "share", "how bad"),
        TableColumn("bytes", "int", "bytes", "how much"),
        TableColumn("long_poll", "bool", "", "whether it waits"),
        TableColumn("first_time", "time", "", "since when"),
        TableColumn("groups", "list", "", "for whom"),
    )
    rows: list[dict[str, object]] = [
        {
            "broker": text,
            "exchanges": 10 - number,
            "p99_us": 1500 * 3**number,
            "failed_share": number / 10,
            "bytes": 4096 * number,
            "long_poll": number % 2 == 0,
            "first_time": START + timedelta(seconds=number),
            "groups": [text, "readers"],
        }
        for number, text in enumerate(texts)
    ]
    rows.append({"broker": "silent"})
    return table_of("brokers", columns, rows, order=("-exchanges", "broker"))


def windows(texts: tuple[str, ...] = EVIL) -> TableResult:
    """Latency over time for each text and for all, with a hole in it."""
    columns = (
        TableColumn("window_start", "time", "", "when"),
        TableColumn("window_us", "int", "µs", "length"),
        TableColumn("broker", "string", "", "who"),
        TableColumn("p50_us", "int", "µs", "half"),
        TableColumn("p99_us", "int", "µs", "nearly all"),
        TableColumn("from_us", "int", "µs", "bucket"),
        TableColumn("count", "int", "", "how many"),
    )
    rows: list[dict[str, object]] = [
        {
            "window_start": START + timedelta(seconds=second),
            "window_us": 1_000_000,
            "broker": name,
            "p50_us": 1000 + 37 * second,
            "p99_us": 9000 + 1000 * second,
            "from_us": 1024 << (second % 4),
            "count": 1 + second,
        }
        for name in (None, *texts[:2])
        for second in range(20)
        if second not in (7, 8)
    ]
    return table_of("windows", columns, rows, order=("window_start", "broker"), shown=0)


def stretches(texts: tuple[str, ...] = EVIL) -> TableResult:
    """A stretch of time for each text, one without an end, and flows between texts."""
    columns = (
        TableColumn("client", "string", "", "who"),
        TableColumn("broker", "string", "", "whom"),
        TableColumn("start", "time", "", "from"),
        TableColumn("end", "time", "", "to; absent: not yet"),
        TableColumn("cause", "string", "", "why"),
        TableColumn("retries", "int", "", "how many"),
    )
    rows: list[dict[str, object]] = [
        {
            "client": text,
            "broker": texts[(number + 1) % len(texts)],
            "start": START + timedelta(seconds=10 * number),
            "end": None if number == 2 else START + timedelta(seconds=10 * number + 30),
            "cause": texts[number % 3],
            "retries": number + 1,
        }
        for number, text in enumerate(texts)
    ]
    return table_of("stretches", columns, rows, order=("start", "client"))


CHARTS = (
    Chart(
        "lines",
        "Lines",
        "windows",
        {"x": "window_start", "y": "p50_us p99_us", "axis": "latency", "width": "window_us"},
    ),
    Chart(
        "lines",
        "By broker",
        "windows",
        {
            "x": "window_start",
            "y": "p99_us",
            "axis": "p99",
            "by": "broker",
            "width": "window_us",
        },
    ),
    Chart(
        "heat",
        "Heat",
        "windows",
        {
            "x": "window_start",
            "y": "from_us",
            "axis": "latency",
            "value": "count",
            "width": "window_us",
        },
    ),
    Chart(
        "flows",
        "Flows",
        "stretches",
        {"start": "client", "end": "broker", "value": "retries", "label": "cause"},
    ),
    Chart(
        "timeline",
        "Timeline",
        "stretches",
        {"row": "client broker", "start": "start", "end": "end", "colour": "cause"},
    ),
)


def result(texts: tuple[str, ...] = EVIL) -> ReportResult:
    """A report with a chart of each kind."""
    tables = {one.table.name: one for one in (brokers(texts), windows(texts), stretches(texts))}
    unknown = ReportTable("network", "Network", "A row each.", ())
    report = Report(
        "fake",
        f"Fake {texts[0]}",
        f"What? {texts[1]}",
        (*(one.table for one in tables.values()), unknown),
        lambda given, options: {},
        CHARTS,
    )
    return ReportResult(report, tables, [unknown], [f"Remark {text}" for text in texts])
