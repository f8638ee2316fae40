"""The inputs that fuzzing has found and that are kept: `corpus/TARGET`, one a line in base64."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
MAX_KEPT = 30_000
"""bytes of a target's inputs that are kept"""


def corpus_of(target: str) -> list[bytes]:
    """The inputs of a target."""
    path = FOLDER / target
    lines = path.read_text("ascii").split() if path.exists() else []
    return [base64.b64decode(line) for line in lines]


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Replaces the inputs of a target by these, the shortest ones as far as there is room."""
    kept = []
    size = 0
    for data in sorted(inputs, key=lambda one: (len(one), one)):
        size += len(data)
        if size > MAX_KEPT:
            break
        kept.append(base64.b64encode(data).decode())
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / target).write_text("\n".join(kept) + "\n", "ascii")
