"""Exit statuses, and the errors that end a command with one."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses of rmqtool; documented in README.md."""

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
    """Ends the command with a message and a status, without a traceback."""

    def __init__(
        self, message: str, hint: str = "", status: ExitStatus = ExitStatus.FAILURE
    ) -> None:
        super().__init__(message)
        self.message = message
        """message, with the name of the file or option"""
        self.hint = hint
        """hint; may have several lines"""
        self.status = status


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived: handled like Ctrl-C."""
