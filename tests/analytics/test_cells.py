"""Cells of parts, merged, give the tables of one run over all rows, however rows are split."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

import pyarrow

from analytics.cells import (
    VERSION,
    CellFolder,
    CellPart,
    CellTable,
    Counted,
    merged_cells,
    read_manifest,
    written_cells,
)
from analytics.errors import ReportError
from analytics.inputs.inputs import inputs_of
from analytics.inputs.source import read_cells, read_here
from analytics.report import ReportInput, ReportOptions
from analytics.reports import REPORT_MODULES, report_of
from analytics.result import ReportResult, computed
from analytics.sql.local import LocalEngine
from analytics.sql.windows import LENGTHS_US, base_of, window_of
from tests.rmqtool.command import ROOT, rmqtool

SAMPLES = ROOT / "samples"
REPORTS = ("latency", "overview", "quality")
_NEED_ROWS = ("in_flight", "peak_in_flight", "capture", "request_packet", "response_packet")
"""Columns of additive tables that are unknown in cells: of histograms and windows."""


@pytest.fixture(scope="module", params=["fault-kill-4x.pcap", "busy-overload-5x.pcap"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log") / "log"
    done = rmqtool("decode", "pcap", SAMPLES / request.param, "-T", "parquet", "-o", folder)
    assert done.status == 0, done.err
    return folder


def input_of(log: Path) -> ReportInput:
    return read_here(inputs_of([str(log)])).given


def reported(given: ReportInput, options: ReportOptions) -> list[ReportResult]:
    return computed([report_of(name) for name in REPORTS], given, options)


def counted_in(
    given: ReportInput, options: ReportOptions, folder: Path, name: str = "log"
) -> CellFolder:
    """Write the cells of an input into a folder that is made."""
    folder.mkdir()
    given.kept.counted = counted = Counted()
    reported(given, options)
    part = CellPart(folder="", reports=list(REPORTS), tables=[], inputs=[name], slowest=20)
    made = CellFolder.made(folder)
    written_cells(made, counted, part, {})
    return made


def merged(folders: Sequence[Path], options: ReportOptions) -> list[ReportResult]:
    tables = [table for name in REPORTS for table in report_of(name).cells]
    return reported(read_cells(inputs_of(list(map(str, folders))), tables).given, options)


def rows_of(results: Sequence[ReportResult]) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """Return the rows of the tables that cells say, without what only rows say."""
    found = {}
    for result in results:
        additive = report_of(result.report.name).additive
        for name, table in result.tables.items():
            if name not in additive:
                continue
            left_out = () if name in ("errors", "unanswered", "latency_slowest") else _NEED_ROWS
            found[name] = [
                {key: value for key, value in row.items() if key not in left_out}
                for row in table.rows()
            ]
    return found


def parts_of(given: ReportInput, count: int, seed: int) -> list[ReportInput]:
    """Return the input split: each exchange in one part, connections in all, as days have them."""
    chance = random.Random(seed)
    rows = given.kept.rows(given.exchanges)
    of_row = [chance.randrange(count) for _ in range(rows.num_rows)]
    engine = given.kept.engine
    parts = []
    for part in range(count):
        mask = pyarrow.array([one == part for one in of_row])
        held = engine.hold(rows.filter(mask))
        parts.append(ReportInput(held, type(given.kept)(engine), given.conversations))
    return parts


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seed"), [(2, 1), (5, 2)])
def test_any_split_gives_the_same_tables(log: Path, tmp_path: Path, count: int, seed: int) -> None:
    options = ReportOptions()
    wanted = rows_of(reported(input_of(log), options))
    folders = []
    for number, part in enumerate(parts_of(input_of(log), count, seed)):
        folders.append(tmp_path / f"day{number}")
        counted_in(part, options, folders[-1])
    found = rows_of(merged(folders, options))
    assert found.keys() == wanted.keys() >= {"latency", "errors", "topics", "quality_exchanges"}
    for name, rows in wanted.items():
        assert found[name] == rows, name


@pytest.mark.slow
def test_windows_are_those_of_the_whole_time(tmp_path: Path) -> None:
    """Days have finer windows than the week that they are merged to."""
    captures = [SAMPLES / "fault-kill-4x.pcap", SAMPLES / "busy-overload-4x.pcap"]
    logs = []
    for number, capture in enumerate(captures):
        logs.append(tmp_path / f"log{number}")
        rmqtool("decode", "pcap", capture, "-T", "parquet", "-o", logs[-1])
        counted_in(input_of(logs[-1]), ReportOptions(), tmp_path / f"day{number}")
    folders = [tmp_path / "day0", tmp_path / "day1"]
    both = read_here(inputs_of(list(map(str, logs)))).given
    wanted = rows_of(reported(both, ReportOptions()))
    found = rows_of(merged(folders, ReportOptions()))
    assert found["latency_over_time"] == wanted["latency_over_time"]
    assert found["errors_over_time"] == wanted["errors_over_time"]
    assert wanted["latency_over_time"][0]["window_us"] != 200_000
    fine = ReportOptions(tables=frozenset(["latency_over_time"]), window_us=1_000)
    with pytest.raises(ReportError, match="windows of"):
        merged(folders, fine)


def test_windows_are_made_of_those_of_any_shorter_time() -> None:
    for span in (0, 10**4, 10**7, 3_600 * 10**6, 86_400 * 10**6):
        length = window_of(span)
        longer = [one for one in LENGTHS_US if one >= length]
        assert all(one % base_of(length) == 0 for one in longer), length
    assert base_of(7_000_000) == 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_alone_reads_its_own_cells(log: Path, tmp_path: Path, name: str) -> None:
    counted_in(input_of(log), ReportOptions(), tmp_path / "cells")
    report = report_of(name)
    given = read_cells(inputs_of([str(tmp_path / "cells")]), report.cells).given
    (result,) = computed([report], given, ReportOptions())
    assert result.tables.keys() == report.additive


@pytest.mark.slow
def test_sends_through_a_proxy_need_rows(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rmqtool("decode", "pcap", SAMPLES / "grpc-send-5x.pcap", "-T", "parquet", "-o", log)
    counted_in(input_of(log), ReportOptions(), tmp_path / "cells")
    (_, overview, _) = merged([tmp_path / "cells"], ReportOptions())
    assert {table.name for table in overview.unknown} >= {"topics", "topology", "message_sizes"}
    assert "clients" in overview.tables


def test_additive_tables_are_tables() -> None:
    for name in REPORT_MODULES:
        report = report_of(name)
        tables = {table.name for table in report.tables}
        assert report.unrelayed <= report.additive <= tables
        assert bool(report.cells) == bool(report.additive)


def test_parts_are_added_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part without its name in cells.json is none, and inputs are done with their part."""
    table = CellTable("x", ("key",), {"count": "sum", "first": "min"})
    rows = pyarrow.table({"key": ["a", None], "count": [1, 2], "first": [5, 6]})
    part = CellPart(folder="", reports=["r"], tables=[], inputs=["i"])
    (tmp_path / "cells").mkdir()
    folder = CellFolder.made(tmp_path / "cells")
    folder.add({"x": rows}, part, ["a.pcap"])

    def fails(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(CellFolder, "_commit", lambda *_: fails(None))
        with pytest.raises(OSError, match="No space"):
            folder.add({"x": rows}, part, ["b.pcap"])
    manifest = read_manifest(tmp_path / "cells")
    assert (len(manifest.parts), manifest.done) == (1, ["a.pcap"])
    again = CellFolder(tmp_path / "cells", manifest)
    again.add({"x": rows}, part, ["b.pcap"])
    engine = LocalEngine()
    found = merged_cells(engine, [table], [tmp_path / "cells"]).merged
    assert found is not None
    merged_rows = engine.rows(found["x"]).to_pylist()
    engine.close()
    assert sorted(str(tuple(row.values())) for row in merged_rows) == [
        "('a', 2, 5)",
        "(None, 4, 6)",
    ]


def test_cells_of_another_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    CellFolder.made(tmp_path / "cells")
    path = tmp_path / "cells" / "cells.json"
    path.write_text(path.read_text().replace(f'"version": {VERSION}', '"version": 0'))
    with pytest.raises(ReportError, match=f"version 0, not {VERSION}"):
        read_manifest(tmp_path / "cells")


@pytest.mark.slow
def test_the_command_writes_and_merges(tmp_path: Path) -> None:
    capture = SAMPLES / "fault-kill-4x.pcap"
    cells = tmp_path / "cells"
    whole = rmqtool(
        "report", "latency", capture, "--cells", cells, "-T", "csv", "-o", tmp_path / "a"
    )
    assert whole.status == 0, whole.err
    merged = rmqtool("report", "latency", cells, "-T", "csv", "-o", tmp_path / "b")
    assert merged.status == 0, merged.err
    for name in ("operations", "latency", "latency_slowest", "latency_totals"):
        if (tmp_path / "a" / f"{name}.csv").exists():
            assert (tmp_path / "a" / f"{name}.csv").read_bytes() == (
                tmp_path / "b" / f"{name}.csv"
            ).read_bytes()
    for arguments, reason in (
        (("retries", cells), "retries needs rows"),
        (("overview", cells), "overview needs rows"),
        (("latency", cells, capture), "has cells"),
        (("latency", cells, "--where", "failed"), "--split cannot filter"),
    ):
        done = rmqtool("report", *arguments)
        assert done.status == 1, done
        assert reason in done.err
    again = rmqtool("report", "latency", capture, "--cells", cells)
    assert (again.status, "--force replaces it" in again.err) == (2, True)
