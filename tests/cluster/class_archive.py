"""Java's classes of a program, read once and kept: a start takes half the time (JDK 13 and newer).

Rules: the first run of a program makes the archive at its end, those that start meanwhile do
without. Java ignores an archive that does not fit. A program that is killed makes none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from .artifacts import cache_root

_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Warnings about classes that cannot be kept would stand between the lines of the program."""


class ProgramArchive:
    """The archive of one program: one class path and one main class."""

    def __init__(self, command: Sequence[str]) -> None:
        """`command` starts Java with `-cp`."""
        place = command.index("-cp")
        main = command[place + 2].rpartition(".")[2]
        if main in ("Node", "Host"):  # more than one program
            main += f"-{command[place + 3]}"
        key = "\0".join((command[0], *command[place : place + 3]))
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        self.path = cache_root() / "archives" / f"{main}-{digest}.jsa"
        """the archive, whether it exists or not"""
        self._claim = self.path.with_suffix(".claim")
        self._making: Path | None = None

    def options(self) -> tuple[str, ...]:
        """Options for Java that use the archive, or make it; none where another run makes it."""
        if self.path.is_file():
            return (f"-XX:SharedArchiveFile={self.path}", *_QUIET)
        if not self._claimed():
            return ()
        self._making = self.path.with_suffix(f".{os.getpid()}.tmp")
        return (f"-XX:ArchiveClassesAtExit={self._making}", *_QUIET)

    @property
    def is_made(self) -> bool:
        """Whether the program that runs makes it, which takes an orderly end."""
        return self._making is not None

    def keep(self, ended_well: bool) -> None:
        """Java has ended: give what it made its name, or leave it to the next run."""
        if self._making is None:
            return
        with contextlib.suppress(OSError):
            if ended_well and self._making.is_file():
                self._making.replace(self.path)
            self._making.unlink(missing_ok=True)
            self._claim.unlink(missing_ok=True)
        self._making = None

    def _claimed(self) -> bool:
        """Whether this process makes the archive; the claim of one that is gone does not count."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError, ValueError):
            holder = int(self._claim.read_text())
            if not Path(f"/proc/{holder}").exists():
                self._claim.unlink()
        try:
            with self._claim.open("x") as claim:
                claim.write(str(os.getpid()))
        except OSError:
            return False
        return True


def with_archive(command: Sequence[str]) -> tuple[list[str], ProgramArchive | None]:
    """The command with the options of its archive; as it is where it does not start a program."""
    if Path(command[0]).name != "java" or "-cp" not in command:
        return list(command), None
    archive = ProgramArchive(command)
    return [command[0], *archive.options(), *command[1:]], archive
