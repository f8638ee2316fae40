"""The browser ends with its terminal and when it is told to, and takes no processor meanwhile."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.rmqtool.browse.browsing import sample

Ends = Callable[["subprocess.Popen[bytes]", int], None]


def _closes(process: subprocess.Popen[bytes], terminal: int) -> None:
    os.close(terminal)


def _terminates(process: subprocess.Popen[bytes], terminal: int) -> None:
    process.send_signal(signal.SIGTERM)


@contextmanager
def on_terminal(hang_up_ignored: bool) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start the browser on a terminal of its own."""
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, b"\x18\x00\x50\x00\0\0\0\0")

    def controlled() -> None:
        os.setsid()
        fcntl.ioctl(other, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if hang_up_ignored else signal.SIG_DFL)

    process = subprocess.Popen(
        [sys.executable, "-m", "rmqtool", "browse", sample("acl-5x.pcap")],
        stdin=other,
        stdout=other,
        stderr=other,
        preexec_fn=controlled,
    )
    os.close(other)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "hang_up_ignored"), [(_closes, False), (_closes, True), (_terminates, True)]
)
def test_it_ends_with_its_terminal(end: Ends, hang_up_ignored: bool) -> None:
    with on_terminal(hang_up_ignored) as (process, terminal):
        seen = b""
        started = time.monotonic()
        while b"filter" not in seen and time.monotonic() - started < 60:
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 65536)
        end(process, terminal)
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            if end is _terminates and select.select([terminal], [], [], 0.1)[0]:
                with suppress(OSError):  # the other end is closed: it ends
                    os.read(terminal, 65536)
            time.sleep(0.05)
        assert process.returncode == 143, seen[-500:]
