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
from tests.traffic.commands import route_query
from tests.traffic.talk import Talk

from .command import PROGRAM, ROOT, full_after, rmqtool


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--where", "topik == A"], "did you mean topic?\n  topik == A\n  ^^^^^"),
        (["--since", "yesterday"], "--since: not a valid time: 'yesterday'"),
        (["--since", "2026-11-20", "--until", "2026-11-19"], "the range is empty"),
        (["--since", "12:00", "--until", "12:00"], "--since and --until: the range is empty"),
        (["-d", "70000"], "not a TCP port"),
        (["--body-limit", "lots"], "not a valid size"),
        (["--commands", "--summary"], "cannot be combined"),
        (["--summary", "--format", "csv"], "supports only table and json"),
        (["-V", "--format", "jsonl"], "commands -T json"),
        (["--body-limit", "9"], "--body-limit: has no effect on these rows"),
        (["--summary", "--max-output", "9"], "--max-output: has no effect on these rows"),
        (["-T", "csv", "--plugin", "{plugin}"], "--plugin: has no effect on these rows"),
        (["--commands", "--body-limit", "9"], "--body-limit: has no effect on these rows"),
        (
            ["--commands", "--columns", "name", "-T", "jsonl", "--max-output", "9"],
            "--max-output: has no effect on these rows",
        ),
        (["--list-messages", "--max-output", "9"], "--max-output: has no effect on these rows"),
        (
            ["--messages", "-o", "{folder}/m", "--body-limit", "9"],
            "--body-limit: has no effect on these rows",
        ),
        (
            ["--follow-conversation", "0", "--max-output", "9"],
            "--max-output: has no effect on these rows",
        ),
        (["--no-message-rows"], "--no-message-rows: is for a decoded log; use -o FOLDER"),
        (["--columns", ","], "--columns: names no column"),
        (["--commands", "--format", "parquet"], "use -T json"),
        (["-o", "{capture}"], "is also an input"),
        (["-o", "{folder}"], "is a folder"),
        (["--format", "xml"], "xml"),
        (["--limit", "ten"], "Invalid value for '--limit' / '-c': 'ten' is not a whole number"),
        (
            ["--limit", "-1"],
            "Invalid value for '--limit' / '-c': -1 is out of range; give 0 or more",
        ),
        (["--jobs", "99"], "99 is out of range; give 1 to 64"),
    ],
)
def test_a_wrong_command_line(
    capture: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    plugin = ROOT / "examples/order_bodies.py"
    given = [part.format(capture=capture, folder=tmp_path, plugin=plugin) for part in arguments]
    before = capture.read_bytes()
    result = rmqtool("decode", "pcap", capture, *given)
    assert result.status == ExitStatus.USAGE
    assert message in result.err
    assert result.out == ""
    assert capture.read_bytes() == before


@pytest.mark.parametrize("command", ["diagnose", "trace", "report", "browse", "replay"])
def test_an_empty_range_is_refused(capture: Path, command: str) -> None:
    of_day = ("--since", "12:00", "--until", "11:00")
    dated = ("--since", "2026-11-20T12:00:00", "--until", "2026-11-20T12:00:00")
    for given in (of_day, dated):
        result = rmqtool(command, capture, *given)
        assert (result.status, result.out) == (ExitStatus.USAGE, "")
        assert result.err == "rmqtool: --since and --until: the range is empty\n"


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
    failed = rmqtool("decode", "pcap", bad, "-o", target, "--force")
    assert failed.status == ExitStatus.FAILURE
    assert target.read_text() == "former"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pcap", "bad.pcap", "x.jsonl"]


@pytest.mark.slow
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


NO_ROOM = "cannot be written: "
WRITERS = [
    *(("decode", "pcap", "{capture}", "-o", f"{{out}}.{form}") for form in ("jsonl", "csv", "txt")),
    ("decode", "pcap", "{capture}", "-o", "{out}.parquet"),
    ("decode", "pcap", "{capture}", "-o", "{out}"),
    ("decode", "pcap", "{capture}", "-j", "2", "-o", "{out}.csv"),
    ("decode", "pcap", "{capture}", "-T", "jsonl", "-o", "{out}/"),
    ("decode", "pcap", "{capture}", "--messages", "-o", "{out}"),
    ("decode", "pcap", "{capture}", "--commands", "-T", "jsonl", "-o", "{out}"),
    ("decode", "pcap", "{capture}", "-V", "-o", "{out}"),
    ("decode", "pcap", "{capture}", "--follow-conversation", "0", "-o", "{out}"),
    ("decode", "pcap", "{capture}", "--summary", "-T", "jsonl", "-o", "{out}"),
    ("diagnose", "{capture}", "-o", "{out}"),
    ("diagnose", "{capture}", "-T", "jsonl", "-o", "{out}"),
    ("wireshark", "-o", "{out}"),
    ("replay", "{capture}", "--target", "sandbox", "-o", "{out}"),
]


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: " ".join(writer))
def test_a_full_disk_is_one_message_and_nothing_is_left(
    tmp_path: Path, writer: tuple[str, ...]
) -> None:
    capture, folder = ROOT / "samples" / "admin-5x.pcap", tmp_path / "out"
    folder.mkdir()
    given = [part.format(capture=capture, out=folder / "x") for part in writer]
    room = 64 if "--summary" in writer or "diagnose" in writer else 600
    ended = subprocess.run(
        [*PROGRAM, *given],
        preexec_fn=full_after(room),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.returncode == ExitStatus.FAILURE, ended.stderr
    said = [line for line in ended.stderr.splitlines() if line.startswith("rmqtool:")]
    assert len(said) == 1, ended.stderr
    assert f"{folder / 'x'}" in said[0]
    assert f"{NO_ROOM}File too large" in said[0]
    assert "Traceback" not in ended.stderr
    left = [path.name for path in folder.rglob("*")]
    assert [name for name in left if name.startswith(".") or name.endswith(".tmp")] == []
    assert left == [] or writer[0] == "replay"


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ("--help",),
        ("--version",),
        ("codes", "310"),
        ("help", "send"),
        ("wireshark",),
        ("report", "--list"),
        ("diagnose", "--list"),
        ("diagnose", "{capture}"),
        ("decode", "pcap", "{capture}"),
        ("decode", "pcap", "{capture}", "-T", "parquet"),
        ("decode", "pcap", "{capture}", "--summary"),
        ("decode", "stream", "{stream}"),
        ("replay", "{capture}", "--dry-run"),
        ("replay", "{capture}", "--target", "sandbox", "-o", "{folder}/journal"),
    ],
    ids=" ".join,
)
def test_standard_output_on_a_full_disk(
    capture: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    stream = tmp_path / "stream"
    stream.write_bytes(route_query(9).frame)
    given = [part.format(capture=capture, stream=stream, folder=tmp_path) for part in command]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*PROGRAM, *given], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == ExitStatus.FAILURE
    assert f"rmqtool: standard output {NO_ROOM}No space left on device\n" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception" not in ended.stderr


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
