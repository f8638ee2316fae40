"""The journal: what is in it, whatever ended the run."""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.run.journal import (
    JournalWriter,
    Progressed,
    create_journal,
    read_run,
    read_skipped,
    read_steps,
    sources_of,
)
from replay.run.journal_rows import (
    SKIPPED,
    STEPS,
    Begin,
    JournalError,
    JournalRefused,
    OutcomeEntry,
    Result,
    Run,
    SkippedRow,
    SourceEntry,
    Sync,
)

ROOT = Path(__file__).resolve().parents[3]


def outcome(step: int, result: Result = Result.stored, **values: object) -> OutcomeEntry:
    members: dict[str, object] = {
        "capture": "a.pcap",
        "packet": 7,
        "conversation": 1,
        "time": 5,
        "topic": "T",
        "unique_keys": [f"K{step}"],
        "captured_key": f"K{step}",
        "messages": 1,
        "mode": "sync",
    }
    return OutcomeEntry(step=step, result=result, **(members | values))  # type: ignore[arg-type]


def run() -> Run:
    return Run(
        run="r1",
        created="2026-11-20T10:00:00Z",
        rmqtool="0",
        sources=[SourceEntry("a.pcap", 5, "d")],
        options={"limit": 3},
        target="127.0.0.1:9876",
    )


def made(folder: Path, sync: Sync = Sync.never) -> JournalWriter:
    create_journal(folder, run())
    return JournalWriter(folder, sync)


@pytest.mark.parametrize("sync", list(Sync))
def test_rows_come_back(tmp_path: Path, sync: Sync) -> None:
    journal = made(tmp_path / "j", sync)
    rows = [
        Begin(0, ["K0"]),
        outcome(0, code=0, differences=["queue 1 → 2"]),
        Begin(1, ["K1"], True),
    ]
    for row in rows:
        journal.write(row)
    skipped = SkippedRow("a.pcap", 9, "CUT", "3 bytes", "T", None)
    journal.write_skipped(skipped)
    journal.close()
    assert list(read_steps(tmp_path / "j")) == rows
    assert list(read_skipped(tmp_path / "j")) == [skipped]
    assert read_run(tmp_path / "j") == run()


def test_what_was_flushed_is_there_while_the_run_goes_on(tmp_path: Path) -> None:
    journal = made(tmp_path / "j")
    journal.write(Begin(0, ["K0"]))
    assert list(read_steps(tmp_path / "j")) == []
    journal.flush()
    assert list(read_steps(tmp_path / "j")) == [Begin(0, ["K0"])]
    journal.close()


@pytest.mark.slow
def test_a_killed_process_leaves_every_row_that_was_flushed(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal\n"
        "from pathlib import Path\n"
        "from replay.run.journal import *\n"
        "from replay.run.journal_rows import *\n"
        "from tests.replay.run.test_journal import made\n"
        "journal = made(Path(sys.argv[1]))\n"
        "for step in range(1000):\n"
        "    journal.write(Begin(step, [f'K{step}']))\n"
        "    journal.flush()\n"
        "journal.write(Begin(1000, ['never flushed']))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    folder = tmp_path / "j"
    done = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [row.step for row in read_steps(folder)] == list(range(1000))


@pytest.mark.slow
@given(cut=st.integers(0, 400))
def test_a_last_line_that_was_cut_is_dropped_and_rows_can_follow(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("journal") / "j"
    journal = made(folder)
    for step in range(4):
        journal.write(Begin(step, [f"K{step}"]))
        journal.write(outcome(step))
    journal.close()
    path = folder / STEPS
    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - cut)])
    left = list(read_steps(folder))
    journal = JournalWriter(folder)
    journal.write(Begin(9, ["after"]))
    journal.close()
    assert list(read_steps(folder)) == [*left, Begin(9, ["after"])]
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_half_a_surrogate_is_no_problem(tmp_path: Path) -> None:
    journal = made(tmp_path / "j")
    journal.write(outcome(0, topic="\ud800", reason="\udfff"))
    journal.close()
    (row,) = read_steps(tmp_path / "j")
    assert isinstance(row, OutcomeEntry)
    assert row.topic == "?"


def test_a_folder_with_something_in_it_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(JournalError, match="not empty"):
        create_journal(tmp_path, run())
    with pytest.raises(JournalError, match="is a file"):
        create_journal(tmp_path / "file", run())


def test_an_input_with_any_bytes_as_name_is_refused(tmp_path: Path) -> None:
    odd = run()
    odd.sources = [SourceEntry("a\udce9.pcap", 5, "d")]
    with pytest.raises(JournalRefused, match="not UTF-8"):
        create_journal(tmp_path / "j", odd)
    assert not (tmp_path / "j").exists()


def test_what_is_no_journal_says_so(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"no run\.json"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(JournalError):
        read_run(tmp_path)
    create_journal(tmp_path / "j", run())
    (tmp_path / "j" / STEPS).write_text('{"kind":"begin","step":0,"unique_keys":[]}\nrubbish\n')
    with pytest.raises(JournalError, match="line 2"):
        list(read_steps(tmp_path / "j"))


def progressed(*rows: Begin | OutcomeEntry) -> tuple[Progressed, list[int]]:
    found = Progressed()
    return found, [row.step for row in found.receive(rows)]


def test_a_step_is_done_when_it_is_stored_or_was_sent_oneway() -> None:
    found, done = progressed(
        *(Begin(n, [f"K{n}"]) for n in range(6)),
        outcome(0),
        outcome(2, Result.sent),
        outcome(3, Result.failed),
        outcome(4, Result.unknown),
    )
    assert done == [0, 2]
    assert [found.is_done(n) for n in range(7)] == [True, False, True, *[False] * 4]
    assert found.open == {1: ["K1"], 5: ["K5"]}
    assert found.failed == {3: False, 4: True}
    assert found.done == 2


def test_a_failed_step_that_is_stored_later_is_done() -> None:
    again = outcome(0, maybe_twice=True)
    found, done = progressed(
        Begin(0, ["K"]), outcome(0, Result.unknown), Begin(0, ["K"], True), again
    )
    assert done == [0]
    assert found.is_done(0)
    assert not found.failed
    assert not found.open


def test_a_step_that_was_begun_again_is_open_again() -> None:
    found, _ = progressed(Begin(0, ["K"]), outcome(0, Result.failed), Begin(0, ["K"], True))
    assert not found.is_done(0)
    assert found.open == {0: ["K"]}


def test_what_is_remembered_of_many_steps_stays_small() -> None:
    rows = (row for n in range(50_000) for row in (Begin(n ^ 3, []), outcome(n ^ 3)))
    found = Progressed()
    assert sum(1 for _ in found.receive(rows)) == 50_000
    assert len(pickle.dumps(found)) < 200
    assert found.done == 50_000


def test_sources_are_known_again(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(b"one")
    before = sources_of([str(path)])
    assert sources_of([str(path)]) == before
    path.write_bytes(b"two")
    assert sources_of([str(path)]) != before
    assert os.path.getsize(path) == before[0].bytes


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file may grow over `size` bytes: what a full disk does, but for the reason."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", range(0, 120, 7))
def test_a_full_disk_leaves_whole_lines_and_drops_what_is_not_sent(
    tmp_path: Path, room: int
) -> None:
    journal = made(tmp_path / "j")
    journal.write(Begin(0, ["K0"]))
    journal.flush()
    journal.write(outcome(0))
    journal.write(Begin(1, ["K1"]))
    with full_at((tmp_path / "j" / STEPS).stat().st_size + room):
        with pytest.raises(JournalError, match="cannot be written: File too large"):
            journal.flush()
        assert [row.step for row in read_steps(tmp_path / "j")] == [0]
    assert (journal.begun, journal.ended) == (1, 0)
    journal.close()
    assert (journal.begun, journal.ended) == (1, 1)
    rows = list(read_steps(tmp_path / "j"))
    assert [(type(row), row.step) for row in rows] == [(Begin, 0), (OutcomeEntry, 0)]


def test_outcomes_are_written_where_other_files_are_full(tmp_path: Path) -> None:
    journal = made(tmp_path / "j")
    journal.write(Begin(0, ["K0"]))
    journal.flush()
    (tmp_path / "j" / SKIPPED).write_bytes(b"{}\n" * 10_000)
    journal.write_skipped(SkippedRow("a.pcap", 9, "CUT", "3 bytes", "T", None))
    journal.write(outcome(0))
    journal.write(Begin(1, ["K1"]))
    with full_at(20_000), pytest.raises(JournalError, match=SKIPPED):
        journal.flush()
    assert [(type(row), row.step) for row in read_steps(tmp_path / "j")] == [
        (Begin, 0),
        (OutcomeEntry, 0),
    ]
    journal.close()


def test_space_is_kept_while_the_journal_is_open(tmp_path: Path) -> None:
    create_journal(tmp_path / "j", run())
    journal = JournalWriter(tmp_path / "j", in_flight=8)
    assert (tmp_path / "j" / ".reserve").stat().st_blocks * 512 >= 8 * 2048
    journal.close()
    assert not (tmp_path / "j" / ".reserve").exists()
    with full_at(1000), pytest.raises(JournalError, match="cannot be written"):
        JournalWriter(tmp_path / "j", in_flight=8)
    assert not (tmp_path / "j" / ".reserve").exists()


def test_a_journal_that_cannot_be_begun_leaves_nothing_half(tmp_path: Path) -> None:
    with full_at(50), pytest.raises(JournalError, match=r"run\.json cannot be written"):
        create_journal(tmp_path / "j", run())
    create_journal(tmp_path / "j", run())


def test_only_the_user_may_read_a_journal(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    create_journal(folder, run())
    writer = JournalWriter(folder, in_flight=8)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    writer.close()
    assert len(modes) == 5
    assert set(modes.values()) == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
