"""Every sample decodes to what lies beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.expected import captures, difference, expected_path, spread


@pytest.mark.parametrize("capture", spread(captures()))
def test_decodes_as_expected(capture: Path) -> None:
    assert expected_path(capture).exists(), "python -m tests.expected writes it"
    assert difference(capture)[:12] == []


def test_no_expected_decode_without_its_capture() -> None:
    wanted = {expected_path(capture) for capture in captures()}
    assert set(expected_path(captures()[0]).parent.glob("*.expected.*")) == wanted
