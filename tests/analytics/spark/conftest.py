"""What the tests of other Sparks compare with: all tables of one capture, computed once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rmqtool.command import Result

from .reported import CAPTURE, Tables, tables_in

_HERE: dict[str, Tables] = {}


@pytest.fixture
def tables_here(rmqtool_here: Callable[..., Result]) -> Tables:
    """All tables of the capture, as the shared session computes them."""
    if not _HERE:
        _HERE["all"] = tables_in(rmqtool_here("report", "all", CAPTURE, "--format", "json", "-q"))
    return _HERE["all"]
