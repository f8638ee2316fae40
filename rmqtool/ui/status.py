"""Exit statuses, and the errors that end a command with one."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What rmqtool exits with; documented in README.md."""

    OK = 0
    """everything was done"""
    FAILURE = 1
    """something could not be read, decoded, written or reached; the message says what to do"""
    USAGE = 2
    """the command line is wrong"""
    FINDINGS = 3
    """`--check`: there are findings of severity error"""
    DIFFERENCES = 4
    """`--fail-on`: a condition holds for what was captured, or a replay came out otherwise"""
    INTERRUPTED = 130
    """Ctrl-C, as a shell reports SIGINT"""
    TERMINATED = 143
    """SIGTERM, as a shell reports it"""


class CommandError(Exception):
    """Ends the command with a message for the user and a status, without a traceback."""

    def __init__(
        self, message: str, hint: str = "", status: ExitStatus = ExitStatus.FAILURE
    ) -> None:
        super().__init__(message)
        self.message = message
        """what is wrong, with the name of the file or option"""
        self.hint = hint
        """the way out; may have several lines"""
        self.status = status
        """what to exit with"""


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived: ends what Ctrl-C ends, in the same orderly way."""
