"""Runs real clients and Java's own classes, and reads what they tell."""

from __future__ import annotations
