"""Bodies of commands: one entry per operation, from the tables or by a decoder of its own."""

from __future__ import annotations

from .body import Body
from .messages import message_value
from .registration import encode_registration
from .registry import body_form, body_value, decode_body, encode_body

__all__ = [
    "Body",
    "body_form",
    "body_value",
    "decode_body",
    "encode_body",
    "encode_registration",
    "message_value",
]
