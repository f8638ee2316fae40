"""Inputs as Spark lists them: what each name, or match of a pattern, stands for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from analytics.inputs.inputs import Input, InputError, InputKind, inputs_of
from analytics.inputs.remote import opened
from analytics.inputs.source import Tables, read_inputs
from analytics.inputs.window import TimeWindow
from dissectors.times import moment_of
from tests.rmqtool.command import ROOT, rmqtool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SAMPLES = ROOT / "samples"
DAYS = ("fault-kill-4x", "grpc-send-5x")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log of each day, one of both by date, their captures, and rows."""
    folder = tmp_path_factory.mktemp("place")
    for name in DAYS:
        capture = SAMPLES / f"{name}.pcap"
        written(capture, folder / "days" / name)
        written(capture, folder / "dated", "--partition", "date")
        (folder / "captures").mkdir(exist_ok=True)
        shutil.copy(capture, folder / "captures")
    (folder / "rows").mkdir()
    for part in sorted((folder / "days" / DAYS[0] / "exchanges").iterdir()):
        shutil.copy(part, folder / "rows")
    return folder


def written(capture: Path, log: Path, *more: str) -> None:
    log.parent.mkdir(exist_ok=True)
    done = rmqtool("decode", "pcap", capture, "-T", "parquet", "-o", log, *more)
    assert done.status == 0, done.err


def remote(path: Path | str) -> Input:
    name = f"file://{path}"
    return Input(name, InputKind.remote, (name,))


def rows_of(tables: Tables, name: str = "exchanges") -> list[str]:
    """Return the rows of a table without what inputs and captures are called."""
    relation = getattr(tables.given, name)
    assert relation is not None
    rows = tables.given.kept.rows(relation).to_pylist()
    left_out = ("source", "capture")
    return sorted(
        json.dumps({key: row[key] for key in row if key not in left_out}, default=str)
        for row in rows
    )


def here(*paths: Path) -> list[Input]:
    return inputs_of(list(map(str, paths)))


def test_each_match_of_a_pattern_is_a_source(spark: SparkSession, place: Path) -> None:
    """Numbers of connections are unique within a log, so rows of two logs must differ in it."""
    found = read_inputs(spark, [remote(place / "days" / "*")], messages=True)
    logs = [place / "days" / name for name in DAYS]
    wanted = read_inputs(spark, here(*logs), messages=True)
    sources = found.given.kept.rows(found.given.exchanges.select("source")).column(0)
    assert set(sources.to_pylist()) == {f"file://{log}" for log in logs}
    for table in ("exchanges", "conversations", "findings", "messages"):
        assert rows_of(found, table) == rows_of(wanted, table), table


def test_a_log_by_date_gives_only_what_is_asked_for(spark: SparkSession, place: Path) -> None:
    since = moment_of("2026-11-23T00:00:00Z")
    assert since is not None
    (everything,) = opened(spark, [remote(place / "dated")])
    (later,) = opened(spark, [remote(place / "dated")], TimeWindow(since.ns))
    assert all("date=2026-11-23" in file for file in later.exchanges)
    assert {*later.exchanges} < {*everything.exchanges}
    assert (everything.rows, later.rows) == (228, 75)
    assert everything.manifest is not None


def test_captures_are_decoded_by_tasks(spark: SparkSession, place: Path) -> None:
    found = read_inputs(spark, [remote(place / "captures")], messages=True)
    wanted = read_inputs(spark, here(place / "captures"), messages=True)
    for table in ("exchanges", "conversations", "findings", "messages"):
        assert rows_of(found, table) == rows_of(wanted, table), table
    (each,) = opened(spark, [remote(place / "captures" / "*kill*.pcap")])
    assert each.kind is InputKind.captures
    assert each.exchanges == (f"file://{place}/captures/fault-kill-4x.pcap",)


def test_several_tasks_decode_what_one_does(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from analytics.inputs import capture_frame

    monkeypatch.setattr(capture_frame, "LARGE_BYTES", 1)
    monkeypatch.setattr(capture_frame, "TASK_BYTES", 1)
    found = read_inputs(spark, [remote(place / "captures")])
    assert rows_of(found) == rows_of(read_inputs(spark, here(place / "captures")))


def test_files_of_rows(spark: SparkSession, place: Path) -> None:
    found = read_inputs(spark, [remote(place / "rows")])
    assert rows_of(found) == rows_of(read_inputs(spark, here(place / "rows")))
    assert found.given.conversations is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("days/{a/b,c}", "braces"),
        ("other", "no capture and no rows"),
        ("array.json", "JSON array"),
        ("days/fault-kill-4x/conversations.parquet", "TCP connections, not exchanges"),
        ("cells", "has cells"),
        ("evil", "not a file of the log"),
        ("short", "missing from the decoded log"),
    ],
)
def test_what_is_no_input(spark: SparkSession, place: Path, name: str, reason: str) -> None:
    for folder in ("other", "cells", "evil", "short"):
        (place / folder).mkdir(exist_ok=True)
    (place / "other" / "x.txt").write_text("x")
    (place / "array.json").write_text("[]")
    (place / "cells" / "cells.json").write_text("{}")
    manifest = (place / "days" / DAYS[0] / "manifest.json").read_text()
    (place / "short" / "manifest.json").write_text(manifest)
    evil = json.loads(manifest)
    evil["parts"][0]["file"] = "../../etc/passwd"
    (place / "evil" / "manifest.json").write_text(json.dumps(evil))
    with pytest.raises(InputError, match=reason):
        opened(spark, [remote(place / name)])


def test_a_table_of_a_catalog(spark: SparkSession, place: Path) -> None:
    """Of a table, columns are found by name; one that it lacks is null; a source stays."""
    log = place / "days" / DAYS[0]
    rows = spark.read.parquet(str(log / "exchanges")).drop("latency_us")
    rows.withColumnRenamed("topic", "TOPIC").createOrReplaceTempView("rmqtool_rows")
    found = read_inputs(spark, inputs_of(["table:rmqtool_rows"]))
    wanted = [json.loads(row) for row in rows_of(read_inputs(spark, here(log / "exchanges")))]
    assert rows_of(found) == sorted(json.dumps(row | {"latency_us": None}) for row in wanted)
    sources = found.given.kept.rows(found.given.exchanges.select("source")).column(0)
    assert set(sources.to_pylist()) == {"table:rmqtool_rows"}
    dated = rows.selectExpr("*", "'2026-11-21' as source")
    dated.createOrReplaceTempView("rmqtool_dated")
    found = read_inputs(spark, inputs_of(["table:rmqtool_dated"]))
    sources = found.given.kept.rows(found.given.exchanges.select("source")).column(0)
    assert set(sources.to_pylist()) == {"2026-11-21"}
    spark.range(1).createOrReplaceTempView("rmqtool_other")
    with pytest.raises(InputError, match="has no exchanges"):
        read_inputs(spark, inputs_of(["table:rmqtool_other"]))
