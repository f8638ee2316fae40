"""A store file that somebody made to hold the sandbox: refused, quickly, in little memory."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from replay.sandbox import SandboxError, SandboxOptions, TopicSpec, sandbox_thread
from tests.patience import Stopwatch, wait_for
from tests.rmqtool.command import ROOT

from ..linked_pages import link_pages
from ..talk import Talk, pull_fields, send_fields

TOPIC = "Orders"
ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, 'broker-a' "
    "AS broker, i AS physical_offset, 'T' AS topic, 0 AS queue_id, i AS queue_offset, 0 AS store_ms"
    ", '' AS tag, zeroblob(100000000) AS data FROM n"
)
COLUMNS = (
    "id INTEGER PRIMARY KEY, broker TEXT NOT NULL, physical_offset INTEGER NOT NULL, "
    "topic TEXT NOT NULL, queue_id INTEGER NOT NULL, queue_offset INTEGER NOT NULL, "
    "store_ms INTEGER NOT NULL, tag TEXT NOT NULL, data BLOB NOT NULL"
)
GROWN = COLUMNS.replace("data BLOB NOT NULL", "data AS (zeroblob(1000000000))")
CHECKED = COLUMNS + ", CHECK (length(randomblob(900000000)) > 0)"
HOSTILE = {
    "view": ("DROP TABLE message", f"CREATE VIEW message AS {ENDLESS}"),
    "view beside": (f"CREATE VIEW more AS {ENDLESS}",),
    "generated column": ("DROP TABLE message", f"CREATE TABLE message ({GROWN})"),
    "check": ("DROP TABLE message", f"CREATE TABLE message ({CHECKED})"),
    "column type": ("DROP TABLE message", f"CREATE TABLE message ({COLUMNS.replace('BLOB', '')})"),
    "trigger that drops": (
        "CREATE TRIGGER t AFTER INSERT ON message BEGIN DELETE FROM message; END",
    ),
    "trigger that grows": (
        "CREATE TRIGGER t AFTER INSERT ON state BEGIN INSERT INTO message SELECT NULL, 'x', "
        "random(), 'T', 0, 0, 0, '', zeroblob(1000000) FROM message; END",
    ),
    "another table": ("CREATE TABLE more (x)",),
    "another index": ("CREATE INDEX more ON message (length(data))",),
    "no index": ("DROP INDEX message_offset",),
}


def options(path: Path, **more: object) -> SandboxOptions:
    return SandboxOptions(store=path, topics=[TopicSpec(TOPIC)], **more)  # type: ignore[arg-type]


def filled(path: Path, count: int = 1) -> Path:
    """A store with messages."""
    with sandbox_thread(options(path)) as box, Talk(box.addresses["broker-a"]) as broker:
        for _ in range(count):
            broker.send(310, send_fields(TOPIC), b"x")
        for _ in range(count):
            assert broker.receive().code == 0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def refused(path: Path) -> SandboxError:
    """Why a store is refused; that takes no time."""
    watch = Stopwatch()
    with pytest.raises(SandboxError) as found, sandbox_thread(options(path)):
        pass
    assert watch.seconds < 20
    assert str(path) in str(found.value)
    assert "name another file" in found.value.hint
    return found.value


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_schema_that_is_not_ours_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = filled(tmp_path / "box.db")
    with closing(sqlite3.connect(path)) as connection:
        for statement in HOSTILE[kind]:
            connection.execute(statement)
        connection.execute("PRAGMA journal_mode = DELETE")
    before = path.read_bytes()
    assert "is not a store of a sandbox: " in str(refused(path))
    assert path.read_bytes() == before


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/full"), tmp_path):
        assert "not a regular file" in str(refused(path))


def test_pages_that_refer_to_each_other_do_not_make_it_endless(tmp_path: Path) -> None:
    path = filled(tmp_path / "box.db", 600)
    link_pages(path)
    assert "its pages refer to each other" in str(refused(path))


def test_a_value_over_the_limit_of_a_frame_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path / "box.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE message SET data = zeroblob(20000000)")
        connection.commit()
    assert "too big" in str(refused(path))


def test_a_store_with_more_than_the_limit_is_refused_or_loses_its_oldest(tmp_path: Path) -> None:
    path = filled(tmp_path / "box.db", 100)
    with (
        pytest.raises(SandboxError, match="more messages than broker broker-a may hold") as found,
        sandbox_thread(options(path, store_limit=30_000)),
    ):
        pass
    assert "store_limit" in found.value.hint
    limited = options(path, store_limit=30_000, drop_oldest=True)
    for _ in range(2):
        with sandbox_thread(limited) as box, Talk(box.addresses["broker-a"]) as broker:
            low = int(broker.ask(31, {"topic": TOPIC, "queueId": "0"}).fields["offset"])
            assert low > 30
            assert broker.ask(30, {"topic": TOPIC, "queueId": "0"}).fields["offset"] == "100"
            assert broker.ask(11, pull_fields(TOPIC, 0, low)).code == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM message").fetchone()[0] < 70


@pytest.mark.slow
@pytest.mark.commands
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_broker_that_reads_its_store(tmp_path: Path, number: int) -> None:
    """Shells start programs in the background with SIGINT ignored."""
    path = filled(tmp_path / "box.db", 20_000)
    command = [sys.executable, "-m", "rmqtool", "broker", "--port", "0", "--namesrv-port", "0"]
    process = subprocess.Popen(
        [*command, "--store", str(path), "--quiet"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN) and None,
    )
    try:
        wal = Path(f"{path}-wal")
        wait_for("the store is open", wal.exists)
        time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode in (0, 128 + number), err
    assert b"Traceback" not in err
    assert b"should not have happened" not in err
    assert b"Ctrl-C" not in out or process.returncode in (0, 128 + number)
