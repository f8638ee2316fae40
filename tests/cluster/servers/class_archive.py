"""Java's classes of servers, kept for the next: a start takes two thirds of the CPU (JDK 17).

Rules: the first broker of a release makes the archive as soon as it serves; servers that start
before that do without. Java ignores an archive that does not fit. Client programs have none: a run
starts each a few times, and to make one takes as long as three starts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .artifacts import LIGHT, Unavailable, cache_root, java_program

_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Warnings about classes that cannot be kept would stand between the lines of the program."""
_SECONDS = 120


class ServerArchive:
    """The archive of a class path: of its broker, and of its NameServer, which is part of that."""

    def __init__(self, command: Sequence[str]) -> None:
        """`command` starts a server."""
        place = command.index("-cp")
        key = "\0".join((command[0], command[place + 1]))
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        self.path = cache_root() / "archives" / f"servers-{digest}.jsa"
        """the archive, whether it exists or not"""
        self._claim = self.path.with_suffix(".claim")
        self._is_broker = command[place + 3] == "broker"
        self._is_claimed = False

    def options(self) -> tuple[str, ...]:
        """Options for Java that use the archive, or with which it can be made; else none."""
        if self.path.is_file():
            return (f"-XX:SharedArchiveFile={self.path}", *_QUIET)
        self._is_claimed = self._is_broker and self._claimed()
        return ("-XX:+RecordDynamicDumpInfo", *_QUIET) if self._is_claimed else ()

    def make(self, pid: int) -> None:
        """Let the broker that runs write what it has loaded, where it is the one to do so."""
        if not self._is_claimed:
            return
        making = self.path.with_suffix(f".{os.getpid()}.tmp")
        options = [f"-J{option}" for option in LIGHT]
        with contextlib.suppress(OSError, Unavailable, subprocess.SubprocessError):
            command = [java_program("jcmd"), *options, str(pid), "VM.cds", "dynamic_dump"]
            subprocess.run(
                [*command, str(making)], capture_output=True, check=True, timeout=_SECONDS
            )
            making.replace(self.path)
        self.release()

    def release(self) -> None:
        """The broker has ended, or has made the archive: what is not made is left to the next."""
        if self._is_claimed:
            with contextlib.suppress(OSError):
                self._claim.unlink(missing_ok=True)
        self._is_claimed = False

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


def archive_of(command: Sequence[str]) -> ServerArchive | None:
    """The archive of a command that starts a server of RocketMQ; None for any other."""
    if Path(command[0]).name == "java" and "-cp" in command:
        main = command[command.index("-cp") + 2]
        return ServerArchive(command) if main == "Node" else None
    return None
