"""What a request of the sandbox is answered with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Answer(NamedTuple):
    """What a request is answered with."""

    code: int = 0
    """response code"""
    fields: Mapping[str, str] | None = None
    """ext fields"""
    body: bytes = b""
    """body of the response"""
    remark: str | None = None
    """error text"""
