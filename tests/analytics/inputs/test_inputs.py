"""What an input is; of logs by date or hour, only the parts of the time that is asked for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rmqtool as program
from analytics.inputs.inputs import InputError, inputs_of
from analytics.inputs.window import TimeWindow, time_of
from dissectors.decode.decoded_log import read_manifest
from dissectors.times import moment_of
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = ROOT / "samples"
DAYS = (SAMPLES / "fault-kill-4x.pcap", SAMPLES / "grpc-send-5x.pcap")
"""captures of two days"""
WINDOW = ("--since", "2026-11-23T00:00:00Z", "--until", "2026-11-24T00:00:00Z")
_BY_DATE = ("--partition", "date")
Tables = Mapping[str, Sequence[Mapping[str, object]]]
TABLES = ("latency", "latency_over_time", "latency_network", "unanswered", "clients", "topics")


@pytest.fixture(scope="module", params=["parquet", "jsonl"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log by date to which two runs added a day each."""
    return added_log(tmp_path_factory.mktemp("log") / "log", str(request.param))


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, in Parquet, to be copied."""
    return added_log(tmp_path_factory.mktemp("days") / "log")


@pytest.fixture
def own_log(days: Path, tmp_path: Path) -> Path:
    """A copy of it, for a test that changes it."""
    return shutil.copytree(days, tmp_path / "log")


@pytest.fixture(scope="module")
def of_the_second_day() -> Tables:
    """What a report on the capture of the second day says."""
    return tables_of(DAYS[1])


def added_log(folder: Path, form: str = "parquet") -> Path:
    for capture in DAYS:
        done = rmqtool(*("decode", "pcap", capture, "-T", form), *("-o", folder), *_BY_DATE)
        assert done.status == 0, done.err
    return folder


def tables_of(*arguments: str | Path) -> Tables:
    """Return the tables of a report as rows, whatever the input is called."""
    wanted = [part for name in TABLES for part in ("--table", name)]
    done = rmqtool("report", "latency", "overview", *arguments, *wanted, "-T", "json")
    assert done.status == 0, done.err
    reports = json.loads(done.out)["reports"]
    return {name: one["rows"] for each in reports for name, one in each["tables"].items()}


def test_a_log_of_two_runs_is_what_both_captures_say(log: Path) -> None:
    assert tables_of(log) == tables_of(*_logs_of_days(log.parent))


def _logs_of_days(folder: Path) -> list[Path]:
    logs = []
    for number, capture in enumerate(DAYS):
        logs.append(folder / f"day{number}")
        if not logs[-1].exists():
            rmqtool("decode", "pcap", capture, "-T", "parquet", "-o", logs[-1])
    return logs


def test_a_local_file_has_two_names(log: Path) -> None:
    (entry,) = inputs_of([str(log), f"file://{log}", f"file://{log}/"])
    assert entry.name == str(log)
    (captures,) = inputs_of([f"file://{DAYS[0]}", str(DAYS[0])])
    assert captures.exchanges == (str(DAYS[0]),)


def test_parts_outside_of_the_window_are_not_opened(
    own_log: Path, of_the_second_day: Tables
) -> None:
    log = own_log
    assert tables_of(log, *WINDOW) == of_the_second_day
    others = [path for path in log.rglob("*/date=2026-11-21/*") if path.is_file()]
    assert len(others) == 4
    for path in others:
        path.write_bytes(b"nobody can read this")
    assert tables_of(log, *WINDOW) == of_the_second_day
    said = rmqtool("diagnose", log, *WINDOW)
    assert said.status == 0, said.err
    with pytest.raises(InputError, match=r"date=2026-11-21/part-00000\.parquet is a damaged"):
        inputs_of([str(log)])


def test_parts_of_another_form_are_refused_outside_of_the_window(own_log: Path) -> None:
    manifest = own_log / "manifest.json"
    manifest.write_text(manifest.read_text().replace(".parquet", ".csv"))
    with pytest.raises(InputError, match=r"\.csv is neither Parquet nor JSON lines"):
        inputs_of([str(own_log)], TimeWindow(1 << 62))


@pytest.mark.slow
def test_spark_reads_folders_of_dates_as_the_local_engine(spark: SparkSession, days: Path) -> None:
    from analytics.inputs.source import read_here, read_inputs

    log = days
    window = TimeWindow(None, moment_of("2026-11-22T00:00:00Z").ns)  # type: ignore[union-attr]
    for inputs in (inputs_of([str(log)]), inputs_of([str(log)], window)):
        here, there = read_here(inputs, True).given, read_inputs(spark, inputs, messages=True).given
        for name in ("exchanges", "conversations", "findings", "messages"):
            one, other = getattr(here, name), getattr(there, name)
            assert one.columns == other.columns, name
            found = [
                sorted(map(str, given.kept.rows(relation).to_pylist()))
                for given, relation in ((here, one), (there, other))
            ]
            assert found[0] == found[1], name


def test_a_time_of_day_needs_all_parts() -> None:
    """Whose day it is only rows say."""
    day = moment_of("2026-11-20")
    assert time_of(day, None) == TimeWindow(day.ns if day else None, None)
    assert time_of(day, moment_of("10:00")) == TimeWindow()


def test_programs_read_it(log: Path) -> None:
    capture = program.read(log)
    connections = {row.conversation for row in capture.connections()}
    rows = list(capture.exchanges())
    assert len(rows) == 228
    assert {row.conversation for row in rows} <= connections
    assert len(connections) == len(list(capture.connections()))
    assert [row.time for row in capture.messages()]


def test_days_that_were_removed_are_not_missed(own_log: Path, of_the_second_day: Tables) -> None:
    log = own_log
    for folder in log.glob("*/date=2026-11-21"):
        shutil.rmtree(folder)
    assert tables_of(log) == of_the_second_day
    (part,) = log.glob("exchanges/date=2026-11-23/*")
    part.unlink()
    done = rmqtool("report", "latency", log)
    assert done.status == 1
    assert "is missing from the decoded log" in done.err


@pytest.mark.slow
def test_a_run_that_is_killed_adds_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rmqtool("decode", "pcap", DAYS[0], "-o", log, *_BY_DATE)
    before = tables_of(log)
    command = [*PROGRAM, "decode", "pcap", "-", "-o", str(log), *_BY_DATE]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        run.stdin.write(DAYS[1].read_bytes())
        run.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(log.glob(".rmqtool-*.tmp/exchanges/date=*/*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(run.pid, signal.SIGKILL)
    assert tables_of(log) == before
    done = rmqtool("decode", "pcap", DAYS[1], "-o", log, *_BY_DATE)
    assert done.status == 0, done.err
    assert read_manifest(log).exchanges == 228
    assert not list(log.glob(".rmqtool-*.tmp"))


def test_what_is_added_twice_or_cannot_be_added_is_said(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rmqtool("decode", "pcap", DAYS[0], "-o", log, *_BY_DATE)
    again = rmqtool("decode", "pcap", DAYS[0], "-o", log, *_BY_DATE)
    assert (again.status, again.err) == (
        1,
        f"rmqtool: {DAYS[0]} is in {log} already; leave it out\n",
    )
    for wrong, reason in (
        (("-o", log, "--force"), "--force"),
        (("-o", "-"), "use -o FOLDER"),
        (("-o", log, "-T", "csv"), "supports parquet and jsonl"),
        (("-o", log, "--summary"), "adds exchanges"),
    ):
        done = rmqtool("decode", "pcap", DAYS[1], *_BY_DATE, *wrong)
        assert done.status == 2, done
        assert reason in done.err
