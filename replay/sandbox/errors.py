"""What keeps a sandbox from starting: a reason and the way out."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot do what its options ask for."""

    def __init__(self, reason: str, hint: str = "", *, setting: str = "") -> None:
        super().__init__(f"{setting}: {reason}" if setting else reason)
        self.reason = reason
        """what is wrong, with the name of a file"""
        self.hint = hint
        """the way out; may be empty"""
        self.setting = setting
        """field of `SandboxOptions` whose value is wrong; empty if none is"""
