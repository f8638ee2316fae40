"""Java for Spark: which one, and with which options."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
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
OPTIONS = (
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv6Addresses=false",
    "-XX:-DontCompileHugeMethods",  # Spark generates them; they would be interpreted
    "-XX:+UseParallelGC",
    # The optimising compiler is for loops over rows, not for what plans queries: by Java's own
    # limits, a thirtieth of these, it took more than half as long as all tasks.
    "-XX:Tier4InvocationThreshold=150000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=500000",
    "-XX:Tier4BackEdgeThreshold=1500000",
)
"""Java's options for Spark."""


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
