"""Decode and encode bodies of commands: one entry per operation, by tables or its own decoder."""

from __future__ import annotations

from .body import Body
from .registry import body_form, body_value, decode_body, encode_body

__all__ = [
    "Body",
    "body_form",
    "body_value",
    "decode_body",
    "encode_body",
]
