"""Java for Spark: which one, with which options, and an archive of its classes for a fast start.

Rules: the archive (class data sharing, `-XX:ArchiveClassesAtExit`) is made once for a Java, a Spark
and a set of options, is cached, and is only ever an accelerator: one that does not fit is ignored
by Java. Most inputs are done before the optimising compiler would pay, so they do without it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dissectors.foreign import natural_of

from ..errors import NoJavaError

LEAST_VERSION = 17
"""What Spark 4 needs."""
HOW_TO_INSTALL = (
    "install a Java 17 or newer: apt install openjdk-17-jre-headless, dnf install"
    " java-17-openjdk-headless, brew install openjdk@17"
)
_ALWAYS = (
    "-Xshare:auto",
    "-Xlog:disable",  # an archive that does not fit is not news for the user
    "-Xlog:all=error:stderr",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv6Addresses=false",
)
_SMALL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LARGE = (
    "-XX:-DontCompileHugeMethods",  # Spark generates them; they would be interpreted
    "-XX:+UseParallelGC",
)
_QUICK = ("-XX:TieredStopAtLevel=1", *_LARGE)
_LONG = (
    *_LARGE,
    # The optimising compiler is for loops over rows, not for what plans queries: by Java's own
    # limits, a thirtieth of these, it took more than half as long as all tasks.
    "-XX:Tier4InvocationThreshold=150000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=500000",
    "-XX:Tier4BackEdgeThreshold=1500000",
)


class Java(NamedTuple):
    """A Java that can run Spark."""

    home: str
    """what JAVA_HOME should be"""
    version: str
    """as it says, `17.0.15`"""


def java_of(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the Java of JAVA_HOME, else of PATH; raise NoJavaError where there is none."""
    home = environment.get("JAVA_HOME", "")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java") or ""
    if not program or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, and has no bin/java" if home else "there is none on PATH"
        raise NoJavaError(f"Spark needs Java, and {where}", HOW_TO_INSTALL)
    home = home or str(Path(program).resolve().parents[1])
    version = _version_of(home, program)
    major = re.match(r"(?:1\.)?(\d+)", version)
    if major is None or (natural_of(major[1]) or 0) < LEAST_VERSION:
        found = version or "one that does not say its version"
        raise NoJavaError(
            f"Spark needs Java {LEAST_VERSION} or newer, and {program} is {found}", HOW_TO_INSTALL
        )
    return Java(home, version)


def _version_of(home: str, program: str) -> str:
    """Return the version from the file `release`, else by asking, which takes longer."""
    pattern = re.compile(r'(?:JAVA_VERSION=|version )"([^"]+)"')
    try:
        text = Path(home, "release").read_text()
    except OSError:
        text = ""
    found = pattern.search(text)
    if found is None:
        try:
            asked = subprocess.run(
                [program, "-version"], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        found = pattern.search(asked.stderr)
    return found[1] if found else ""


def options_of(small: bool, quick: bool) -> tuple[str, ...]:
    """Return Java's options for Spark; the input is done in seconds (`small`), in a few minutes."""
    return (*_ALWAYS, *(_SMALL if small else _QUICK if quick else _LONG))


def _written(folder: str) -> str:
    """Return when files were last put into a folder; empty where nobody can tell."""
    try:
        return str(os.stat(folder).st_mtime_ns)
    except OSError:
        return ""


class ClassArchive:
    """The archive for one Java, installed Spark and set of options."""

    def __init__(
        self, java: Java, spark: str, jars: str, options: tuple[str, ...], folder: Path
    ) -> None:
        """`spark` is its version, `jars` where it is installed; `folder` is for the archives.

        Java ignores an archive of other paths, and one of jars that were written since.
        """
        written = _written(os.path.join(jars, "jars"))
        key = "\0".join((java.home, java.version, spark, jars, written, *options))
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        self.path = folder / f"spark-{spark}-{digest}.jsa"
        """the archive, whether it exists or not"""
        self._making = self.path.with_suffix(f".{os.getpid()}.tmp")

    @property
    def exists(self) -> bool:
        """Whether it can be used."""
        return self.path.is_file()

    def options(self) -> tuple[str, ...]:
        """Return the options that use the archive, or that make it at the end of this Java."""
        if self.exists:
            return (f"-XX:SharedArchiveFile={self.path}",)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ()
        free = shutil.disk_usage(self.path.parent).free
        if " " in str(self.path) or free < 1 << 30 or not os.access(self.path.parent, os.W_OK):
            return ()
        return (f"-XX:ArchiveClassesAtExit={self._making}",)

    def keep(self) -> None:
        """Name the archive that Java made, which has ended, and remove older ones."""
        if not self._making.is_file():
            return
        try:
            self._making.replace(self.path)
            for other in self.path.parent.glob("spark-*.jsa"):
                if other != self.path and other.stat().st_mtime < self.path.stat().st_mtime - 86400:
                    other.unlink()
        except OSError:
            self.drop()

    def drop(self) -> None:
        """Remove what Java, which was ended, may have made in part."""
        with suppress(OSError):
            self._making.unlink(missing_ok=True)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where rmqtool caches what it can make again."""
    base = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "rmqtool"
