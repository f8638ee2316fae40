"""A pager for long output: `--pager`.

Rules: the pager is $PAGER or `less`, which leaves a short text on the screen. It is started without
a shell. Notes of the run are held back until the pager ends.
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
"""options of less, if the user has none: quit on a short text, show colours, keep the screen"""


class _ToPager(io.TextIOWrapper):
    """Sends standard output of a terminal to a pager."""

    def isatty(self) -> bool:
        return True


@contextmanager
def paged(wanted: bool) -> Iterator[None]:
    """Redirect standard output to a pager; do nothing without a terminal or a pager."""
    pager = _started() if wanted and sys.stdout.isatty() else None
    if pager is None:
        yield
        return
    assert pager.stdin is not None
    output, errors, columns = sys.stdout, sys.stderr, os.environ.get("COLUMNS")
    # Output to a pipe has no width, but the pager shows it on this terminal.
    os.environ["COLUMNS"] = columns or str(shutil.get_terminal_size().columns)
    sys.stdout = _ToPager(pager.stdin, encoding=output.encoding, errors="replace")
    held = io.StringIO()
    if errors.isatty():
        sys.stderr = held
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # the reader closed the pipe
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
    """Wait for the pager, which handles Ctrl-C itself."""
    while True:
        try:
            pager.wait()
            return
        except KeyboardInterrupt:
            continue
