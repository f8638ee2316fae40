"""Captures the traffic of a cluster and records `samples/` with it."""

from __future__ import annotations
