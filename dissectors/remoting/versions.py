"""MQVersion: the release behind a command's `version` number.

The number is the ordinal of a Java enum constant, so the table is an order, not a set of numbers: a
patch release has an ordinal, its SNAPSHOT the one before. Clients in other languages send a fixed
ordinal of their choice, or 0, so the name is only the sender's claim. RocketMQ: MQVersion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

# The first line of releases names its stages one by one; all later ones follow one rule.
_V3_0_0_STAGES = [
    "SNAPSHOT",
    "ALPHA1",
    "BETA1",
    "BETA2",
    "BETA3",
    "BETA4",
    "BETA5",
    "BETA6_SNAPSHOT",
    "BETA6",
    "BETA7_SNAPSHOT",
    "BETA7",
    "BETA8_SNAPSHOT",
    "BETA8",
    "BETA9_SNAPSHOT",
    "BETA9",
    "FINAL",
]

# (major, minor, first patch, last patch); each patch is two constants: SNAPSHOT, then the release.
_LINES = (
    (3, 0, 1, 15),
    (3, 1, 0, 9),
    (3, 2, 0, 9),
    *((3, minor, 1, 9) for minor in range(3, 10)),
    *((4, minor, 0, 9) for minor in range(10)),
    *((5, minor, 0, 9) for minor in range(10)),
)


def _constants() -> Iterator[str]:
    for stage in _V3_0_0_STAGES:
        yield f"V3_0_0_{stage}"
    for major, minor, first, last in _LINES:
        for patch in range(first, last + 1):
            yield f"V{major}_{minor}_{patch}_SNAPSHOT"
            yield f"V{major}_{minor}_{patch}"
    yield "HIGHER_VERSION"


VERSIONS: tuple[str, ...] = tuple(_constants())
"""Constant names in order: the index is the ordinal on the wire."""

HIGHER_VERSION = len(VERSIONS) - 1
"""Ordinal of the last constant; Java's reader shows every larger one as this."""

_ORDINALS = {name: ordinal for ordinal, name in enumerate(VERSIONS)}

# Releases with relevant changes, for comparisons of versions.
V4_1_0_SNAPSHOT: Final = _ORDINALS["V4_1_0_SNAPSHOT"]
"""Sent by 4.1.0."""
V4_3_0: Final = _ORDINALS["V4_3_0"]
V4_5_1: Final = _ORDINALS["V4_5_1"]
V4_6_0: Final = _ORDINALS["V4_6_0"]
V4_7_0: Final = _ORDINALS["V4_7_0"]
V4_9_0: Final = _ORDINALS["V4_9_0"]
V4_9_4: Final = _ORDINALS["V4_9_4"]
V4_9_5: Final = _ORDINALS["V4_9_5"]
V4_9_8: Final = _ORDINALS["V4_9_8"]
V5_0_0_SNAPSHOT: Final = _ORDINALS["V5_0_0_SNAPSHOT"]
"""The first ordinal of 5.x."""
V5_0_0: Final = _ORDINALS["V5_0_0"]
V5_1_0: Final = _ORDINALS["V5_1_0"]
V5_1_3: Final = _ORDINALS["V5_1_3"]
V5_1_4: Final = _ORDINALS["V5_1_4"]
V5_2_0: Final = _ORDINALS["V5_2_0"]
V5_3_0: Final = _ORDINALS["V5_3_0"]
V5_3_1: Final = _ORDINALS["V5_3_1"]
V5_3_2: Final = _ORDINALS["V5_3_2"]
V5_3_3: Final = _ORDINALS["V5_3_3"]
"""The last release that reads JSON with fastjson 1."""

_SENT_AS_SNAPSHOT = ("4.0.0", "4.1.0", "4.2.0")
"""Releases that send the ordinal of their SNAPSHOT."""


def version_name(ordinal: int) -> str:
    """Return the constant: `V5_3_3`; outside the table `HIGHER_VERSION(700)` or `UNKNOWN(-1)`."""
    if 0 <= ordinal <= HIGHER_VERSION:
        return VERSIONS[ordinal]
    return f"HIGHER_VERSION({ordinal})" if ordinal > 0 else f"UNKNOWN({ordinal})"


def release_of(ordinal: int) -> str:
    """Return the release: `5.3.3` or `4.9.4-SNAPSHOT`; outside the table `version_name`.

    The releases 4.0.0, 4.1.0 and 4.2.0 send the ordinal of their SNAPSHOT, and the previews of
    5.0.0 those of 5.0.0 and 5.0.1.
    """
    name = version_name(ordinal)
    if not name.startswith("V"):
        return name
    major, minor, patch, *stage = name[1:].split("_")
    return "-".join((f"{major}.{minor}.{patch}", *stage))


def ordinal_of(name: str) -> int | None:
    """Return the ordinal of `V5_3_3`, `5.3.3` or `4.9.4-SNAPSHOT`; None if unknown."""
    if name[:1].isdigit():
        name = "V" + name.replace(".", "_").replace("-", "_")
    return _ORDINALS.get(name)


def ordinals_of(name: str) -> range | None:
    """Return the ordinals of a name or a line of releases, `5` or `5.3`; None if unknown."""
    ordinal = ordinal_of(name)
    if ordinal is not None and name not in _SENT_AS_SNAPSHOT:
        return range(ordinal, ordinal + 1)
    start = f"V{name.replace('.', '_')}"
    found = [n for n, known in enumerate(VERSIONS) if f"{known}_".startswith(f"{start}_")]
    return range(found[0], found[-1] + 1) if found else None
