"""What is said of a Spark Connect server, and what its workers are given, without a server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from analytics.errors import ReportError, reason_of
from analytics.spark.connect import RunningTasks, connected
from analytics.spark.master import check_master, shown_master, why_no_master
from analytics.spark.workers import PACKAGES, archive_of, sources_digest
from tests.rmqtool.command import rmqtool

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "url",
    [
        "sc://127.0.0.1:1/;token=secret",
        "sc://user:secret@127.0.0.1:1",
        "sc://127.0.0.1:1;x-key=secret",
        "sc://127.0.0.1:1?secret",
    ],
)
def test_no_message_has_what_is_secret(url: str) -> None:
    assert shown_master(url) == "sc://127.0.0.1:1"
    with pytest.raises(ReportError) as raised:
        check_master(url)
    assert raised.value.message == (
        "the Spark Connect server sc://127.0.0.1:1 cannot be reached: connection refused"
    )


@pytest.mark.parametrize("url", ["sc://", "sc:///;token=secret", "sc://host:99999", "sc://::1"])
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(ReportError, match="is not an address of a Spark Connect server") as raised:
        check_master(url)
    assert "secret" not in raised.value.message


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[4]", "local[*, 2]", "local[8,1]", "local-cluster[2,1,1024]"),
        *("yarn", "k8s://https://host:443", "spark://a:7077,b:7077", "sc://host"),
    ],
)
def test_what_spark_takes_as_a_master_is_one(master: str) -> None:
    assert why_no_master(master) == ""


@pytest.mark.parametrize(
    "master", ["", "bogus", "local[0]", "local[", "localhost", "spark", "http://host", "sail"]
)
def test_what_is_no_master_is_said_before_anything_is_asked(master: str) -> None:
    with pytest.raises(ReportError, match=r"is not a Spark master; use local\[\*\]"):
        check_master(master)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "session_id=1b671a64-40d5-491e-99b0-da01ff1f3341",
            "names a session, but",
        ),
        ("to ken=se;cret", "is followed by text that is not a connection parameter"),
        ("session_id=secret", "is followed by text that is not a connection parameter"),
    ],
)
def test_what_follows_an_address_is_checked_before_it_is_used(more: str, said: str) -> None:
    pytest.importorskip("grpc_status")
    with pytest.raises(ReportError, match=said) as raised:
        connected(f"sc://127.0.0.1:1/;{more}", {}, {})
    assert "cret" not in raised.value.message


def test_a_server_has_memory_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(b"")
    result = rmqtool("report", tmp_path / "x.pcap", "--master", "sc://h", "--memory", "1g")
    assert result.status == 2
    assert "--memory" in result.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
            '\tdetails = "failed to connect to all addresses; last error: UNKNOWN: x"\n',
            "the Spark Connect server does not answer: failed to connect to all addresses; last"
            " error: UNKNOWN: x",
        ),
        (
            '<_MultiThreadedRendezvous\n\tstatus = StatusCode.UNAUTHENTICATED\n\tdetails = "no"\n>',
            "the Spark Connect server refuses the connection: no",
        ),
        (
            "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in"
            " worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run",
            "Spark's workers run Python 3.12, this is Python 3.11",
        ),
        (
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'msgspec'\n",
            "the Python of Spark's workers has no msgspec",
        ),
    ],
)
def test_what_went_wrong_elsewhere_is_one_line(text: str, message: str) -> None:
    assert reason_of(Exception(text)).message == message


class _Stage:
    def __init__(self, tasks: int, completed: int, done: bool) -> None:
        self.num_tasks, self.num_completed_tasks, self.done = tasks, completed, done


def test_tasks_are_those_of_stages_that_run() -> None:
    running = RunningTasks()
    stages = [_Stage(4, 4, True), _Stage(8, 3, False), _Stage(2, 0, False)]
    running(stages, 2, "query", False)  # type: ignore[arg-type]
    assert running.count == (3, 10)
    running(stages, 0, "query", True)  # type: ignore[arg-type]
    assert running.count == (0, 0)


def test_the_same_sources_are_known_wherever_they_are(tmp_path: Path) -> None:
    archive_of(ROOT, tmp_path / "modules.zip")
    shutil.unpack_archive(tmp_path / "modules.zip", tmp_path / "there")
    assert {file.name for file in (tmp_path / "there").iterdir()} == set(PACKAGES)
    digest = sources_digest()
    assert digest(str(tmp_path / "there")) == digest(str(ROOT))
    (tmp_path / "there" / "analytics" / "report.py").write_text("")
    assert digest(str(tmp_path / "there")) != digest(str(ROOT))
