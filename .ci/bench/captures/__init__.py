"""Generates captures with known contents."""

from __future__ import annotations
