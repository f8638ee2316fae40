"""Holds the sandbox to real brokers and to real clients."""

from __future__ import annotations
