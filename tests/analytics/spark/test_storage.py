"""Reports of what only Spark reaches: a real HDFS, an S3 server, a table of Iceberg."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.analytics.spark.servers import waited_for
from tests.cluster.clients.clients import fetch_python
from tests.cluster.servers.artifacts import LOCKS, Unavailable, fetch
from tests.rmqtool.command import process, rmqtool

from .reported import Tables, tables_in

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]
SAMPLES = Path(__file__).resolve().parents[3] / "samples"
FIRST, SECOND = SAMPLES / "push-orderly-5x.pcap", SAMPLES / "send-batch-4x.pcap"
TABLES = ("topics", "operations", "latency")
CHOSEN = [part for name in TABLES for part in ("--table", name)]
NOWHERE = "127.0.0.1:1"


def jars(name: str) -> str:
    """Return the jars of a lock, for `spark.jars`; skip where they cannot be had."""
    try:
        return ",".join(sorted(map(str, fetch(name).glob("*.jar"))))
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `captures/`, a log of them, and a log that is partitioned by day."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "captures").mkdir()
    for name, capture in (("a.pcap", FIRST), ("b.pcap", SECOND)):
        shutil.copy(capture, folder / "captures" / name)
    for name, more in (("log", ()), ("days", ("--partition", "date"))):
        options = ("-T", "parquet", "-q", "-o", folder / name, *more)
        assert rmqtool("decode", "pcap", folder / "captures", *options).status == 0
    return folder


def reported(name: object, *options: str, **environment: str) -> Tables:
    tables = tables_in(
        process(
            *("report", "overview", "latency", *CHOSEN, name, "-T", "json", "-q", *options),
            **environment,
        )
    )
    return {
        table: [{k: v for k, v in row.items() if k != "source"} for row in tables[table]]
        for table in TABLES
    }


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """Give the URL of a NameNode on loopback with one DataNode."""
    minicluster = jars("hadoop-minicluster-3.4.2")
    site = {
        "fs.defaultFS": "hdfs://127.0.0.1:0",
        "hadoop.tmp.dir": str(folder / "data"),
        "dfs.replication": "1",
        "dfs.namenode.http-address": "127.0.0.1:0",
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
    }
    class_path = f"{folder}:{minicluster}:{Path(pyspark.__file__).parent}/jars/*"
    java = ["java", "-Xmx256m", "-cp", class_path]
    server = "org.apache.hadoop.hdfs.server"
    started = []

    def written() -> None:
        rows = (
            f"<property><name>{name}</name><value>{value}</value></property>"
            for name, value in site.items()
        )
        (folder / "core-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")

    def start(name: str) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            started.append(subprocess.Popen([*java, f"{server}.{name}"], stdout=out, stderr=out))
        return log

    (folder / "log4j2.properties").write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    java.insert(1, f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}")
    try:
        written()
        options = ("-format", "-nonInteractive")
        subprocess.run(
            [*java, f"{server}.namenode.NameNode", *options], capture_output=True, check=True
        )
        port = waited_for(start("namenode.NameNode"), r"NameNode RPC up at: \S+?:(\d+)")
        site["fs.defaultFS"] = url = f"hdfs://127.0.0.1:{port}"
        written()
        waited_for(start("datanode.DataNode"), r"Successfully sent block report")
        put = [*java, "org.apache.hadoop.fs.FsShell", "-put"]

        def copied(source: Path) -> None:
            subprocess.run([*put, str(source), "/"], capture_output=True, check=True)

        copied(folder / "given")
        yield f"{url}/given"
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait()


def test_hdfs(inputs: Path, tmp_path: Path) -> None:
    expected = reported(inputs / "captures")
    assert expected["topics"]
    shutil.copytree(inputs, tmp_path / "given")
    with hdfs(tmp_path) as url:
        for name in ("captures", "log", "days"):
            assert reported(f"{url}/{name}", "--master", "local[2]") == expected, name
        missing = process("report", f"{url}/nowhere", "-q")
        assert missing.status == 1
        assert f"{url}/nowhere: no such file or folder" in missing.err
        assert "Traceback" not in missing.err
    dead = process("report", url, "-q")
    assert "the NameNode" in dead.err
    assert "does not answer" in dead.err


@contextmanager
def s3(packages: Path, log: Path) -> Iterator[str]:
    """Give the URL of an S3 server on loopback."""
    program = (
        "from moto.server import ThreadedMotoServer as S; s = S('127.0.0.1', 0); s.start();"
        " print('at', s.get_host_and_port()[1], flush=True); import time; time.sleep(3600)"
    )
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=out,
            stderr=out,
            env=os.environ | {"PYTHONPATH": str(packages)},
        )
    try:
        yield f"http://127.0.0.1:{waited_for(log, r'at ([0-9]+)')}"
    finally:
        server.terminate()
        server.wait()


def put(url: str, data: bytes = b"") -> None:
    # without a type of their own, they would be read as a form
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data=data, method="PUT", headers=headers)
    with urllib.request.urlopen(request, timeout=60):
        pass


def test_s3(inputs: Path, tmp_path: Path) -> None:
    connector = jars("hadoop-aws-3.4.2")
    try:
        packages = fetch_python(LOCKS / "moto.txt")
    except Unavailable as error:
        pytest.skip(str(error))
    expected = reported(inputs / "captures")
    keys = {"AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "s3cret-value", "AWS_REGION": "x"}
    with s3(packages, tmp_path / "log") as url:
        put(f"{url}/bucket")
        for file in filter(Path.is_file, inputs.rglob("*")):
            put(f"{url}/bucket/{file.relative_to(inputs)}", file.read_bytes())

        def options(endpoint: str) -> list[str]:
            store = (f"endpoint={endpoint}", "path.style.access=true")
            conf = [f"spark.jars={connector}", *(f"spark.hadoop.fs.s3a.{one}" for one in store)]
            return ["--master", "local[2]", *(part for one in conf for part in ("--conf", one))]

        for name in ("captures", "log", "days"):
            assert reported(f"s3a://bucket/{name}/", *options(url), **keys) == expected, name
        env = keys
        later = process(
            "report", "s3a://bucket/days", "--since", "2100-01-01", "-q", *options(url), **env
        )
        assert "no exchange since 2100-01-01" in later.err
        bucket = process("report", "s3a://other/log", "-q", *options(url), **env)
        assert "S3 has no bucket other" in bucket.err
        dead = process("report", "s3a://bucket/log", "-q", *options(f"http://{NOWHERE}"), **env)
        assert "the S3 endpoint does not answer" in dead.err
        assert "s3cret" not in later.err + bucket.err + dead.err
    without = process("report", "s3a://bucket/log", "-q")
    assert "Spark has no connector for s3a://" in without.err
    assert "org.apache.hadoop:hadoop-aws" in without.err


_WRITTEN = """
import sys
from pyspark.sql import SparkSession

log, *settings = sys.argv[1:]
builder = SparkSession.builder.master("local[1]")
for one in settings:
    builder.config(*one.split("=", 1))
rows = builder.getOrCreate().read.parquet(log)
rows.drop("outcome_class").writeTo("lake.mq.exchanges").create()
rows.select("topic").writeTo("lake.mq.topics").create()
"""


def test_a_table_of_iceberg(inputs: Path, tmp_path: Path) -> None:
    settings = [
        f"spark.jars={jars('iceberg-1.11.0')}",
        "spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type=hadoop",
        f"spark.sql.catalog.lake.warehouse={tmp_path}",
    ]
    written = [sys.executable, "-c", _WRITTEN, str(inputs / "log/exchanges"), *settings]
    subprocess.run(written, check=True, capture_output=True)
    options = [part for one in settings for part in ("--conf", one)]
    (parquet,) = (inputs / "log/exchanges").iterdir()
    expected = reported(parquet)
    assert expected["operations"]
    assert reported("table:lake.mq.exchanges", *options) == expected
    other = process("report", "table:lake.mq.topics", "-q", *options)
    assert "table:lake.mq.topics has no exchanges" in other.err
    unknown = process("report", "table:lake.mq.nothing", "-q", *options)
    assert "there is no table lake.mq.nothing" in unknown.err
    catalog = process("report", "table:lake.mq.exchanges", "-q")
    assert "there is no catalog lake" in catalog.err
