"""Java's classes, kept for the next start: it takes two thirds of the CPU then (JDK 17).

Rules: a class path has an archive of its servers, a broker's, a proxy's or a NameServer's, and one
of its clients. What loads most of them makes it: a broker as soon as it serves, a proxy when it has
served, a host when its first program has ended. What starts before that does without. Java ignores
an archive that does not fit.
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
PROXY = "org.apache.rocketmq.proxy.ProxyStartup"


class ClassArchive:
    """The archive that a program of Java uses, and makes where it is one of those that do."""

    def __init__(self, command: Sequence[str]) -> None:
        """`command` starts the program."""
        place = command.index("-cp")
        main, *words = command[place + 2 :]
        kind = "servers" if main in ("Node", PROXY) else "clients"
        key = "\0".join((command[0], command[place + 1]))
        digest = hashlib.sha256(key.encode()).hexdigest()[:12]
        self.path = cache_root() / "archives" / f"{kind}-{digest}.jsa"
        """the archive, whether it exists or not"""
        self._claim = self.path.with_suffix(".claim")
        self._makes = main in ("Host", PROXY) or words[0] == "broker"
        self._is_claimed = False

    def options(self) -> tuple[str, ...]:
        """Options for Java that use the archive, or with which it can be made; else none."""
        if self.path.is_file():
            return (f"-XX:SharedArchiveFile={self.path}", *_QUIET)
        self._is_claimed = self._makes and self._claimed()
        return ("-XX:+RecordDynamicDumpInfo", *_QUIET) if self._is_claimed else ()

    def make(self, pid: int) -> None:
        """Let the program that runs write what it has loaded, where it is the one to do so."""
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
        """The program has ended, or has made the archive: what is not made is left to the next."""
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


def archive_of(command: Sequence[str]) -> ClassArchive | None:
    """The archive of a command that starts Java on a class path; None for any other."""
    is_java = Path(command[0]).name == "java" and "-cp" in command
    return ClassArchive(command) if is_java else None
