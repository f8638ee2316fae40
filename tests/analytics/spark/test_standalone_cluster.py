"""The same tables from a standalone master with two workers, started from PySpark's own jars."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analytics.pcaps import rotated
from tests.analytics.spark.servers import QUICK_JAVA
from tests.analytics.spark.standalone import SPARK_CLASS, standalone_cluster
from tests.rmqtool.command import process

from .reported import CAPTURE, Tables, tables_in

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]
ROOT = Path(__file__).resolve().parents[3]
TABLES = (
    *("latency", "latency_network", "retry_totals", "isolation_windows", "errors", "findings"),
    *("delivery_groups", "consumer_members"),
)
_PLACES = ("capture", "packet", "source")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master on loopback that has two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("spark")) as url:
        yield url


_TOLD = """
import os, sys
from analytics.spark.session import SessionOptions, start_session

master, archives, python = sys.argv[1:]
settings = {"spark.archives": archives, "spark.pyspark.python": python}
settings["spark.executor.memory"] = "512m"
session = start_session(SessionOptions(master, memory="512m", settings=settings))

def told(batches):
    import pyarrow
    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"env": [os.environ["RMQTOOL_TEST_ENV"]]})

print(session.spark.range(1).coalesce(1).mapInArrow(told, "env string").first()[0])
session.stop()
"""


def without_places(tables: Tables) -> Tables:
    """Return the tables without places to look up."""
    return {
        name: [
            {k: v for k, v in row.items() if not any(place in k for place in _PLACES)}
            for row in tables[name]
        ]
        for name in TABLES
    }


def test_a_cluster_gives_the_same_tables(master: str, tmp_path: Path, tables_here: Tables) -> None:
    files = rotated(CAPTURE, tmp_path, 2)
    here = without_places(tables_here)
    assert here["latency"]
    chosen = [part for name in TABLES for part in ("--table", name)]
    small = (
        "spark.executor.memory=512m",
        f"spark.executor.extraJavaOptions={QUICK_JAVA}",
    )
    settings = [part for setting in small for part in ("--conf", setting)]
    asked = ("report", *files, *chosen, "--format", "json", "-q", "--master", master, *settings)
    assert without_places(tables_in(process(*asked, JAVA_TOOL_OPTIONS=QUICK_JAVA))) == here


def test_a_worker_that_is_killed_changes_nothing(master: str, tmp_path: Path) -> None:
    """What it has decoded is lost with it, and decoded again by the other one."""
    files = rotated(CAPTURE, tmp_path, 3)
    command = [sys.executable, "-m", "tests.analytics.spark.lose_executor", master]
    ended = subprocess.run(
        [*command, tmp_path / "killed", *files],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": QUICK_JAVA},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    killed, alone = map(json.loads, ended.stdout.splitlines()[-2:])
    assert (tmp_path / "killed").exists()
    assert killed == alone
    assert [one[0] for one in alone] == ["conversations", "exchanges", "findings"]


def test_a_job_by_spark_submit_writes_the_same_tables(tmp_path: Path, tables_here: Tables) -> None:
    output = tmp_path / "tables"
    command = [str(SPARK_CLASS.with_name("spark-submit")), "--master", "local[2]"]
    command += ["--driver-java-options", QUICK_JAVA]
    command += [
        str(ROOT / "rmqtool" / "report" / "job.py"),
        "retries",
        str(CAPTURE),
        "-o",
        str(output),
    ]
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [*command, "--format", "json"],
        capture_output=True,
        text=True,
        env=os.environ | environment | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    names = ("retry_totals", "retry_causes", "retry_messages")
    for name in names:
        (file,) = (output / name).glob("part-*.json")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        expected = tables_here[name]
        assert len(rows) == len(expected) > 0
        for row, one in zip(rows, expected, strict=True):
            for column, value in one.items():
                if isinstance(value, str | int) and column not in (
                    "begin",
                    "first_time",
                    "last_time",
                ):
                    assert row[column] == value


def test_a_master_that_is_not_there_is_one_line() -> None:
    result = process(
        "report", "latency", CAPTURE, "--master", "spark://127.0.0.1:1", "-q",
        "--conf", "spark.cores.max=1",
    )  # fmt: skip
    assert result.status == 1
    assert "cannot be reached" in result.err
    assert "Exception" not in result.err


def test_workers_are_the_python_of_an_archive(master: str, tmp_path: Path) -> None:
    """`spark.archives` brings an environment, `spark.pyspark.python` names the Python in it."""
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nRMQTOOL_TEST_ENV="$0" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    archive = shutil.make_archive(str(tmp_path / "env"), "gztar", tmp_path / "env")
    command = [sys.executable, "-c", _TOLD, master, f"{archive}#env", "./env/bin/python"]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": QUICK_JAVA},
        check=False,
    )
    assert ended.stdout.splitlines()[-1:] == ["./env/bin/python"], ended.stderr[-2000:]
