"""Tests replay with real brokers."""

from __future__ import annotations
