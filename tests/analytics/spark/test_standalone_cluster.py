"""The same tables from a standalone master with two workers, started from PySpark's own jars."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.analytics.pcaps import rotated
from tests.rmqtool.command import Result, process

pyspark = pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]
ROOT = Path(__file__).resolve().parents[3]
CAPTURE = ROOT / "samples" / "fault-kill-5x.pcap"
TABLES = (
    *("latency", "latency_network", "retry_totals", "isolation_windows", "errors", "findings"),
    *("delivery_groups", "consumer_members"),
)
_SPARK = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_PATIENCE = 120
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java that starts with less work"""
_PLACES = ("capture", "packet", "source")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master on loopback that has two workers."""
    folder = tmp_path_factory.mktemp("spark")
    processes = []
    try:
        log = folder / "master.log"
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        processes.append(_start(["master.Master", *ports], log, folder))
        url = _waited_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in range(2):
            worker = ["worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1"]
            work = folder / f"work{number}"
            more = ["--webui-port", "0", "--work-dir", str(work), url]
            processes.append(_start([*worker, *more], folder / f"worker{number}.log", folder))
        for number in range(2):
            _waited_for(folder / f"worker{number}.log", r"Successfully registered with master")
        yield url
    finally:
        for one in processes:
            one.terminate()
        for one in processes:
            one.wait()


def _start(arguments: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    logging = folder / "log4j2.properties"
    logging.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    name, *rest = arguments
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"-Dlog4j2.configurationFile={logging} {_QUICK}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(_SPARK), f"{_DEPLOY}.{name}", *rest], stdout=out, stderr=out, env=environment
        )


def _waited_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[found.lastindex or 0]
        time.sleep(0.3)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


def tables_of(
    run: Callable[..., Result], *arguments: str | Path
) -> dict[str, list[dict[str, object]]]:
    """Return the tables of a report without places to look up."""
    chosen = [part for name in TABLES for part in ("--table", name)]
    result = run("report", *arguments, *chosen, "--format", "json", "-q")
    assert result.err == ""
    assert result.status == 0
    reports = json.loads(result.out)["reports"]
    return {
        name: [
            {k: v for k, v in row.items() if not any(place in k for place in _PLACES)}
            for row in table["rows"]
        ]
        for report in reports
        for name, table in report["tables"].items()
    }


def test_a_cluster_gives_the_same_tables(
    master: str, tmp_path: Path, rmqtool_here: Callable[..., Result]
) -> None:
    files = rotated(CAPTURE, tmp_path, 2)
    here = tables_of(rmqtool_here, CAPTURE)
    assert set(here) == set(TABLES)
    assert here["latency"]
    small = ("spark.executor.memory=512m", f"spark.executor.extraJavaOptions={_QUICK}")
    settings = [part for setting in small for part in ("--conf", setting)]
    assert tables_of(process, *files, "--master", master, *settings) == here


def test_a_job_by_spark_submit_writes_the_same_tables(
    tmp_path: Path, rmqtool_here: Callable[..., Result]
) -> None:
    """With Spark's own settings, but for the 200 tasks of each step."""
    output = tmp_path / "tables"
    command = [str(_SPARK.with_name("spark-submit")), "--master", "local[2]"]
    command += ["--conf", "spark.sql.shuffle.partitions=2", "--driver-java-options", _QUICK]
    command += [str(ROOT / "analytics" / "job.py"), "retries", str(CAPTURE), "-o", str(output)]
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
    chosen = [part for name in names for part in ("--table", name)]
    said = rmqtool_here("report", CAPTURE, *chosen, "--format", "json", "-q")
    (report,) = json.loads(said.out)["reports"]
    for name in names:
        (file,) = (output / name).glob("part-*.json")
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        expected = report["tables"][name]["rows"]
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
