"""Find Java for Spark, and its options."""

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
"""Minimum Java version of Spark 4."""
HOW_TO_INSTALL = (
    "install Java 17 or newer: apt install openjdk-17-jre-headless, dnf install"
    " java-17-openjdk-headless, brew install openjdk@17"
)
OPTIONS = (
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv6Addresses=false",
    "-XX:-DontCompileHugeMethods",  # Spark generates such methods; they would be interpreted
    "-XX:+UseParallelGC",
    "-XX:MetaspaceSize=256m",  # Spark's classes: loading them would collect all garbage four times
    # The optimizing compiler helps loops over rows, not query planning: with Java's own
    # thresholds, a thirtieth of these, it took more than half as long as all tasks.
    "-XX:Tier4InvocationThreshold=150000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=500000",
    "-XX:Tier4BackEdgeThreshold=1500000",
)
"""Java's options for Spark."""


class Java(NamedTuple):
    """A Java installation that can run Spark."""

    home: str
    """value for JAVA_HOME"""
    version: str
    """version as reported, such as `17.0.15`"""


def java_of(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the Java of JAVA_HOME or else of PATH; raise NoJavaError if there is none."""
    home = environment.get("JAVA_HOME", "")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java") or ""
    if not program or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "java is not on PATH"
        raise NoJavaError(f"Spark needs Java, and {where}", HOW_TO_INSTALL)
    home = home or str(Path(program).resolve().parents[1])
    version = _version_of(home, program)
    # Java 8 calls itself 1.8.
    major = re.match(r"(?:1\.)?(\d+)", version)
    if major is None or (natural_of(major[1]) or 0) < LEAST_VERSION:
        shown = version or "its version is unknown"
        raise NoJavaError(
            f"Spark needs Java {LEAST_VERSION} or newer, and {program} is {shown}", HOW_TO_INSTALL
        )
    return Java(home, version)


def _version_of(home: str, program: str) -> str:
    """Return the version from the file `release`, or else from the slower `java -version`."""
    pattern = re.compile(r'(?:JAVA_VERSION=|version )"([^"]+)"')
    try:
        text = Path(home, "release").read_text()
    except OSError:
        text = ""
    match = pattern.search(text)
    if match is None:
        try:
            asked = subprocess.run(
                [program, "-version"], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        match = pattern.search(asked.stderr)
    return match[1] if match else ""
