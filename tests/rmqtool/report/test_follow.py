"""`rmqtool report --follow`: what arrives is counted once, whenever the program is killed."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

from analytics.cells import CellFolder, read_manifest
from dissectors.foreign import integer_of
from tests.patience import PATIENCE
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool

SAMPLES = ROOT / "samples"
NAMES = ("fault-kill-4x", "busy-overload-4x", "fault-slow-4x", "admin-5x", "fault-kill-5x")
REPORTS = ("latency", "overview")
HANGS = 10 * PATIENCE
"""seconds: each run starts a program that loads its libraries and writes a report"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Decoded logs, which arrive one after the other."""
    folder = tmp_path_factory.mktemp("logs")
    for name in NAMES:
        done = rmqtool(
            *("decode", "pcap", SAMPLES / f"{name}.pcap", "-T", "parquet", "-o", folder / name)
        )
        assert done.status == 0, done.err
    return [folder / name for name in NAMES]


def arrive(log: Path, folder: Path) -> None:
    """Give a log its name in the folder at once."""
    import shutil

    shutil.copytree(log, folder / f".{log.name}")
    (folder / f".{log.name}").rename(folder / log.name)


@contextmanager
def following(folder: Path, state: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*PROGRAM, "report", *REPORTS, "--follow", str(folder), "--cells", str(state)]
    with subprocess.Popen(
        [*command, "-q", *options], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        try:
            yield run
        finally:
            if run.poll() is None:
                run.kill()


def until(holds: Callable[[], bool], run: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + HANGS
    while not holds():
        assert time.monotonic() < deadline
        assert run.poll() is None, run.stderr and run.stderr.read()
        time.sleep(0.02)


def done_in(state: Path) -> set[str]:
    return set(read_manifest(state).done) if (state / "cells.json").exists() else set()


def written_in(state: Path) -> set[str]:
    """Return parts that are being written, or that a killed program left."""
    return {path.name for path in state.glob(".cells-*")}


@contextmanager
def interrupted_when(holds: Callable[[], bool]) -> Iterator[None]:
    """Send this process the signal of Ctrl-C once a condition holds."""
    ended = threading.Event()

    def wait() -> None:
        while not ended.wait(0.02):
            if holds():
                os.kill(os.getpid(), signal.SIGINT)
                return

    waiting = threading.Thread(target=wait)
    waiting.start()
    try:
        yield
    finally:
        ended.set()
        waiting.join()


def is_writing(state: Path, had: int, left: set[str]) -> bool:
    """Return whether a part is being written, or was since there were so many."""
    return not written_in(state) <= left or len(done_in(state)) > had


def has_worked(run: subprocess.Popen[bytes], seconds: float, state: Path, names: set[str]) -> bool:
    """Return whether a program took so much CPU time, or has nothing left to do.

    However busy the machine is, that is the same place in its work.
    """
    stat = Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = sum(integer_of(text) or 0 for text in stat[11:13])
    return ticks / os.sysconf("SC_CLK_TCK") >= seconds or done_in(state) >= names


def tables_of(*inputs: Path) -> Mapping[str, Sequence[Mapping[str, object]]]:
    done = rmqtool("report", *REPORTS, *inputs, "-T", "json")
    assert done.status == 0, done.err
    reports = json.loads(done.out)["reports"]
    return {name: one["rows"] for each in reports for name, one in each["tables"].items()}


def assert_same(state: Path, logs: Sequence[Path], folder: Path) -> None:
    """Compare all that was counted with one run over all."""
    cells = folder / "one-run"
    done = rmqtool("report", *REPORTS, *logs, "--cells", cells, "-T", "json", "-q")
    assert done.status == 0, done.err
    wanted, found = tables_of(cells), tables_of(state)
    assert found.keys() == wanted.keys() >= {"operations", "errors", "clients"}
    for name, rows in wanted.items():
        assert found[name] == rows, name


@pytest.mark.slow
def test_what_arrives_counts_once_however_often_the_program_is_killed(
    logs: Sequence[Path], tmp_path: Path
) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    chance = random.Random(46)
    arrive(logs[0], folder)
    with following(folder, state) as run:  # killed between batches
        until(lambda: done_in(state) == {NAMES[0]}, run)
        run.send_signal(signal.SIGKILL)
    for number, log in enumerate(logs[1:-1], 1):
        arrive(log, folder)
        with following(folder, state) as run:  # killed while a part is written, not yet named
            until(partial(is_writing, state, number, written_in(state)), run)
            run.send_signal(signal.SIGKILL)
        with following(folder, state) as run:  # killed at any time
            names = {one.name for one in logs[: number + 1]}
            until(partial(has_worked, run, chance.uniform(0.2, 3), state, names), run)
            run.send_signal(signal.SIGKILL)
    arrive(logs[-1], folder)  # something to do: a program that starts is ended by SIGINT itself
    with following(folder, state) as run:
        until(lambda: done_in(state) == {*NAMES}, run)
        run.send_signal(signal.SIGINT)
        assert run.wait(HANGS) == 0
    assert len([one for one in state.iterdir() if one.name.startswith("part-")]) == len(
        read_manifest(state).parts
    )
    assert_same(state, logs, tmp_path)


@pytest.mark.slow
def test_structured_streaming_gives_what_arrives(logs: Sequence[Path], tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    spark = ("--engine", "spark", "--memory", "1g")
    arrive(logs[0], folder)
    with following(folder, state, *spark) as run:
        until(lambda: done_in(state) == {NAMES[0]}, run)
        arrive(logs[1], folder)
        until(partial(is_writing, state, 1, written_in(state)), run)
        run.send_signal(signal.SIGKILL)
    arrive(logs[2], folder)
    with following(folder, state, *spark) as run:
        until(lambda: done_in(state) == {*NAMES[:3]}, run)
        run.send_signal(signal.SIGINT)
        assert run.wait(HANGS) == 0
    assert_same(state, logs[:3], tmp_path)


@pytest.mark.slow
def test_what_cannot_be_read_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Sequence[Path]
) -> None:
    """Captures and logs are read, also where others arrive with them; parts become one."""
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    arrive(logs[0], folder)
    (folder / "busy.pcap").write_bytes((SAMPLES / "busy-overload-4x.pcap").read_bytes())
    (folder / "notes.txt").write_text("nothing of ours")
    (folder / "damaged.parquet").write_bytes(b"PAR1 and no more")
    (folder / "copying.pcap.part").write_bytes(b"\xd4\xc3\xb2\xa1")
    monkeypatch.setattr("rmqtool.report.follow.SETTLED", 0)
    monkeypatch.setattr("analytics.cells.MOST_PARTS", 2)
    page = tmp_path / "report.html"
    arguments = ("report", *REPORTS, "--follow", folder, "--cells", state, "-o", page)
    names = {logs[0].name, "busy.pcap", "notes.txt", "damaged.parquet"}
    with interrupted_when(lambda: done_in(state) >= names):
        done = rmqtool(*arguments)
    assert done.status == 0, done.err
    manifest = read_manifest(state)
    assert set(manifest.done) == names
    assert manifest.skipped.keys() == {"notes.txt", "damaged.parquet"}
    assert "notes.txt is skipped: it is neither" in done.err
    assert len(manifest.parts) == 1
    assert_same(state, [logs[0], folder / "busy.pcap"], tmp_path)
    assert b"Operations" in page.read_bytes()
    again = rmqtool(*arguments)
    assert (again.status, "--force" in again.err) == (2, True)


def test_one_program_keeps_a_state(tmp_path: Path) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    kept = CellFolder.followed(state)
    done = rmqtool("report", "latency", "--follow", folder, "--cells", state)
    kept.close()
    assert (done.status, "another run keeps its cells" in done.err) == (1, True)
    for arguments, reason in (
        (("latency", "--follow", folder), "needs --cells"),
        (("retries", "--follow", folder, "--cells", state), "retries needs rows"),
        (("latency", "--follow", "s3a://x/", "--cells", state), "one local folder"),
    ):
        done = rmqtool("report", *arguments)
        assert done.status == 2, done
        assert reason in done.err


@pytest.mark.slow
def test_names_that_are_not_utf8_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    for last in (b"\xfe", b"\xff"):  # equal names if written with a question mark
        (folder / os.fsdecode(b"a" + last)).write_bytes((SAMPLES / "admin-5x.pcap").read_bytes())
    monkeypatch.setattr("rmqtool.report.follow.SETTLED", 0)
    arguments = ("report", "quality", "--follow", folder, "--cells", state, "-T", "json")
    with interrupted_when(lambda: len(done_in(state)) == 2):
        done = rmqtool(*arguments)
    assert done.status == 0, done.err
    manifest = read_manifest(state)
    assert manifest.done == ["a\\udcfe", "a\\udcff"]
    assert manifest.skipped == {}
    # a later run knows them: only what arrives then is added
    (folder / "b").write_bytes((SAMPLES / "admin-5x.pcap").read_bytes())
    with interrupted_when(lambda: len(done_in(state)) == 3):
        done = rmqtool(*arguments)
    assert done.status == 0, done.err
    assert "1 input added: b" in done.err
    assert len(read_manifest(state).parts) == 2


@pytest.mark.slow
def test_compressed_captures_arrive_and_damaged_ones_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    capture = (SAMPLES / "admin-5x.pcap").read_bytes()
    monkeypatch.setattr("rmqtool.report.follow.SETTLED", 0)
    arguments = ("report", "quality", "--follow", folder, "--cells", state, "-T", "json")
    (folder / "c.pcap").write_bytes(capture[:4])
    (folder / "d.pcap.gz").write_bytes(b"\x1f\x8b and no more")
    with interrupted_when(lambda: len(done_in(state)) == 2):
        done = rmqtool(*arguments)
    assert done.status == 0, done.err
    assert read_manifest(state).skipped.keys() == {"c.pcap", "d.pcap.gz"}
    assert "c.pcap is skipped: " in done.err
    (folder / "a.pcap").write_bytes(capture)
    (folder / "a.pcap.gz").write_bytes(gzip.compress(capture))  # the same, soon without the first
    (folder / "b.pcap.gz").write_bytes(gzip.compress(capture))
    with interrupted_when(lambda: len(done_in(state)) == 4):
        done = rmqtool(*arguments)
    assert done.status == 0, done.err
    manifest = read_manifest(state)
    assert manifest.done == ["a.pcap", "b.pcap.gz", "c.pcap", "d.pcap.gz"]
    assert len(manifest.skipped) == 2
