"""Rewrite captures and rows for sharing: keyed, consistent, and of the same length."""

from __future__ import annotations

from typing import Final

# Here, because help names them, and need not load the modules of this folder.
KINDS: Final = ("addresses", "names", "remarks", "bodies")
"""Kinds of replaced data."""
NAME_KINDS: Final = ("topics", "groups", "brokers", "clients", "keys", "tags")
"""Kinds of names that can be kept separately."""
