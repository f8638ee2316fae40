"""Kinds of replaced data; a module of its own, so that help need not load the rest."""

from __future__ import annotations

from typing import Final

KINDS: Final = ("addresses", "names", "remarks", "bodies")
"""Kinds of replaced data."""
NAME_KINDS: Final = ("topics", "groups", "brokers", "clients", "keys", "tags")
"""Kinds of names that can be kept separately."""
