"""`rmqtool replay` where its journal cannot be written: one message, and a way to go on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bench.captures.generate import write_capture
from replay.run.journal import read_steps
from replay.run.journal_rows import Begin, OutcomeEntry
from replay.sandbox import SandboxOptions, sandbox_thread
from tests.replay.captured_sends import captured_sends
from tests.rmqtool.command import PROGRAM, full_after, rmqtool

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("room", [20_000, 33_333])
def test_sending_stops_and_goes_on(tmp_path: Path, room: int) -> None:
    capture, journal = tmp_path / "many.pcap", tmp_path / "run"
    write_capture(capture, 3000, 3, "json")

    with sandbox_thread(SandboxOptions(brokers=2)) as box:
        command = [*PROGRAM, "replay", str(capture), "-n", box.namesrv, "-o", str(journal)]
        ended = subprocess.run(
            [*command, "--top-speed", "--in-flight", "8"],
            preexec_fn=full_after(room),
            capture_output=True,
            check=False,
        )
        err = ended.stderr.decode()
        assert ended.returncode == 1, err
        assert "Traceback" not in err
        assert err.count("cannot be written: File too large") == 1
        assert f"rmqtool replay --resume {journal}" in err
        rows = list(read_steps(journal))
        begun = sum(isinstance(row, Begin) for row in rows)
        outcomes = sum(isinstance(row, OutcomeEntry) for row in rows)
        said = re.search(r"([0-9,]+) sends? of this run went out, ([0-9,]+) with", err)
        assert said is not None, err
        assert [int(one.replace(",", "")) for one in said.groups()] == [begun, outcomes]
        assert 0 < outcomes <= begun < outcomes + 9

        again = rmqtool("replay", "--resume", journal, "-n", box.namesrv, "--top-speed")
        assert again.status == 0, again.err
    done = [row for row in read_steps(journal) if isinstance(row, OutcomeEntry)]
    assert {key for row in done for key in row.unique_keys} == captured_sends(capture).keys()


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    capture, journal = tmp_path / "many.pcap", tmp_path / "run"
    write_capture(capture, 100, 1, "json")
    ended = subprocess.run(
        [*PROGRAM, "replay", str(capture), "--target", "sandbox", "-o", str(journal)],
        preexec_fn=full_after(100),
        capture_output=True,
        check=False,
    )
    err = ended.stderr.decode()
    assert ended.returncode == 1, err
    assert "run.json cannot be written" in err
    assert "Traceback" not in err
