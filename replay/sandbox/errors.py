"""The error of a sandbox that cannot start, with a reason and a hint."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot be run with its options."""

    def __init__(self, reason: str, hint: str = "", *, setting: str = "") -> None:
        super().__init__(f"{setting}: {reason}" if setting else reason)
        self.reason = reason
        """what is wrong, with the name of a file"""
        self.hint = hint
        """how to fix it; may be empty"""
        self.setting = setting
        """field of `SandboxOptions` whose value is wrong; empty if none is"""
