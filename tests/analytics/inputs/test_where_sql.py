"""Filters as SQL hold for exactly the rows for which the filter's own test holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow.parquet
import pytest

from analytics.inputs.filters import chosen, compiled
from analytics.inputs.inputs import inputs_of
from analytics.inputs.where_sql import sql_of
from analytics.report import ReportInput
from dissectors.rows.record import COLUMNS
from dissectors.times import Moment, moment_of
from dissectors.where.fields import exchange_fields
from dissectors.where.filter import compile_where, parse_where
from tests.analytics.reported import on_spark
from tests.analytics.rows import START, moment, report_input, row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TEXTS: Final = (
    *("orders", "Orders", "orders ", "%RETRY%shop", "a'b", 'a"b', "a\\b", "\\'", "{x}", "${x}"),
    *("", "é", "\u2028", "\U0001f600", "a\x00b", "a\nb", "--", "`topic`", "div 1L", "NULL"),
)
ENDPOINTS: Final = ("10.0.0.1:10911", "[::1]:5", "::1", "host", ":", "[[a]]:1", "", "a:b:c")
STATUSES: Final = ("answered", "unanswered", "oneway", "orphan")
NUMBERS: Final = (0, 1, -1, 999, 1000, 2**31, 2**63 - 1, -(2**63))
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "topic": TEXTS,
    "remark": TEXTS,
    "status": STATUSES,
    "outcome": (*STATUSES, "SUCCESS", "SYSTEM_BUSY"),
    "request": ("SEND_MESSAGE_V2", "PULL_MESSAGE"),
    "findings": ("MIDSTREAM", "GAP"),
    "broker": (*ENDPOINTS, "::1", "10.0.0.1", "a", "broker-a", "host"),
    "client": (*ENDPOINTS, "10.0.0.1", "::1", "a:b"),
    "ip": ("10.0.0.1", "::1", "", ":", "a"),
    "queue_id": ("0", "1", "-1", "0.5", "1000", "9223372036854775807", "99999999999999999999"),
    "packet": ("0", "999", "1.5"),
    "version": ("5", "5.3", "4.9.4", "V4_9_4", "4.2.0", "453"),
    "latency": ("1ms", "0", "1us", "999.5us", "100ns", "30000000000000000000s"),
    "time": ("2026-11-20T10:00:00", "2026-11-20T10:00:00.000001500", "10:00", "10:00+08:00"),
    "request_time": ("2026-11-20T10:00:00.001", "9999-12-31T23:59:59", "2026-11-20"),
    "failed": ("true", "no"),
    "bad": ("yes", "false"),
}
PATTERNS: Final = (
    "^orders",
    "rs$",
    "^orders$",
    "r",
    "",
    "^",
    "a\\\\.b",
    "a.b",
    "[o]",
    "10\\\\.0",
    "^host",
)
LISTS: Final = ("findings", "broker", "client", "ip")
NO_TEXT: Final = (
    "version",
    "queue_id",
    "packet",
    "latency",
    "time",
    "request_time",
    "failed",
    "bad",
)


def made_rows(dice: Random, count: int) -> list[dict[str, object]]:
    """Return rows in which everything may be absent."""

    def maybe(*values: object) -> object:
        return dice.choice((None, *values))

    return [
        row(0)
        | {
            "topic": maybe(*TEXTS),
            "remark": maybe(*TEXTS),
            "status": maybe(*STATUSES),
            "response_name": maybe("SUCCESS", "SYSTEM_BUSY"),
            "request_name": maybe("SEND_MESSAGE_V2", "PULL_MESSAGE"),
            "outcome_class": maybe("ok", "failed", "unanswered"),
            "findings": maybe([], ["MIDSTREAM"], ["GAP", "MIDSTREAM"]),
            "broker_name": maybe("broker-a", "a", ""),
            "client_address": maybe(*ENDPOINTS),
            "server_address": maybe(*ENDPOINTS),
            "version": maybe(0, 5, 252, 401, 413, 453, 479, 612, 700),
            "queue_id": maybe(*NUMBERS),
            "latency_us": maybe(*NUMBERS),
            "request_packet": maybe(*NUMBERS),
            "response_packet": maybe(*NUMBERS),
            "request_time": maybe(*map(moment, (-1, 0, 1, 2, 1000))),
            "response_time": maybe(*map(moment, (-1, 0, 1, 2, 1000))),
        }
        for _ in range(count)
    ]


def expression(dice: Random, depth: int = 0) -> str:
    """Return a filter."""
    kind = dice.random()
    if depth < 3 and kind < 0.35:
        word = dice.choice((" and ", " or "))
        return f"({word.join(expression(dice, depth + 1) for _ in range(dice.randint(2, 3)))})"
    if depth < 3 and kind < 0.45:
        return f"not {expression(dice, depth + 1)}"
    name = dice.choice(tuple(FIELDS))
    if kind < 0.55:
        return f"{dice.choice(('has', 'absent'))} {name}"
    if name in ("failed", "bad") and kind < 0.7:
        return name
    if name not in NO_TEXT and kind < 0.7:
        return f'{name} {dice.choice(("~", "!~"))} "{dice.choice(PATTERNS)}"'
    if kind < 0.8:
        values = ", ".join(quoted(dice.choice(FIELDS[name])) for _ in range(dice.randint(1, 3)))
        return f"{name} {dice.choice(('in', 'not in'))} ({values})"
    order = () if name not in NO_TEXT[:6] else ("<", "<=", ">", ">=")
    return f"{name} {dice.choice(('==', '!=', *order))} {quoted(dice.choice(FIELDS[name]))}"


def quoted(value: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def holding(where: str, rows: Sequence[dict[str, object]]) -> list[bool]:
    """Return for which rows the filter's own test holds."""
    test = compile_where(where, exchange_fields())
    return [test(SimpleNamespace(**{**one, **times(one)})) for one in rows]


def times(one: dict[str, object]) -> dict[str, object]:
    """Return the times of a row as tests see them: nanoseconds since the epoch."""
    return {
        name: None if one[name] is None else round((one[name] - EPOCH).total_seconds() * 1e6) * 1000  # type: ignore[operator]
        for name in ("request_time", "response_time")
    }


EPOCH = START.replace(year=1970, month=1, day=1, hour=0)


def compare(given: ReportInput, rows: list[dict[str, object]], dice: Random, count: int) -> int:
    """Compare filters, their SQL in one query; return how many are SQL as a whole."""
    wheres = [expression(dice) for _ in range(count)]
    parts = [sql_of(parse_where(where, exchange_fields())) for where in wheres]
    said = {n: " and ".join(sql) for n, (sql, left) in enumerate(parts) if not left}
    columns = [f"coalesce({sql}, false) as c{n}" for n, sql in said.items()]
    found = given.kept.rows(given.exchanges.select("opaque", *columns)).sort_by("opaque")
    for n in said:
        assert found.column(f"c{n}").to_pylist() == holding(wheres[n], rows), wheres[n]
    return len(said)


def numbered(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**one, "opaque": number} for number, one in enumerate(rows)]


def test_duckdb_chooses_the_rows_that_the_test_chooses() -> None:
    dice = Random(46)
    translated = 0
    for _ in range(10):
        rows = numbered(made_rows(dice, 60))
        translated += compare(report_input(rows), rows, dice, 50)
    assert translated > 250, "most filters are SQL"


@pytest.mark.spark
@pytest.mark.slow
def test_spark_chooses_the_rows_that_the_test_chooses(spark: SparkSession) -> None:
    dice = Random(47)
    rows = numbered(made_rows(dice, 200))
    given = on_spark(report_input(rows), spark)
    assert compare(given, rows, dice, 150) > 75


def test_the_rest_of_an_and_is_tested_here() -> None:
    dice = Random(48)
    rows = numbered(made_rows(dice, 100))
    given = report_input(rows)
    for _ in range(100):
        where = expression(dice)
        found = given.kept.rows(chosen(given, where).exchanges).column("opaque").to_pylist()
        expected = [n for n, holds in enumerate(holding(where, rows)) if holds]
        assert sorted(found) == expected, where


def test_only_columns_of_the_rest_are_tested() -> None:
    rest = compiled("topic == A and remark ~ '[x]' and latency > 1ms and time > 10:00")
    assert rest.names == ("remark", "request_time", "response_time")
    assert rest.sql == ["(`topic` = 'A')", "(`latency_us` > 1000L)"]


# -- what readers skip ----------------------------------------------------------------------------

GROUPS, IN_GROUP = 8, 25_000
WHERES: Final = ("topic == t6", "latency_us >= 175000us and latency_us < 176000us")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file whose row groups have their own topics and times; it is no small input."""
    file = tmp_path_factory.mktemp("pushed") / "rows.parquet"
    table = pyarrow.table(dict(_columns(GROUPS * IN_GROUP)))
    pyarrow.parquet.write_table(table, file, row_group_size=IN_GROUP)
    return file


def _columns(count: int) -> Iterator[tuple[str, object]]:
    types = {column.name: column.type for column in COLUMNS}
    plain = row(0)
    for name in (
        "client_address",
        "server_address",
        "status",
        "opaque",
        "request_name",
        "outcome_class",
    ):
        yield name, [plain[name]] * count
    yield "topic", [f"t{n // IN_GROUP}" for n in range(count)]
    yield "latency_us", list(range(count))
    start = int(START.timestamp()) * 1_000_000
    assert types["request_time"] == "time"
    micros = pyarrow.array([start + n * 1000 for n in range(count)], pyarrow.int64())
    yield "request_time", micros.cast(pyarrow.timestamp("us", tz="UTC"))


SINCE: Final = moment_of("2026-11-20T10:02:00")
UNTIL: Final = moment_of("2026-11-20T10:02:10")
FILTERS: Final = (*((where, None, None) for where in WHERES), ("", SINCE, UNTIL))


class _Watched:
    """A connection to DuckDB that keeps the statements of its queries."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.statements: list[str] = []

    def sql(self, statement: str) -> object:
        self.statements.append(statement)
        return self.connection.sql(statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[_Watched]:
    """Return the connections that will be opened."""
    opened: list[_Watched] = []
    connect = duckdb.connect

    def watch(database: str) -> _Watched:
        opened.append(_Watched(connect(database)))
        return opened[-1]

    monkeypatch.setattr("duckdb.connect", watch)
    return opened


@pytest.mark.parametrize(("where", "since", "until"), FILTERS)
def test_duckdb_reads_few_row_groups(
    log: Path, where: str, since: Moment | None, until: Moment | None, watched: list[_Watched]
) -> None:
    from analytics.inputs.source import read_here

    given = chosen(read_here(inputs_of([str(log)])).given, where, since, until)
    given.kept.rows(given.exchanges.grouped((), {"n": "sum(opaque)"}))
    (engine,) = watched
    plan = str(engine.execute(f"explain analyze {engine.statements[-1]}").fetchall()[0][1])
    scanned = re.search(r"Row Groups Scanned: (\d+) / (\d+)", plan)
    assert scanned is not None, plan
    assert int(scanned[2]) == GROUPS
    assert 1 <= int(scanned[1]) <= 2, plan
    assert 0 < given.kept.rows(given.exchanges).num_rows <= IN_GROUP


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("where", "since", "until"), FILTERS)
def test_filters_reach_the_parquet_reader_of_spark(
    spark: SparkSession, log: Path, where: str, since: Moment | None, until: Moment | None
) -> None:
    from analytics.inputs.source import read_inputs
    from analytics.spark.engine import SparkEngine

    given = chosen(read_inputs(spark, inputs_of([str(log)])).given, where, since, until)
    engine = given.kept.engine
    assert isinstance(engine, SparkEngine)
    shown = StringIO()
    with redirect_stdout(shown):
        engine.frame(given.exchanges.select("opaque")).explain(mode="formatted")
    plan = shown.getvalue()
    (pushed,) = re.findall(r"PushedFilters: \[(.*)\]", plan)
    expected = {
        WHERES[0]: ["EqualTo(topic,t6)"],
        WHERES[1]: ["GreaterThanOrEqual(latency_us,175000)", "LessThan(latency_us,176000)"],
        "": ["GreaterThanOrEqual(request_time,2026-11-20", "LessThan(request_time,2026-11-20"],
    }[where]
    assert all(one in pushed for one in expected), pushed
    assert "python" not in plan.lower()
    assert 0 < engine.frame(given.exchanges).count() <= IN_GROUP
