"""Scenarios with a proxy between clients and brokers."""

from __future__ import annotations
