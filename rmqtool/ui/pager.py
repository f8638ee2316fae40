"""A pager for what is longer than the screen: `--pager`.

Rules: the pager is the user's (PAGER), else `less`, which leaves a short text on the screen. It is
started without a shell. What a run says meanwhile on the terminal waits until the pager ends.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

DEFAULT: Final = "less"
OPTIONS: Final = "FRX"
"""of less, where the user has none: end on a short text, show colours, keep the screen"""


class _ToPager(io.TextIOWrapper):
    """Standard output that a terminal shows, by way of a pager."""

    def isatty(self) -> bool:
        return True


@contextmanager
def paged(wanted: bool) -> Iterator[None]:
    """Give standard output to a pager; do nothing without a terminal or a pager."""
    pager = _started() if wanted and sys.stdout.isatty() else None
    if pager is None:
        yield
        return
    assert pager.stdin is not None
    output, errors, columns = sys.stdout, sys.stderr, os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = columns or str(shutil.get_terminal_size().columns)
    sys.stdout = _ToPager(pager.stdin, encoding=output.encoding, errors="replace")
    held = io.StringIO()
    if errors.isatty():
        sys.stderr = held
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # whoever read it has seen enough
            sys.stdout.flush()
        with suppress(OSError, ValueError):
            pager.stdin.close()
        _wait(pager)
        sys.stdout, sys.stderr = output, errors
        if columns is None:
            del os.environ["COLUMNS"]
        errors.write(held.getvalue())
        errors.flush()


def _started() -> subprocess.Popen[bytes] | None:
    environment = {"LESS": OPTIONS, "LESSCHARSET": "utf-8", **os.environ}
    try:
        command = shlex.split(os.environ.get("PAGER", "") or DEFAULT)
        return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except (OSError, ValueError, IndexError):
        return None


def _wait(pager: subprocess.Popen[bytes]) -> None:
    """Wait until the pager ends: Ctrl-C within it is for what it shows."""
    while True:
        try:
            pager.wait()
            return
        except KeyboardInterrupt:
            continue
