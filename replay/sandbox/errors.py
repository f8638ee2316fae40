"""What keeps a sandbox from starting: a reason and the way out."""

from __future__ import annotations


class SandboxError(Exception):
    """The sandbox cannot do what its options ask for."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """what is wrong, with the name of the option or file"""
        self.hint = hint
        """the way out; may be empty"""
