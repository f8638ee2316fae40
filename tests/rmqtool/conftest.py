"""A capture to decode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .command import capture_in


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return capture_in(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def _no_journal_is_left() -> Iterator[None]:
    """A replay without `-o` writes into the current folder: a test gives it one of its own."""
    before = set(Path.cwd().glob("replay-*"))
    yield
    assert set(Path.cwd().glob("replay-*")) == before
