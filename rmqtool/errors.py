"""The errors of the API: one hierarchy, each with position and hint in its text.

    Error
    ├─ ReadError              an input cannot be read: missing, not a capture, permission denied
    ├─ FilterError            a filter is invalid; the text points at the position
    ├─ ArgumentError          an argument is invalid, such as an unknown table or a malformed time
    ├─ WriteError             a result cannot be written
    ├─ PluginError            a plug-in is missing or cannot be loaded
    └─ MissingExtraError      a library of an extra is not installed

Damage in a capture is not an error but a finding.
"""

from __future__ import annotations


class Error(Exception):
    """Base of all expected errors; any other exception is a defect."""

    def __init__(
        self, reason: str, source: str | None = None, offset: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(reason, source, offset, hint)  # pickling passes these again
        self.reason = reason
        """reason, as text"""
        self.source = source
        """file, folder, or interface, or None"""
        self.offset = offset
        """offset in the file, or None"""
        self.hint = hint
        """hint; may have several lines, or be empty"""

    def __str__(self) -> str:
        where = self.source
        if where is not None and self.offset is not None:
            where = f"{where}, offset {self.offset}"
        text = self.reason if where is None else f"{where}: {self.reason}"
        hints = "".join(f"\n  {line.removeprefix('  ')}" for line in self.hint.splitlines())
        return text + hints


class ReadError(Error):
    """An input cannot be read."""


class FilterError(Error, ValueError):
    """A filter is invalid; the hint has the expression with a caret at the position."""


class ArgumentError(Error, ValueError):
    """An argument is invalid."""


class WriteError(Error):
    """A result cannot be written."""


class PluginError(Error):
    """A plug-in is missing or cannot be loaded."""


class MissingExtraError(Error, ImportError):
    """A library of an extra is not installed; the hint has the command that installs it."""
