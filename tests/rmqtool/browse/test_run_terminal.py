"""What cannot be browsed, on a real terminal: one message, a status, the terminal as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import rmqtool
from tests.rmqtool.browse.browsing import sample

WHOLE_SCREEN, BACK = b"\x1b[?1049h", b"\x1b[?1049l"
_ESCAPES = re.compile(rb"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b[()]B")


class Ended(NamedTuple):
    """What became of a run."""

    status: int
    written: bytes
    is_restored: bool

    @property
    def text(self) -> str:
        """What it wrote, less escapes and frames."""
        plain = _ESCAPES.sub(b" ", self.written).decode("utf-8", "replace")
        return " ".join(re.sub("[│╭╮╰╯─]", " ", plain).split())


def run_on_terminal(*words: str) -> Ended:
    """Run the browser on a terminal of 80x24; q ends it once it stands there."""
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, b"\x18\x00\x50\x00\0\0\0\0")
    before = termios.tcgetattr(other)
    process = subprocess.Popen(
        [sys.executable, "-m", "rmqtool", "browse", *words],
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    written, end = b"", time.monotonic() + 90
    try:
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                written += os.read(terminal, 65536)
            elif process.poll() is not None:
                break
            elif b"quit" in written:
                os.write(terminal, b"q")
        return Ended(process.wait(10), written, termios.tcgetattr(other) == before)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(other)


def _missing(folder: Path) -> str:
    return str(folder / "missing.pcap")


def _empty(folder: Path) -> str:
    (folder / "empty.pcap").touch()
    return str(folder / "empty.pcap")


def _text(folder: Path) -> str:
    (folder / "text.pcap").write_text("hello, this is a text and not a capture")
    return str(folder / "text.pcap")


def _no_captures(folder: Path) -> str:
    return str(folder)


def _log(folder: Path, damaged: str) -> str:
    rmqtool.read(sample("acl-5x.pcap")).to_parquet(folder / "log")
    path = next((folder / "log").glob(damaged))
    path.write_bytes(path.read_bytes()[:200])
    return str(folder / "log")


def _damaged_findings(folder: Path) -> str:
    return _log(folder, "findings.parquet")


def _damaged_rows(folder: Path) -> str:
    return _log(folder, "exchanges/*.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "status", "said"),
    [
        (_missing, 1, "missing.pcap: no such file"),
        (_empty, 1, "the file is empty"),
        (_text, 1, "not a pcap or pcapng file"),
        (_no_captures, 1, "no capture in this folder"),
        (_damaged_findings, 1, "is a damaged or unfinished Parquet file"),
        (_damaged_rows, 1, "is a damaged or unfinished Parquet file"),
    ],
)
def test_what_cannot_be_browsed_is_said_once(
    make: Callable[[Path], str], status: int, said: str, tmp_path: Path
) -> None:
    ended = run_on_terminal(make(tmp_path))
    # wherever the line is broken, with a path of any length in it
    assert said.replace(" ", "") in ended.text.replace(" ", ""), ended.text
    assert ended.status == status
    assert ended.is_restored
    assert ended.written.count(WHOLE_SCREEN) == ended.written.count(BACK)
    assert ended.text.count("Error") == 1
    assert b"Traceback" not in ended.written


@pytest.mark.slow
def test_a_capture_that_was_cut_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(Path(sample("acl-5x.pcap")).read_bytes()[:3000])
    ended = run_on_terminal(str(path))
    assert "02:39:06.635" in ended.text
    assert (ended.status, ended.is_restored) == (0, True)
    assert b"Traceback" not in ended.written


@pytest.mark.slow
def test_nothing_to_look_at_is_an_error_of_use() -> None:
    ended = run_on_terminal()
    assert "no input given" in ended.text
    assert (ended.status, ended.is_restored) == (2, True)


@pytest.mark.parametrize(
    ("order", "first"), [("latency", "155 ms"), ("time", "7.04 ms"), ("completion", "7.04 ms")]
)
def test_the_first_row_is_that_of_the_order(order: str, first: str) -> None:
    ended = run_on_terminal(sample("acl-5x.pcap"), "--sort", order)
    assert ended.status == 0
    shown = re.search(r"> \d\d:\d\d:\d\d\.\d{3} +(\S+ \S+)", ended.text)
    assert shown is not None
    assert shown[1] == first
