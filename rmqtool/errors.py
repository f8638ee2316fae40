"""The errors that programs catch: one family, each with the place and the way out in its text.

    Error
    ├─ ReadError              what was named cannot be read: no such file, no capture, no right
    ├─ FilterError            a filter is none; the text points at the place
    ├─ ArgumentError          an argument makes no sense: an unknown table, a time that is none
    ├─ WriteError             a result cannot be written where it should go
    ├─ PluginError            a plug-in is not there, or cannot be loaded
    └─ MissingExtraError      a library of an extra is not installed

Whatever a capture contains is not an error: it is a finding.
"""

from __future__ import annotations


class Error(Exception):
    """What rmqtool raises on purpose; all else is a defect."""

    def __init__(
        self, reason: str, source: str | None = None, offset: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(reason, source, offset, hint)
        self.reason = reason
        """what is wrong"""
        self.source = source
        """file, folder or interface that it is about; None: none"""
        self.offset = offset
        """byte in the file; None: it is about no place in it"""
        self.hint = hint
        """the way out; may have several lines, or be empty"""

    def __str__(self) -> str:
        where = self.source
        if where is not None and self.offset is not None:
            where = f"{where}, offset {self.offset}"
        text = self.reason if where is None else f"{where}: {self.reason}"
        hints = "".join(f"\n  {line.removeprefix('  ')}" for line in self.hint.splitlines())
        return text + hints

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.source, self.offset, self.hint)


class ReadError(Error):
    """What was named cannot be read."""


class FilterError(Error, ValueError):
    """A filter is none; the hint has the expression with a caret at the place."""


class ArgumentError(Error, ValueError):
    """An argument makes no sense."""


class WriteError(Error):
    """A result cannot be written."""


class PluginError(Error):
    """A plug-in is not there, or cannot be loaded."""


class MissingExtraError(Error, ImportError):
    """A library that an extra installs is not there; the hint has the command that installs it."""
