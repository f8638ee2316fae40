"""Measures `decode` against other decoders and judges what was measured."""

from __future__ import annotations
