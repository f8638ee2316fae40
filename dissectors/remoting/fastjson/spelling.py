"""Compare member names like fastjson 1; which releases use which library.

RocketMQ: fastjson's TypeUtils.fnv1a_64_extract.
"""

from __future__ import annotations

from typing import Final

FASTJSON1: Final = "RocketMQ through 5.3 (fastjson 1)"
FASTJSON2: Final = "RocketMQ 5.4 and later (fastjson2)"


def canonical_name(name: str) -> str:
    """Return a name in lower case without `_` and `-`; empty if it is not ASCII."""
    return name.replace("_", "").replace("-", "").lower() if name.isascii() else ""


def ignored_by_fastjson2(names: list[str]) -> str:
    """Return the text of a finding about member names that fastjson2 ignores."""
    return f"{FASTJSON2} ignores {', '.join(names)[:200]}"
