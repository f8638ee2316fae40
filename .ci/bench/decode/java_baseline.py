"""The Java baseline: built once by Maven into the cache, then run by `java`."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.captures.captures import CACHE

SOURCE = Path(__file__).with_name("java")
BUILD = CACHE / "java"
PASSES = 6


@dataclass(frozen=True, slots=True)
class JavaResult:
    """What one Java process says of itself."""

    first: float
    """Seconds of the first pass, classes loaded and code interpreted on the way."""
    warm: float
    """Median of the seconds of the passes after it."""
    warm_cpu: float
    """Median of the CPU seconds of the decoding thread in those passes."""
    commands: int
    """Commands found."""
    exchanges: int
    """Rows written."""
    multiset: str
    """Sum of the identity hashes, 16 hexadecimal digits."""


def java_missing() -> str:
    """Return why the Java baseline cannot be used, or an empty text; builds it when needed."""
    if not shutil.which("java"):
        return "java is not installed"
    stamp = BUILD / "source.digest"
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return ""
    if not shutil.which("mvn"):
        return "Maven is not installed, and the Java baseline is not built"
    shutil.rmtree(BUILD, ignore_errors=True)
    build = f"-Dbench.output={BUILD}"
    command = ["mvn", "-q", "-B", "-f", str(SOURCE / "pom.xml"), build, "package"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        return f"the Java baseline cannot be built: {lines[0] if lines else 'mvn failed'}"
    stamp.write_text(digest.hexdigest())
    return ""


def java_command(capture: Path, rows: Path) -> list[str]:
    """Return the command that decodes `capture` several times and writes `rows` each time."""
    classes = f"{BUILD / 'classes'}:{BUILD / 'lib'}/*"
    return [
        "java", "-XX:+UseSerialGC", "-cp", classes, "bench.Main", str(capture), str(rows),
        str(PASSES),
    ]  # fmt: skip


def java_result(output: Path) -> JavaResult:
    """Return what the process printed into `output`."""
    said = json.loads(output.read_text())
    return JavaResult(
        said["first"],
        median(said["warm"]),
        median(said["warm_cpu"]),
        said["commands"],
        said["exchanges"],
        said["multiset"],
    )
