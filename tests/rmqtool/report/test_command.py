"""`rmqtool report`: the command line, its outputs, and what it says when it cannot."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics.reports import REPORT_MODULES, report_names, report_of
from dissectors.owned_folder import MARKER
from rmqtool.report.options import ReportFormat, ReportRequest, names_and_inputs, span_option
from rmqtool.report.output import About, csv_of, json_of, parquet_of, write_report
from rmqtool.report.text import columns_of, percentage, report_lines, title_of
from rmqtool.ui.console import UNLIMITED, Terminal
from rmqtool.ui.screen.progress import LOG_MARK
from rmqtool.ui.status import CommandError, ExitStatus
from tests.analytics import fakes
from tests.rmqtool.command import ROOT, capture_in, process, rmqtool
from tests.test_architecture import HEAVY

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="no Java")
pytest.importorskip("pyspark")
SAMPLES = ROOT / "samples"
ABOUT = About(["in.pcap"], [], {"where": "topic == Orders"}, ["a remark"])


def test_names_come_before_inputs() -> None:
    assert names_and_inputs(["latency", "retries", "a.pcap"]) == (
        ("latency", "retries"),
        ["a.pcap"],
    )
    names, inputs = names_and_inputs(["a.pcap", "latency"])
    assert names == REPORT_MODULES
    assert inputs == ["a.pcap", "latency"]
    assert names_and_inputs(["latency", "all", "x"])[0] == names
    with pytest.raises(CommandError, match="no input"):
        names_and_inputs(["latency"])


@pytest.mark.slow
def test_options_and_help_load_no_library_of_reports() -> None:
    code = "import sys, rmqtool.report.command, rmqtool.report.options; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert set(done.stdout.split()) & {*HEAVY, "analytics.report", "pyspark"} == set(), done.stderr


def test_tables_have_names_of_their_own() -> None:
    """A table may be in several reports: it is one then."""
    tables = {table for name in REPORT_MODULES for table in report_of(name).tables}
    assert len({table.name for table in tables}) == len(tables)


def test_each_table_is_described_whole() -> None:
    from analytics.schema import TYPES

    for report in map(report_of, report_names()):
        for table in report.tables:
            names = [column.name for column in table.columns]
            assert len(set(names)) == len(names), table.name
            assert set(table.brief) <= set(names), table.name
            assert {name.lstrip("-") for name in table.order} <= set(names), table.name
            assert all(column.type in TYPES and column.meaning for column in table.columns)
        for chart in report.charts:
            (table,) = [one for one in report.tables if one.name == chart.table]
            used = {
                n for part, names in chart.parts.items() if part != "axis" for n in names.split()
            }
            assert used <= {column.name for column in table.columns}, chart.title


def test_docs_have_every_table() -> None:
    from tests.analytics.reports_docs import PAGE, page

    assert PAGE.read_text() == page(), "python -m tests.analytics.reports_docs"


@pytest.mark.parametrize(
    ("text", "us"), [("500ms", 500_000), ("1.5s", 1_500_000), ("1m", 60_000_000)]
)
def test_lengths_of_time(text: str, us: int) -> None:
    assert span_option("--window", text) == us


def test_wrong_options_are_said_before_anything_starts(tmp_path: Path) -> None:
    capture = str(capture_in(tmp_path))
    for arguments, said in (
        (["--window", "soon", capture], "not a valid duration"),
        (["--where", "latency >", capture], "expected a value"),
        (["--format", "csv", capture], "give -o FOLDER, or one table"),
        (["--conf", "x", capture], "spark.NAME=VALUE"),
        (["--conf", "fs.secret.key=hidden", capture], "--conf: 'fs.secret.key' is not a Spark"),
        (["--latency-max", "a,b", capture], "not milliseconds"),
        ([], "no input"),
        (["latency", capture, "-o", f"{tmp_path}/no/such/file.html"], "is not a folder"),
        (["latency", capture, "-o", capture], "exists"),
    ):
        result = rmqtool("report", *arguments)
        assert result.status in (1, 2), arguments
        assert said in result.err, arguments
        assert "Traceback" not in result.err


def test_options_without_an_effect_are_refused(tmp_path: Path) -> None:
    capture, rows = str(capture_in(tmp_path)), str(tmp_path / "rows.jsonl")
    assert rmqtool("decode", "pcap", capture, "-o", rows, "-q").status == 0
    for arguments, said in (
        (["retries", capture, "--slo", "50ms"], "--slo: is for the report latency; omit it"),
        (["quality", capture, "--window", "1s"], "--window: is for the report overview or"),
        (["overview", capture, "--slowest", "3"], "--slowest: is for the report latency"),
        (["latency", capture, "--retry-times", "3"], "--retry-times: is for the report overview"),
        (["retries", capture, "--latency-max", "9"], "--latency-max: is for the report isolation"),
        (["latency", capture, "--fault-strategy", "on"], "--fault-strategy: is for the report"),
        (["latency", rows, "--engine", "local", "--verbose"], "--verbose: needs Spark"),
        (
            ["latency", str(tmp_path), "--follow", "--cells", f"{tmp_path}/c", "--slo", "5ms"],
            "--follow and --slo: cannot be combined",
        ),
        (["latency", rows, "--decode-as", "9"], "--decode-as: is for captures, and the input"),
        (["latency", rows, "--max-ratio", "9"], "--max-ratio: is for captures, and the input"),
        (
            ["latency", capture, "--cells", f"{tmp_path}/cells", "--split", "10:00"],
            "--cells and --split: do not combine",
        ),
    ):
        result = rmqtool("report", *arguments)
        assert (result.status, result.out) == (2, ""), arguments
        assert result.err.startswith(f"rmqtool: {said}"), arguments
    of_isolation = ("isolation", "--send-timeout", "2s", "--retry-times", "1", "--latency-max", "9")
    assert rmqtool("report", *of_isolation, "--not-available", "9", capture).status == 0
    both = ("latency", "retries", "--slo", "50ms", "--max-ratio", "99", "-q")
    assert rmqtool("report", *both, rows, capture).status == 0


def test_cells_refuse_what_they_do_not_have(tmp_path: Path) -> None:
    cells, capture = tmp_path / "cells", SAMPLES / "send-sync-4x.pcap"
    written = ("latency", capture, "--cells", cells, "--slowest", "3", "--slo", "5ms", "-q")
    assert rmqtool("report", *written).status == 0
    for arguments, said in (
        (("--slo", "5ms"), f"--slo: needs rows, and {cells} has cells; name logs or captures"),
        (("--slowest", "4"), "--slowest: the cells have the 3 slowest; write them again"),
    ):
        result = rmqtool("report", "latency", cells, "-T", "json", *arguments)
        assert (result.status, result.out) == (2, "")
        assert result.err.startswith(f"rmqtool: {said}")
    for allowed in ((), ("--slowest", "2")):
        assert rmqtool("report", "latency", cells, "-q", *allowed).status == 0


def test_a_job_has_no_options_without_an_effect(capsys: pytest.CaptureFixture[str]) -> None:
    from rmqtool.report.job import main

    for option in ("--split", "--follow"):
        assert main(["latency", "x.pcap", "-o", "y", option]) == 2
        assert f"No such option: {option}" in capsys.readouterr().err
    assert main(["latency", "x.pcap", "-o", "y", "--retry-times", "1"]) == 2
    assert (
        "--retry-times: is for the report overview or retries or isolation"
        in capsys.readouterr().err
    )


def test_a_word_that_is_neither_file_nor_report_says_where_reports_are_listed() -> None:
    result = rmqtool("report", "nosuch", "x.pcap")
    assert result.status == 1
    assert "nosuch: no such file, folder, or report\n" in result.err
    assert "rmqtool report --list" in result.err
    assert "did you mean latency?" in rmqtool("report", "latncy", "x.pcap").err


def test_an_input_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1oops")
    (tmp_path / "empty.pcap").write_bytes(b"")
    for name, said in (("nothing", "no such file"), ("bad.parquet", "damaged or unfinished")):
        result = rmqtool("report", "latency", tmp_path / name)
        assert result.status == 1
        assert said in result.err
        assert "Exception" not in result.err


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    capture = capture_in(tmp_path)
    asked = ("report", "latency", capture, "--engine", "spark")
    result = rmqtool(*asked, PATH=str(tmp_path), JAVA_HOME="")
    assert result.status == 1
    lines = result.err.strip().splitlines()
    assert lines[0] == "rmqtool: Spark needs Java, and java is not on PATH"
    assert "apt install openjdk-17-jre-headless" in lines[1]
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    (old / "bin" / "java").write_text("#!/bin/sh\n")
    (old / "bin" / "java").chmod(0o755)
    (old / "release").write_text('JAVA_VERSION="11.0.2"\n')
    result = rmqtool(*asked, JAVA_HOME=str(old))
    assert "needs Java 17 or newer" in result.err
    assert "11.0.2" in result.err


def test_lines_show_the_unknown_as_a_dash() -> None:
    lines = report_lines([fakes.result()], Terminal(False, UNLIMITED, False))
    (silent,) = [line for line in lines if line.startswith("silent")]
    assert silent.split() == ["silent", *["-"] * 7]
    assert "Network: not in the input" in lines
    assert all(line.isprintable() for line in lines)
    assert any("\\u202eevil" in line for line in lines)


def test_lines_fit_a_terminal() -> None:
    for width in (60, 80, 120):
        lines = report_lines([fakes.result()], Terminal(True, width, False))
        assert max(map(len, lines)) <= width
        rows = [line for line in lines if line.startswith("silent")]
        assert rows
        assert len(rows[0]) <= width


def test_a_number_or_a_time_is_whole_or_not_shown() -> None:
    tables = [one.table for one in fakes.result().tables.values()]
    shown = [one for table in tables for one in columns_of(table)]
    assert all(one.least >= one.most for one in shown if one.right)
    times = {one.name for table in tables for one in table.columns if one.type == "time"}
    row = dict.fromkeys(times, datetime(2026, 11, 20, 10, 1, tzinfo=UTC))
    heads = set(map(title_of, times))
    found = [one for one in shown if one.title in heads]
    assert found
    assert all(len(one.cell(row)) <= one.least for one in found)


def test_json_has_rows_and_their_documentation() -> None:
    whole = json.loads(b"".join(json_of([fakes.result()], ABOUT)))
    assert whole["format"] == "rmqtool-report"
    assert whole["chosen"] == {"where": "topic == Orders"}
    (report,) = whole["reports"]
    assert report["unknown"] == ["network"]
    table = report["tables"]["brokers"]
    assert table["rows"][0]["first_time"] == "2026-11-20T10:00:00.000000Z"
    assert table["rows"][-1] == {**dict.fromkeys(table["rows"][0]), "broker": "silent"}
    assert table["columns"][2] == {
        "name": "p99_us",
        "type": "int",
        "unit": "µs",
        "meaning": "how long",
    }


def test_csv_runs_nothing() -> None:
    text = csv_of(fakes.brokers()).decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][0] == "broker"
    assert rows[4][0] == "'=cmd|' /C calc'!A0"
    assert rows[-1] == ["silent", *[""] * 7]
    assert all(cell.isprintable() for row in rows for cell in row)


def test_parquet_has_its_documentation() -> None:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(parquet_of(fakes.brokers())))
    assert table.schema.field("p99_us").metadata == {
        b"unit": "µs".encode(),
        b"meaning": b"how long",
    }
    assert table.num_rows == len(fakes.EVIL) + 1


def test_a_folder_has_all_forms_and_is_replaced_only_as_asked(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    request = ReportRequest(reports=("latency",), inputs=["in"], output=str(folder))
    (said,) = write_report(request, [fakes.result()], [])
    names = {file.name for file in folder.iterdir() if not file.name.startswith(".")}
    assert {"report.html", "report.json", "brokers.csv", "brokers.parquet"} <= names
    assert f"{len(names)} files" in said
    capture = capture_in(tmp_path)
    assert "--force replaces it" in rmqtool("report", capture, "-o", folder).err
    (folder / "notes.txt").write_text("mine")
    assert "notes.txt was not written" in rmqtool("report", capture, "-o", folder, "--force").err
    (folder / "notes.txt").unlink()
    (folder / MARKER).unlink()
    assert "is not a report" in rmqtool("report", capture, "-o", folder, "--force").err
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".out")]


def test_a_folder_is_no_text_and_its_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    text = rmqtool("report", capture_in(tmp_path), "-T", "table", "-o", tmp_path / "out")
    assert (text.status, text.out) == (2, "")
    assert text.err.startswith(f"rmqtool: --format table: {tmp_path / 'out'} is a folder; ")
    request = ReportRequest(
        reports=("latency",),
        inputs=["in"],
        format=ReportFormat.json,
        output=str(tmp_path / "out"),
        force=True,
    )
    (said,) = write_report(request, [fakes.result()], [])
    assert said == f"1 file → {tmp_path / 'out'}/ (report.json)"


def test_one_file_of_a_form(tmp_path: Path) -> None:
    for name, form in (
        ("a.html", ReportFormat.html),
        ("a.json", ReportFormat.json),
        ("a.txt", ReportFormat.table),
    ):
        request = ReportRequest(
            reports=("latency",), inputs=["in"], format=form, output=str(tmp_path / name)
        )
        assert write_report(request, [fakes.result()], [])
        assert (tmp_path / name).stat().st_size > 500


def test_shares_and_titles() -> None:
    shares = [percentage(part) for part in (0, 0.0004, 0.5, 0.9999, 1, 1.5)]
    assert shares == ["0%", "<0.1%", "50.0%", "99.9%", "100%", "150.0%"]
    names = ("p999_us", "gap_bytes", "no_response", "p50_us_before", "p999_us_change", "us_states")
    assert title_of("broker_us") == "BROKER TIME"
    assert [title_of(name) for name in names] == [
        "P99.9",
        "GAP",
        "NO RESPONSE",
        "P50 BEFORE",
        "P99.9 CHANGE",
        "US STATES",
    ]


def test_what_is_no_master_is_said_before_java_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # nothing there: to start it would be said
    result = rmqtool("report", capture_in(tmp_path), "--master", "bogus")
    assert result.status == ExitStatus.USAGE
    assert "--master: 'bogus' is not a Spark master" in result.err
    assert "JAVA_HOME" not in result.err


@pytest.mark.slow
def test_a_capture_becomes_tables_quietly(tmp_path: Path) -> None:
    capture = capture_in(tmp_path)
    result = process("report", "latency", "overview", capture, "--format", "json")
    said = [line for line in result.err.splitlines() if not line.startswith(LOG_MARK)]
    assert said == [], "nothing of Spark"
    assert result.status == 0
    latency, overview = json.loads(result.out)["reports"]
    operations = {row["operation"]: row for row in latency["tables"]["operations"]["rows"]}
    assert operations["SEND_MESSAGE_V2"]["exchanges"] == 2
    assert operations["SEND_MESSAGE_V2"]["failed"] == 1
    (error,) = [row for row in overview["tables"]["errors"]["rows"] if row["code"] == 2]
    assert error["response"] == "SYSTEM_BUSY"
    assert error["remark"].startswith("[TIMEOUT_CLEAN_QUEUE]")
    assert error["alike"].startswith("[TIMEOUT_CLEAN_QUEUE]")
    (missing,) = [row for row in overview["tables"]["errors"]["rows"] if row["code"] == 3]
    assert missing["remark"] == missing["alike"] == "not supported"


@pytest.mark.slow
def test_an_input_whose_name_is_not_utf8(tmp_path: Path) -> None:
    capture = tmp_path / os.fsdecode(b"a\xff.pcap")
    capture.write_bytes(capture_in(tmp_path).read_bytes())
    done = rmqtool("report", "quality", capture, "-T", "json", "--cells", tmp_path / "cells")
    assert done.status == 0, done.err
    shown = json.loads(done.out)
    (row,) = shown["reports"][0]["tables"]["quality_exchanges"]["rows"]
    assert shown["inputs"] == [row["source"]] == [str(tmp_path / "a?.pcap")]
    merged = rmqtool("report", "quality", tmp_path / "cells", "-T", "json")
    assert json.loads(merged.out)["reports"][0]["tables"]["quality_exchanges"]["rows"] == [row]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_rows_need_a_name_in_utf8(suffix: str, tmp_path: Path) -> None:
    rows = tmp_path / os.fsdecode(b"a\xff." + suffix.encode())
    assert rmqtool("decode", "pcap", capture_in(tmp_path), "-T", suffix, "-o", rows).status == 0
    done = rmqtool("report", "quality", rows)
    assert done.status == 1
    assert "the name is not UTF-8\n  rename it" in done.err


def test_the_numbers_of_before_stand_beside_those_of_now() -> None:
    """Those of now are the report of now, those of before the report of before."""
    now, before = SAMPLES / "fault-kill-5x.pcap", SAMPLES / "fault-kill-4x.pcap"
    asked = ("report", "latency", "--table", "latency_brokers", "--format", "json")
    (compared,) = json.loads(rmqtool(*asked, now, "--compare", before).out)["reports"]
    rows = {row["broker"]: row for row in compared["tables"]["latency_brokers"]["rows"]}
    for capture, end in ((now, ""), (before, "_before")):
        (alone,) = json.loads(rmqtool(*asked, capture).out)["reports"]
        for row in alone["tables"]["latency_brokers"]["rows"]:
            for name in ("exchanges", "failed", "p50_us", "p99_us", "max_us"):
                assert rows[row["broker"]][name + end] == row[name]
    for row in rows.values():
        if row["p50_us"] is not None and row["p50_us_before"]:
            grown = (row["p50_us"] - row["p50_us_before"]) / row["p50_us_before"]
            assert row["p50_us_change"] == pytest.approx(grown)


def test_a_split_compares_both_parts_of_an_input() -> None:
    capture, at = SAMPLES / "fault-slow-5x.pcap", "2026-11-21T02:47:22Z"
    asked = ("report", "latency", "--table", "latency_brokers", "--format", "json", capture)
    (found,) = json.loads(rmqtool(*asked, "--split", at).out)["reports"]
    rows = {row["broker"]: row for row in found["tables"]["latency_brokers"]["rows"]}
    for option, end in (("--since", ""), ("--until", "_before")):
        (alone,) = json.loads(rmqtool(*asked, option, at).out)["reports"]
        for row in alone["tables"]["latency_brokers"]["rows"]:
            assert rows[row["broker"]][f"exchanges{end}"] == row["exchanges"]
            assert rows[row["broker"]][f"p99_us{end}"] == row["p99_us"]
    shown = rmqtool("report", "latency", "--table", "latency_brokers", capture, "--split", at).out
    heads, first = shown.splitlines()[3:5]
    for name, text in (("EXCHANGES BEFORE", "18"), ("P50 BEFORE", "1.91 ms")):
        end = heads.index(name) + len(name)
        assert first[:end].endswith(text)
    refused = rmqtool(*asked, "--split", at, "--compare", capture)
    assert "--split: cannot be combined with --compare" in refused.err


@pytest.mark.parametrize("text", ["0ms", "50ms,", "50ms,100%", "50ms,0%", "50ms,99", "x"])
def test_what_is_no_objective_is_said(text: str) -> None:
    found = rmqtool("report", "latency", SAMPLES / "fault-slow-5x.pcap", "--slo", text)
    assert found.status == 2
    assert found.err.startswith("rmqtool: --slo: ")


@pytest.mark.parametrize("part", ["exchanges/part-00000.parquet", "conversations.parquet"])
def test_damage_inside_a_parquet_file_is_one_message(tmp_path: Path, part: str) -> None:
    """In its pages; the end of the file, and so its schema, is whole."""
    log = tmp_path / "log"
    rmqtool(
        "decode", "pcap", SAMPLES / "fault-kill-5x.pcap", "--format", "parquet", "-o", log, "-q"
    )
    data = bytearray((log / part).read_bytes())
    data[len(data) // 20 : len(data) // 10] = bytes(
        value ^ 0x5A for value in data[len(data) // 20 : len(data) // 10]
    )
    (log / part).write_bytes(data)
    result = rmqtool("report", "latency", "retries", log, "-q", "--format", "json")
    assert result.status == 1
    assert result.out == ""
    assert f"{part}: the Parquet file is damaged" in result.err
    assert "Exception" not in result.err
    assert "\tat " not in result.err


def test_an_empty_capture_says_so(tmp_path: Path) -> None:
    capture = tmp_path / "empty.pcap"
    capture.write_bytes(capture_in(tmp_path).read_bytes()[:24])
    result = rmqtool("report", "latency", capture)
    assert result.status == 1
    assert result.err.splitlines()[0] == "rmqtool: no exchanges in the input"
    assert "Exception" not in result.err


def test_engines_are_chosen(tmp_path: Path) -> None:
    """Without Java, small inputs are reported; what is for Spark is not for the local engine."""
    capture = capture_in(tmp_path)
    log = tmp_path / "log"
    rmqtool("decode", "pcap", capture, "--format", "parquet", "-o", log, "-q")
    asked = ("latency", "--table", "operations", "--format", "csv", "-q")
    lines = {rmqtool("report", *asked, one).out for one in (capture, log)}
    lines.add(rmqtool("report", *asked, capture, "--engine", "local").out)
    assert len(lines) == 1
    assert "SEND_MESSAGE_V2" in lines.pop()
    refused = rmqtool("report", capture, "--engine", "local", "--memory", "1g")
    assert refused.status == ExitStatus.USAGE
    assert "--memory: needs Spark" in refused.err
    refused = rmqtool("report", "hdfs://nowhere/log", "--engine", "local")
    assert refused.status == ExitStatus.FAILURE
    assert "hdfs://nowhere/log needs Spark" in refused.err


@pytest.mark.slow
def test_a_report_says_nothing_on_standard_error(tmp_path: Path) -> None:
    result = process("report", "-q", capture_in(tmp_path), "-o", tmp_path / "page.html")
    assert (result.status, result.out, result.err) == (0, "", "")


@needs_java
@pytest.mark.spark
def test_spark_speaks_with_v_only(tmp_path: Path) -> None:
    capture = capture_in(tmp_path)
    asked = ("--engine", "spark", "--verbose", "--table", "operations")
    result = process("report", "latency", capture, *asked)
    assert result.status == 0
    assert "Spark" in result.err or "WARN" in result.err
    assert "SEND_MESSAGE_V2" in result.out


def test_the_list_of_reports_goes_into_a_file(tmp_path: Path) -> None:
    shown = rmqtool("report", "--list").out
    assert "operations" in shown
    listed = tmp_path / "reports.txt"
    assert rmqtool("report", "--list", "-o", listed) == (0, "", "")
    assert listed.read_text().split() == shown.split()
    assert rmqtool("report", "--list", "-o", listed).status == 2
    some = rmqtool("report", "quality", "latency", "quality", "--list").out
    assert [line.split(":")[0] for line in some.splitlines() if line[0] != " "] == [
        "quality",
        "latency",
    ]
    assert rmqtool("report", "all", "--list").out == shown
    for words, said in ((("x.pcap",), "--list: x.pcap is not"), (("--table", "T"), "--table: ")):
        refused = rmqtool("report", "--list", *words)
        assert (refused.status, refused.out) == (2, "")
        assert refused.err.startswith(f"rmqtool: {said}")


# -- tables for files, Ctrl-C ----------------------------------------------------------------------


def test_a_table_for_files_is_shown_if_it_is_named() -> None:
    capture = SAMPLES / "fault-slow-5x.pcap"
    shown = rmqtool("report", "latency", capture, "--table", "latency_heat", "-q")
    assert shown.status == 0
    assert "Latency heatmap\nWINDOW START" in shown.out
    assert "Latency heatmap" not in rmqtool("report", "latency", capture, "-q").out


@pytest.mark.parametrize(
    ("raised", "status", "says"),
    [
        (RuntimeError("Query interrupted"), 130, "rmqtool: interrupted\n"),
        (ValueError("Invalid Input Error: … failed: KeyboardInterrupt"), 130, "interrupted"),
        (ValueError("no such column"), 1, "DuckDB could not finish: no such column"),
    ],
)
def test_what_ends_a_query(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, status: int, says: str
) -> None:

    def translated(*_: object) -> str:
        raise raised

    monkeypatch.setattr("analytics.sql.local.for_duckdb", translated)
    done = rmqtool("report", "latency", SAMPLES / "fault-slow-5x.pcap", "-q")
    assert done.status == status
    assert says in done.err


def test_a_ctrl_c_while_duckdb_is_loaded_leaves_no_notices() -> None:
    code = (
        "import sys, signal\n"
        "import _duckdb  # what a Ctrl-C in the middle of `import duckdb` leaves behind\n"
        "sys.argv = ['rmqtool', '--version']\n"
        "from rmqtool.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
