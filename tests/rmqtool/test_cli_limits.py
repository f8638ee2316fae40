"""Every command without standard output, and with hardly any open files: one clear message."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.expected import SAMPLES

from .command import PROGRAM, ROOT, Result

CAPTURE = str(SAMPLES / "push-orderly-5x.pcap")
EVIL = "\x1b[2J\u202e\x9bz"
RUN = ("--port", "0", "--namesrv-port", "0", "--duration", "300ms")
TO_NOBODY = ("send", "-n", "127.0.0.1:1", "-t", "T", "--body", "x", "--timeout", "1s")
COMMANDS = (
    ("--version",),
    ("--help",),
    ("codes", "310"),
    ("help", "sandbox"),
    ("broker", *RUN),
    TO_NOBODY,
    ("decode", "pcap", CAPTURE),
    ("decode", "pcap", CAPTURE, "-T", "jsonl", "--jobs", "2"),
    ("decode", "pcap", CAPTURE, "--summary"),
    ("diagnose", CAPTURE),
    ("trace", CAPTURE, "key-1"),
    ("wireshark",),
    ("report", "--list"),
)


def limited(*arguments: str, files: int = 0, closed: tuple[int, ...] = ()) -> Result:
    """Run with so many open files, and with standard files closed."""

    def limit() -> None:
        for number in closed:
            os.close(number)
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    done = subprocess.run(
        [*PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=ROOT,
        preexec_fn=limit,
        check=False,
        timeout=120,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def is_clear(result: Result) -> None:
    """Nothing but messages: no traceback, no slip."""
    for word in ("Traceback", "should not have happened", "Exception ignored", "Warning"):
        assert word not in result.err, result.err


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_closed_standard_output_is_named(command: tuple[str, ...]) -> None:
    result = limited(*command, closed=(1,))
    is_clear(result)
    assert result.status == 1
    assert "rmqtool: standard output cannot be written: it is closed" in result.err


@pytest.mark.slow
def test_a_file_is_written_without_standard_files(tmp_path: Path) -> None:
    target = tmp_path / "rows.jsonl"
    result = limited("decode", "pcap", CAPTURE, "-o", str(target), closed=(0, 1, 2))
    assert result == (0, "", "")
    assert target.read_bytes().count(b"\n") == 36


@pytest.mark.slow
@pytest.mark.parametrize("files", [5, 6, 7, 8, 10, 12, 16])
def test_few_open_files_are_named(files: int, tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "box.db"))
    jobs = ("decode", "pcap", CAPTURE, "-T", "jsonl", "--jobs", "2")
    for command in (("broker", *RUN), ("broker", *RUN, *store), TO_NOBODY, jobs):
        result = limited(*command, files=files)
        is_clear(result)
        assert result.status in (0, 1)
        if result.status:
            assert result.err.startswith("rmqtool: ")
            said = result.err.lower()
            assert "too many open files" in said or "unable to open" in said or "refused" in said
