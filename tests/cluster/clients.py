"""Client programs as traffic sources: our own Java programs on the 4.x and 5.x client.

Each is a process of its own with `key=value` arguments (see `java/both/Options.java`); what it printed is returned.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from .artifacts import NEWEST_5, class_path
from .processes import OwnedProcess, java_command, wait_until


class Client:
    """A running client program."""

    def __init__(self, process: OwnedProcess, name: str):
        self._process = process
        self.name = name

    @property
    def output(self) -> str:
        """What it printed so far."""
        return self._process.log.read_text(errors="replace")

    def wait_for(self, text: str, timeout: float = 30.0) -> None:
        """Waits until it printed that text; raises when it ended without."""

        def printed() -> bool:
            ended = self._process.returncode is not None
            if text in self.output:
                return True
            if ended:
                raise RuntimeError(self._process.describe(f"ended without {text!r}"))
            return False

        wait_until(f"{self.name} prints {text!r}", printed, timeout)

    def write_line(self, line: str) -> None:
        """Sends a line to its standard input."""
        self._process.write_line(line)

    def finish(self, timeout: float = 60.0, expect: int | None = 0) -> str:
        """Waits for its end and returns what it printed; raises when it failed."""
        try:
            status = self._process.wait(timeout)
        finally:
            self._process.kill()
        if expect is not None and status != expect:
            raise RuntimeError(self._process.describe(f"({self.name}) exited with {status}"))
        return self.output


def start_java(
    program: str,
    namesrv: str,
    *,
    version: str = NEWEST_5,
    properties: Iterable[str] = (),
    home: Path | None = None,
    **options: object,
) -> Client:
    """Starts one of our Java programs; options become `key=value` with `_` written as `-`."""
    folder = home or Path(tempfile.mkdtemp(prefix="rmqtool-client-"))
    arguments = [f"namesrv={namesrv}"]
    arguments += [f"{name.replace('_', '-')}={_text(value)}" for name, value in options.items()]
    command = java_command(
        class_path(version),
        program,
        arguments,
        folder,
        heap="128m",
        properties=[f"rocketmq.client.logRoot={folder}", *properties],
    )
    return Client(OwnedProcess(command, folder / f"{program}.log"), program)


def run_java(
    program: str, namesrv: str, *, timeout: float = 60.0, expect: int | None = 0, **options: object
) -> str:
    """Runs one of our Java programs to its end; returns what it printed."""
    return start_java(program, namesrv, **options).finish(timeout, expect)  # type: ignore[arg-type]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
