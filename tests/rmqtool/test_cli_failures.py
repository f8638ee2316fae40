"""What goes wrong on the command line: options, files, signals, defects."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rmqtool import __version__
from rmqtool.ui.status import ExitStatus
from tests.patience import PATIENCE, wait_for, waiting_in
from tests.traffic.captures import pcap_of
from tests.traffic.talk import Talk

from .command import PROGRAM, ROOT, rmqtool


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--where", "topik == A"], "did you mean topic?\n  topik == A\n  ^^^^^"),
        (["--since", "yesterday"], "--since: not a valid time: 'yesterday'"),
        (["--since", "2026-11-20", "--until", "2026-11-19"], "nothing is between them"),
        (["-d", "70000"], "no TCP port"),
        (["--body-limit", "lots"], "not a valid size"),
        (["--commands", "--summary"], "only one of them"),
        (["--summary", "--format", "csv"], "one JSON object"),
        (["-V", "--format", "jsonl"], "--commands --format jsonl"),
        (["--commands", "--format", "parquet"], "jsonl"),
        (["-o", "{capture}"], "is an input"),
        (["-o", "{folder}"], "is a folder"),
        (["--format", "xml"], "xml"),
        (["--limit", "-1"], "--limit"),
    ],
)
def test_a_wrong_command_line(
    capture: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = [part.format(capture=capture, folder=tmp_path) for part in arguments]
    before = capture.read_bytes()
    result = rmqtool("decode", "pcap", capture, *given)
    assert result.status == ExitStatus.USAGE
    assert message in result.err
    assert result.out == ""
    assert capture.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.pcap", None, "no such file"),
        ("x.pcap", b"", "the file is empty"),
        ("x.pcap", b"root:x:0:0:root\n" * 9, "offset 0: not a pcap"),
        ("folder", "folder", "no capture in this folder"),
    ],
)
def test_what_cannot_be_read(
    tmp_path: Path, name: str, content: bytes | str | None, message: str
) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.mkdir()
    result = rmqtool("decode", "pcap", path)
    assert result.status == ExitStatus.FAILURE
    assert result.err.startswith(f"rmqtool: {path}")
    assert message in result.err


def test_what_cannot_be_written(capture: Path, tmp_path: Path) -> None:
    result = rmqtool("decode", "pcap", capture, "-o", tmp_path / "none" / "x.csv")
    assert result.status == ExitStatus.FAILURE
    assert f"{tmp_path}/none/x.csv cannot be written" in result.err
    if os.path.exists("/dev/full"):
        for form in ("csv", "jsonl"):
            full = rmqtool("decode", "pcap", capture, "--format", form, "-o", "/dev/full")
            assert full.status == ExitStatus.FAILURE
            assert "/dev/full cannot be written" in full.err


def test_a_failed_run_leaves_the_former_file(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.jsonl"
    target.write_text("former")
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"no capture at all, but long enough to be read as one")
    assert rmqtool("decode", "pcap", bad, "-o", target).status == ExitStatus.FAILURE
    assert target.read_text() == "former"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pcap", "bad.pcap", "x.jsonl"]


def test_a_closed_pipe_is_the_end(capture: Path) -> None:
    arguments = ["decode", "pcap", str(capture), str(capture), "--format", "jsonl"]
    command = shlex.join([*PROGRAM, *arguments])
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"set -o pipefail; {command} | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}",
        ],
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stderr == b""
    assert done.stdout == b"0\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "left"), [(signal.SIGINT, 0, ["x.jsonl"]), (signal.SIGTERM, 143, [])]
)
def test_a_signal_ends_cleanly(tmp_path: Path, number: int, status: int, left: list[str]) -> None:
    """Ctrl-C ends a pipe as its other end would have; to be terminated leaves nothing half."""
    target = tmp_path / "x.jsonl"
    command = [*PROGRAM, "decode", "pcap", "-", "-o", str(target)]
    started = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    with started:
        assert started.stdin is not None
        started.stdin.write(pcap_of(Talk().open().segments))
        started.stdin.flush()
        # Its temporary output shows that it has begun, the empty pipe that it heeds signals.
        wait_for("it runs", lambda: any(tmp_path.iterdir()))
        wait_for("it has read", lambda: waiting_in(started.stdin) == 0)
        started.send_signal(number)
        _, err = started.communicate(timeout=PATIENCE)
    assert started.returncode == status
    assert b"Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == left


def test_an_unexpected_error_is_no_traceback(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oops\x1b[2J")

    monkeypatch.setattr("rmqtool.decode.run.decode_of", fail)
    result = rmqtool("decode", "pcap", capture)
    assert result.status == ExitStatus.FAILURE
    assert "this should not have happened: ZeroDivisionError: oops\\x1b[2J" in result.err
    assert f"rmqtool {__version__}" in result.err
    assert "Traceback" not in result.err
    assert "Traceback" in rmqtool("decode", "pcap", capture, RMQTOOL_DEBUG="1").err


def test_missing_pyarrow_names_the_extra(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet")
    result = rmqtool("decode", "pcap", capture, "-o", tmp_path / "x.parquet")
    assert result.status == ExitStatus.FAILURE
    assert "pip install 'rmqtool[parquet]'" in result.err
    assert len(result.err.splitlines()) == 1
