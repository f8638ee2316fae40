"""Runs rmqtool as a user does, in a process that gets no more memory than a test allows."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.rmqtool.command import PROGRAM, ROOT

MIB = 1 << 20
SPAWN = ROOT / ".ci" / "bench" / "spawn.py"


class Ended(NamedTuple):
    """What a command left behind."""

    status: int
    written: int
    """bytes on standard output"""
    err: str
    peak: int
    """bytes of memory that were in use at most"""


def limited(folder: Path, most: int, *arguments: str | Path) -> Ended:
    """Run a command with `most` bytes of address space; standard output goes to a file."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    environment = os.environ | {"RMQTOOL_DEBUG": "1"}
    environment.pop("COLUMNS", None)  # pytest-xdist sets it; nobody looks at a file
    out, err = folder / "stdout", folder / "stderr"
    spawn = [sys.executable, "-I", "-S", str(SPAWN), str(out), str(err)]
    said = subprocess.run(
        [*spawn, *PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
        preexec_fn=limit,
        check=True,
    )
    took = json.loads(said.stdout)
    peak = int(took["rss"] * MIB)
    return Ended(took["exit"], out.stat().st_size, err.read_text("utf-8"), peak)
