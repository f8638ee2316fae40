"""A capture to decode."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import capture_in


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return capture_in(tmp_path)
