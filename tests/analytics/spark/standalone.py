"""A standalone Spark cluster on loopback, started from PySpark's own jars."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.analytics.spark.servers import (
    QUICK_JAVA,
    SPARK_SCRIPTS,
    logging_to_output,
    waited_for,
)

ROOT = Path(__file__).resolve().parents[3]
SPARK_CLASS = SPARK_SCRIPTS / "spark-class"
_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def standalone_cluster(folder: Path, memory: str = "1g") -> Iterator[str]:
    """Give the URL of a master that has two workers of one core; `memory`: of each."""
    processes = []
    try:
        log = folder / "master.log"
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        processes.append(_start(["master.Master", *ports], log, folder))
        url = waited_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in range(2):
            worker = ["worker.Worker", "--cores", "1", "--memory", memory, "--host", "127.0.0.1"]
            work = folder / f"work{number}"
            more = ["--webui-port", "0", "--work-dir", str(work), url]
            processes.append(_start([*worker, *more], folder / f"worker{number}.log", folder))
        for number in range(2):
            waited_for(folder / f"worker{number}.log", r"Successfully registered with master")
        yield url
    finally:
        for one in processes:
            one.terminate()
        for one in processes:
            one.wait()


def _start(arguments: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    name, *rest = arguments
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{logging_to_output(folder)} {QUICK_JAVA}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(SPARK_CLASS), f"{_DEPLOY}.{name}", *rest], stdout=out, stderr=out, env=environment
        )
