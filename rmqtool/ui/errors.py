"""Errors as a user sees them: a message, a hint, a status; never a traceback.

`RMQTOOL_DEBUG=1` shows the traceback of unexpected errors.
"""

from __future__ import annotations

import errno
import io
import os
import platform
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, cast

from dissectors.printable import printable
from dissectors.times import UTC_ZONE

from ..errors import Error
from ..version import VERSION
from .extras import missing_library, way_out
from .figures import show_times_in
from .option_names import LibraryError, in_options
from .status import CommandError, ExitStatus, Terminated

DEBUG_VARIABLE = "RMQTOOL_DEBUG"
ISSUES = "the project's issue tracker"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_FILE: Final = (errno.EMFILE, errno.ENFILE)
_COMPLETE: Final = {
    *("CaptureError", "LiveError", "DecodedLogError", "MissingLibraryError"),
    *("SourceError", "RewriteError", "JournalError", "TargetRefused", "FolderRefused"),
}
"""errors whose text has all there is to say"""
_IN_FRAMES: Final = (ExitStatus.FAILURE, ExitStatus.USAGE)
"""statuses of errors, unlike true conditions and Ctrl-C"""


def guarded(command: Callable[[], ExitStatus]) -> ExitStatus:
    """Run `command`; return its status, or report an error and return that status."""
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader closed the pipe
        silence_stdout()
        return ExitStatus.OK
    except Terminated:
        return said("terminated", status=ExitStatus.TERMINATED)
    except KeyboardInterrupt:
        return said("interrupted", status=ExitStatus.INTERRUPTED)
    except CommandError as error:
        return said(error.message, error.hint, error.status)
    except OSError as error:
        return report_system_error(error)
    except Exception as error:
        text = text_of_error(error)
        return _unexpected(error) if text is None else said(*text, _status_of(error))
    finally:
        show_times_in(UTC_ZONE)  # the zone applies to one command


def said(message: str, hint: str = "", status: ExitStatus = ExitStatus.FAILURE) -> ExitStatus:
    """Print an error on standard error; return the status.

    On a terminal it is in a frame; elsewhere as plain lines.
    """
    first, *more = f"{message}\n{hint}".split("\n")
    # Indented, because a broker's text must not look like a line of rmqtool.
    rest = [line if line.startswith("  ") else f"  {line}" for line in more if line]
    lines = list(map(printable, [f"rmqtool: {first}", *rest]))
    try:
        if status in _IN_FRAMES and sys.stderr.isatty():
            lines = _framed([printable(first), *lines[1:]]) or lines
        print("\n".join(lines), file=sys.stderr)
    except OSError:
        return status
    return status


def _framed(lines: Sequence[str]) -> list[str]:
    """Return lines in a frame, or none if they cannot be drawn."""
    try:
        from .screen.panels import error_lines

        return error_lines(lines, sys.stderr)
    except Exception:  # report the error even in a broken installation
        return []


def print_note(text: str) -> None:
    """Write a note to standard error, with control characters escaped.

    Every remark goes this way: names of files and words of the network cannot steer a terminal.
    """
    lines = [printable(line) for line in f"rmqtool: {text}".split("\n")]
    with suppress(OSError):  # nobody reads it
        print("\n".join(lines), file=sys.stderr, flush=True)


def report_system_error(error: OSError) -> ExitStatus:
    """Report an OSError; without a file name it is about standard output."""
    reason = reason_of(error)
    hint = "raise the limit of open files: ulimit -n 1024" if error.errno in _NO_FILE else ""
    if error.filename:
        return said(f"{error.filename}: {reason}", hint)
    if error.errno in (*_NO_ROOM, errno.EBADF):
        silence_stdout()
        return said(f"standard output cannot be written: {reason}")
    return said(reason, hint)


def reason_of(error: OSError) -> str:
    """Return the reason of an OSError as text."""
    if error.errno == errno.EBADF:
        return "it is closed"
    return error.strerror or str(error) or type(error).__name__


def open_standard_files() -> None:
    """Replace closed standard files.

    Standard input is then empty, writing to standard output fails as for a closed file, and
    standard error is discarded.
    """
    for number, name, opened_for, mode in (
        (0, "stdin", os.O_RDONLY, "r"),
        (1, "stdout", os.O_RDONLY, "w"),
        (2, "stderr", os.O_WRONLY, "w"),
    ):
        # Otherwise the next opened file or connection would get this number, and our output.
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, opened_for)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character ends no run


def silence_stdout() -> None:
    """Prevent errors when Python flushes unwritable output at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())


def _status_of(error: Exception) -> ExitStatus:
    """Return the status of an expected error; an output that exists is a wrong command line."""
    names = {cls.__name__ for cls in type(error).__mro__}  # its module loads slowly
    return ExitStatus.USAGE if "FolderRefused" in names else ExitStatus.FAILURE


def text_of_error(error: Exception) -> tuple[str, str] | None:
    """Return message and hint (may be empty) of an expected error, or None for a defect.

    The modules of the libraries are imported only if they raised it.
    """
    if isinstance(error, CommandError):
        return error.message, error.hint
    if isinstance(error, Error):
        return str(error), ""
    names = {cls.__name__ for cls in type(error).__mro__}
    if "MemoryError" in names:
        return "not enough memory", "read less of the input: --since, --until, --where, --limit"
    if names & _COMPLETE:
        return str(error), ""
    if "ReportError" in names:
        return str(error), getattr(error, "hint", "")
    if names & {"ClientError", "CredentialsError", "SandboxError"}:
        return in_options(cast(LibraryError, error))
    if isinstance(error, ImportError) and (missing := missing_library(error)):
        return f"this needs {missing[0]}, which is not installed", way_out(missing[1])
    return None


def _unexpected(error: Exception) -> ExitStatus:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exception(error, file=sys.stderr)
        return ExitStatus.FAILURE
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(last.filename)}:{last.lineno}"
    return said(
        f"this should not have happened: {type(error).__name__}: {error} ({where})",
        f"Please report it to {ISSUES} with the command line, the line above, and if possible\n"
        f"the capture: rmqtool {VERSION}, Python {platform.python_version()}, "
        f"{platform.system()}. {DEBUG_VARIABLE}=1 shows where it came from.",
    )
