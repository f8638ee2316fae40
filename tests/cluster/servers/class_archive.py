"""Java's classes, kept for the next start: it takes half of the CPU then (JDK 17).

Rules: a class path has an archive of its servers and one of its clients. What loads most of their
classes makes it where there is none: a broker as soon as it serves, a proxy when it has served, a
host when its first program has ended. Java ignores an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from .artifacts import LIGHT, Unavailable, cache_root, java_program, made_once

PROXY = "org.apache.rocketmq.proxy.ProxyStartup"
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Warnings about classes that cannot be kept would stand between the lines of the program."""
_SECONDS = 120
_FILE = "classes.jsa"


class ClassArchive:
    """An archive of a kind, and of what else it depends on; one process of the machine makes it."""

    def __init__(self, kind: str, *key: str) -> None:
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()[:12]
        self._folder = f"archives/{kind}-{digest}"

    @property
    def options(self) -> tuple[str, ...]:
        """Options for Java with which it uses the archive; none where there is no archive."""
        path = cache_root() / self._folder / _FILE
        return (f"-XX:SharedArchiveFile={path}", *_QUIET) if path.is_file() else ()

    def make(self, write: Callable[[Path], object]) -> None:
        """Let `write` make the file, unless there is one; a failure costs no more than the time."""

        def make(work: Path) -> Path:
            made = work / "archive"
            made.mkdir()
            write(made / _FILE)
            if not (made / _FILE).is_file():
                raise Unavailable("no archive was made")
            return made

        with suppress(OSError, Unavailable, subprocess.SubprocessError):
            made_once(self._folder, make)


def archive_of(command: Sequence[str]) -> ClassArchive | None:
    """The archive of a command that starts Java on a class path; None for any other."""
    if Path(command[0]).name != "java" or "-cp" not in command:
        return None
    class_path, main = command[command.index("-cp") + 1 :][:2]
    kind = "servers" if main in ("Node", PROXY) else "clients"
    return ClassArchive(kind, command[0], class_path)


def with_archive(command: Sequence[str]) -> list[str]:
    """A command that uses the archive of its class path."""
    archive = archive_of(command)
    return [command[0], *(archive.options if archive else ()), *command[1:]]


def keep_classes(command: Sequence[str], pid: int) -> None:
    """Let the process of a command write what it has loaded, if it is one of those that do."""

    def write(path: Path) -> None:
        asked = [java_program("jcmd"), *(f"-J{option}" for option in LIGHT), str(pid)]
        asked += ["VM.cds", "static_dump", str(path)]
        subprocess.run(asked, capture_output=True, check=True, timeout=_SECONDS)

    archive = archive_of(command)
    if archive and {"Host", PROXY, "broker"} & set(command):
        archive.make(write)
