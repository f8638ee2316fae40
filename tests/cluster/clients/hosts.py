"""Java that runs one client program after the other: it starts once for all of them.

Rules: a host runs one program at a time and is taken again when that has ended, for a program of
its release with its system properties; one whose program was killed ends with it. Of those that
wait, the first to have done so end where there are too many, and all with the tests that share a
cluster. Programs with an agent or a clock of their own have no host.

Java: `java/both/Host.java`.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.servers.processes import STOP_SECONDS, OwnedProcess, log_end

_SPARE = 4
"""hosts that are kept: two programs at a time are what most tests run, of two kinds at most"""
_PAUSE = 0.02

are_shared = True
"""False: each program has a process of its own, as in a recording"""
_idle: list[Host] = []
_lock = threading.Lock()


class Host:
    """A Java process that waits for programs."""

    def __init__(
        self, key: tuple[str, ...], command: Sequence[str], folder: Path, env: dict[str, str]
    ) -> None:
        self.key = key
        """what its programs have in common"""
        self.folder = folder
        self.process = OwnedProcess(command, folder / "host.log", env=env, cwd=folder)
        self._runs = 0

    def run(self, log: Path, arguments: Sequence[str]) -> int:
        """Start a program with its arguments, which prints to `log`; return its number."""
        self.process.write_line("\t".join(["run", str(log), *arguments]))
        self._runs += 1
        return self._runs - 1

    def status(self, number: int) -> int | None:
        """Return the exit status of a program; None while it runs."""
        gone = self.process.returncode
        lines = self.process.log.read_text(errors="replace").splitlines(keepends=True)
        ended = [line for line in lines if line.startswith("ended ") and line.endswith("\n")]
        return int(ended[number].split()[1]) if number < len(ended) else gone

    def discard(self) -> None:
        """End it."""
        self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class HostedProgram:
    """A program that a host runs; to its client what a process of its own would be."""

    def __init__(self, host: Host, log: Path, arguments: Sequence[str]):
        self.log = log
        self._host = host
        self._program = arguments[0]
        self._number = host.run(log, arguments)
        self._status: int | None = None

    @property
    def returncode(self) -> int | None:
        """Exit status, or None while it runs."""
        if self._status is None:
            self._status = self._host.status(self._number)
            if self._status is not None:
                _give_back(self._host)
        return self._status

    def wait(self, timeout: float) -> int:
        """Exit status; raises `TimeoutError` with the end of the log."""
        end = time.monotonic() + timeout
        while (status := self.returncode) is None:
            if time.monotonic() > end:
                raise TimeoutError(self.describe(f"still runs after {timeout:g} s"))
            time.sleep(_PAUSE)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Signals its host."""
        self._host.process.send_signal(number)

    def end_input(self) -> None:
        """Ends its standard input."""
        if self.returncode is None:
            with contextlib.suppress(OSError):
                self._host.process.write_line("end")

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Ends it: its input first, half the time later its host."""
        self.end_input()
        with contextlib.suppress(TimeoutError):
            self.wait(timeout / 2)
        self.kill()

    def kill(self) -> None:
        """Ends it with its host, at once; nothing when it has ended."""
        if self.returncode is None:
            self._host.process.kill()
            self._status = self._host.process.returncode
            shutil.rmtree(self._host.folder, ignore_errors=True)

    def describe(self, what: str) -> str:
        """A sentence for an error, with the end of the log."""
        return f"{self._program} {what}; {self.log} ends with:\n{log_end(self.log)}"


def take(key: tuple[str, ...]) -> Host | None:
    """Return a host of that kind that waits for a program; None where there is none."""
    with _lock:
        while host := next((one for one in reversed(_idle) if one.key == key), None):
            _idle.remove(host)
            if host.process.returncode is None:
                return host
            host.discard()
    return None


def host_folder() -> Path:
    """Return a folder for a new host; it goes with it."""
    return Path(tempfile.mkdtemp(prefix="rmqtool-host-"))


def end_hosts() -> None:
    """End all that wait for a program."""
    with _lock:
        while _idle:
            _idle.pop().discard()


def _give_back(host: Host) -> None:
    if host.process.returncode is not None:
        host.discard()
        return
    host.process.keep_classes()
    with _lock:
        _idle.append(host)
        while len(_idle) > _SPARE:
            _idle.pop(0).discard()
