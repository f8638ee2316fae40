"""Starts a real RocketMQ on loopback from what Maven Central has, asks it and makes it fail."""

from __future__ import annotations
