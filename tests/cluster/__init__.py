"""A real RocketMQ on loopback for tests and for recording samples."""

from __future__ import annotations
