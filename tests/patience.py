"""Waiting and measuring that do not depend on how busy the machine is.

Rules: a test waits for a condition, with a deadline that only a hang reaches; an upper bound of
time is held against `Stopwatch.own`, which leaves out the time that this process waited for a CPU.
"""

from __future__ import annotations

import fcntl
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

PATIENCE: Final = 60.0
"""seconds after which something hangs"""
_TASKS: Final = Path("/proc/self/task")


def waiting_in(pipe: IO[bytes] | None) -> int:
    """Bytes in a pipe that its reader has not taken yet: 0 shows that the program is at work."""
    assert pipe is not None
    count = bytearray(4)
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)


def read_of(process: int, path: Path) -> int:
    """Bytes of an open file up to which a process has read it; 0 where it is not open."""
    for number in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # it is closed meanwhile
            if number.samefile(path):
                lines = Path(f"/proc/{process}/fdinfo/{number.name}").read_text().splitlines()
                return int(lines[0].removeprefix("pos:"))
    return 0


def wait_for(
    what: str, ready: Callable[[], object], patience: float = PATIENCE, pause: float = 0.01
) -> None:
    """Return as soon as `ready()` is true; raise TimeoutError after `patience` seconds."""
    end = time.monotonic() + patience
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {patience:g} s")
        time.sleep(pause)


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._waited = _waited()

    @property
    def seconds(self) -> float:
        """By the clock: what a lower bound is held against."""
        return time.monotonic() - self._began

    @property
    def own(self) -> float:
        """Without the time that threads of this process waited for a CPU: for upper bounds."""
        return self.seconds - (_waited() - self._waited)


def _waited() -> float:
    """Return the seconds that this process's threads stood in a run queue; 0 where not known."""
    nanoseconds = 0
    for task in _TASKS.glob("*"):
        try:
            nanoseconds += int((task / "schedstat").read_text().split()[1])
        except (OSError, IndexError, ValueError):
            continue  # the thread has ended, or the kernel does not count
    return nanoseconds / 1e9
