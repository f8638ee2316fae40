"""Holds what is decoded to what real clients and Java's classes say."""

from __future__ import annotations
