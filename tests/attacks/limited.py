"""Runs rmqtool as a user does, in a process that gets no more memory than a test allows."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.rmqtool.command import PROGRAM, ROOT

MIB = 1 << 20


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

    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as output, err.open("wb") as errors:
        started = subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            stdout=output,
            stderr=errors,
            cwd=ROOT,
            env=os.environ | {"RMQTOOL_DEBUG": "1"},
            preexec_fn=limit,
        )
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    return Ended(
        started.returncode, out.stat().st_size, err.read_text("utf-8"), used.ru_maxrss * 1024
    )
