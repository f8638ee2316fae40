"""Write the bytecode of all modules: `python -m tests.bytecode`.

All workers of pytest collect the tests at the same time. What is compiled before is compiled
once, and by both cores. pytest rewrites the assertions of test modules: it compiles these itself.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dissectors", "replay", "analytics", "rmqtool", "tests", ".ci")
_REWRITTEN = f"-pytest-{pytest.__version__}.pyc"
"""how the names of what pytest has compiled end"""


def bytecode_of(test: Path) -> Path:
    """Return the file in which pytest keeps the bytecode of a test module."""
    plain = cache_from_source(str(test))
    return Path(plain.removesuffix(".pyc") + _REWRITTEN)


def stale(tests: Iterable[Path]) -> list[Path]:
    """Return the test modules whose bytecode is missing or older, the largest first."""
    found = [
        test
        for test in tests
        if not bytecode_of(test).is_file()
        or bytecode_of(test).stat().st_mtime < test.stat().st_mtime
    ]
    return sorted(found, key=lambda test: (-test.stat().st_size, test))


def main() -> int:
    """Compile what is not compiled yet; return pytest's status where a test cannot be collected."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1, workers=os.cpu_count() or 1)
    tests = stale(ROOT.glob("tests/**/test_*.py"))
    shares = [tests[share::2] for share in range(2)]
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only"]
    runs = [
        subprocess.Popen([*command, *map(str, share)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for share in shares
        if share
    ]
    worst = 0
    for run in runs:
        said, _ = run.communicate()
        if run.returncode:
            worst = run.returncode
            print("\n".join(said.splitlines()[-30:]))
    return worst


if __name__ == "__main__":
    sys.exit(main())
