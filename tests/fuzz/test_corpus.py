"""The inputs that fuzzing has found, and its seeds, replayed."""

from __future__ import annotations

import pytest

from .corpus import FOLDER, corpus_of
from .seeds import seeds_of
from .targets import TARGETS


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_corpus(target: str) -> None:
    inputs = corpus_of(target)
    assert inputs
    for data in (*seeds_of(target), *inputs):
        TARGETS[target](data)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_short_inputs(target: str) -> None:
    for data in (b"", b"\0", b"\1", b"\0" * 9, b"\xff" * 30, bytes(range(256))):
        TARGETS[target](data)


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 400_000
