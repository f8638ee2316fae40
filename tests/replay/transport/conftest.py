"""A server that answers as it is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..responder import Responder, responding


@pytest.fixture
def responder() -> Iterator[Responder]:
    with responding() as one:
        yield one
