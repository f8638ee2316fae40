"""Tests the producer and `send` with real brokers."""

from __future__ import annotations
