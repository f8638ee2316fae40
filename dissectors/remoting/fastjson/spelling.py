"""Names of members as fastjson 1 compares them; and who reads with which library.

RocketMQ: fastjson's TypeUtils.fnv1a_64_extract.
"""

from __future__ import annotations

from typing import Final

FASTJSON1: Final = "RocketMQ through 5.3 (fastjson 1)"
FASTJSON2: Final = "RocketMQ 5.4 and later (fastjson2)"


def canonical_name(name: str) -> str:
    """Return a name without `_` and `-`, in lower case; empty where it is not ASCII."""
    return name.replace("_", "").replace("-", "").lower() if name.isascii() else ""


def ignored_by_fastjson2(names: list[str]) -> str:
    """Return what a finding says of members that are written in another way."""
    return f"{FASTJSON2} ignores {', '.join(names)[:200]}"
