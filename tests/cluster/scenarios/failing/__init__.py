"""Scenarios in which servers, connections or packets get lost."""

from __future__ import annotations
