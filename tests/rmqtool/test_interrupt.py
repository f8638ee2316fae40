"""Ctrl-C while a capture is followed or comes from a pipe: what was read is finished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "push-consumer-5x.pcap"


def _start(*arguments: str, **pipes: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rmqtool", "decode", "pcap", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **pipes)


def _wait_for_rows(path: Path) -> None:
    """Waits until the run has written its temporary output: it is reading by then."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if any(entry.stat().st_size for entry in path.parent.glob("*out*")):
            return
        time.sleep(0.05)
    raise AssertionError("no rows within 20 seconds")


def test_following_ends_with_what_still_waits(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    process = _start("--follow", str(SAMPLE), "-o", str(out))
    _wait_for_rows(out)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    whole = subprocess.run(
        [sys.executable, "-m", "rmqtool", "decode", "pcap", str(SAMPLE), "-f", "jsonl"],
        capture_output=True,
        check=True,
    ).stdout
    expected = [json.loads(line) for line in whole.splitlines()]
    assert len(rows) == len(expected)
    assert sum(row["status"] == "unanswered" for row in rows) > 0
    assert b"Traceback" not in errors


def test_a_pipe_that_is_interrupted_still_gives_its_summary() -> None:
    process = _start("-", "--summary", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(SAMPLE.read_bytes())
    process.stdin.flush()
    time.sleep(3)
    os.kill(process.pid, signal.SIGINT)
    process.stdin.close()
    process.stdin = None
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert b"PULL_MESSAGE" in output
    assert b"Traceback" not in errors
