"""Processes that end with us: each in its own group, killed by its id whatever happens.

Rules:
- A Java server also ends by itself when its standard input ends, so that even a killed parent
  leaves nothing behind.
- Standard output and error go to a log file; its end is part of every error raised here.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .artifacts import LIGHT, java_program
from .class_archive import keep_classes, with_archive

STOP_SECONDS = 8.0

_running: set[OwnedProcess] = set()


class OwnedProcess:
    """A child process in its own group, with its log."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ):
        self.command = list(command)
        self.log = log
        wrapper = shutil.which("setpriv")
        # A stopped process cannot notice the end of its input; the kernel's signal reaches it all
        # the same.
        prefix = [wrapper, "--pdeathsig", "KILL"] if wrapper else []
        with log.open("ab") as out:
            self._child = subprocess.Popen(
                [*prefix, *with_archive(self.command)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=env,
                cwd=cwd,
            )
        _running.add(self)

    @property
    def pid(self) -> int:
        """Process id, also the id of its group."""
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """Exit status, or None while it runs."""
        return self._child.poll()

    def write_line(self, line: str) -> None:
        """Sends one line to standard input."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{line}\n".encode())
        self._child.stdin.flush()

    def end_input(self) -> None:
        """Ends its standard input."""
        with contextlib.suppress(OSError):
            if self._child.stdin is not None:
                self._child.stdin.close()

    def send_signal(self, number: signal.Signals) -> None:
        """Signals the whole group, if it still runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def wait(self, timeout: float) -> int:
        """Exit status; raises `TimeoutError` with the end of the log."""
        try:
            status = self._child.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(self.describe(f"still runs after {timeout:g} s")) from error
        self._closed()
        return status

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Ends it: its input first, half the time later SIGTERM, at last SIGKILL."""
        self.send_signal(signal.SIGCONT)
        self.end_input()
        for number in (None, signal.SIGTERM):
            if number is not None:
                self.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout / 2)
                break
        self.kill()

    def keep_classes(self) -> None:
        """Writes the archive of its classes, unless there is one or another makes it."""
        keep_classes(self.command, self.pid)

    def kill(self) -> None:
        """SIGKILL to the group, at once; nothing when it has ended and its id may be another's."""
        if self not in _running:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        self._closed()

    def describe(self, what: str) -> str:
        """A sentence for an error, with the end of the log."""
        return f"{self.command[0]} {what}; {self.log} ends with:\n{log_end(self.log)}"

    def _closed(self) -> None:
        _running.discard(self)
        self.end_input()


def java_command(
    class_path: str,
    main: str,
    arguments: Sequence[str],
    home: Path,
    *,
    heap: str = "256m",
    properties: Sequence[str] = (),
    agent: str = "",
) -> list[str]:
    """Command line of one of our Java programs; its logs and temporary files go below `home`.

    Java unpacks native libraries and writes certificates there, which one that is killed leaves.
    """
    return [
        java_program("java"),
        "-Xms64m" if heap == "256m" else "-Xms32m",
        f"-Xmx{heap}",
        *LIGHT,
        *([f"-javaagent:{agent}"] if agent else []),
        f"-Duser.home={home}",
        f"-Djava.io.tmpdir={home}",
        f"-Drocketmq.log.root={home}",
        *(f"-D{item}" for item in properties),
        # The self-signed certificate of Netty and a few reflective tricks of RocketMQ need these
        # on 17.
        "--add-exports=java.base/sun.security.x509=ALL-UNNAMED",
        "--add-exports=java.base/sun.security.util=ALL-UNNAMED",
        "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
        "-cp",
        class_path,
        main,
        *arguments,
    ]


def wait_until(what: str, ready: Callable[[], bool], timeout: float, pause: float = 0.05) -> None:
    """Polls until `ready()`; raises `TimeoutError` naming what did not happen.

    `timeout` is generous on an idle machine; a busy or slow one gets four times as long.
    """
    end = time.monotonic() + 4 * timeout
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {4 * timeout:g} s")
        time.sleep(pause)


def port_is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now, and on all addresses (the HA port does that)."""
    for address in (host, "0.0.0.0"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                probe.listen(1)
            except OSError:
                return False
    return True


def log_end(log: Path, lines: int = 30) -> str:
    """The last lines of a log file, or a word that there is none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


@atexit.register
def _kill_all() -> None:
    for process in list(_running):
        process.kill()
