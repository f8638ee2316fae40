"""The cells of the body tables: a member's Java type, and its long name if it is written short."""

from __future__ import annotations

from typing import NamedTuple


class ShortMember(NamedTuple):
    """A member that is written under a short name."""

    long_name: str
    """Name of the Java field, which decoded bodies carry."""
    java_type: str
    """As in the other cells."""


Members = dict[str, str | ShortMember]
"""Member as fastjson names it → Java type."""

short = ShortMember
