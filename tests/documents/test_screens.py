"""The pictures of the browser are those of today, and ask for nothing from elsewhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from .screens import IMAGES, SHOTS, screens


@pytest.mark.slow
def test_screens_are_those_of_today() -> None:
    """`make pictures` makes them anew."""
    made = screens()
    assert [name for name in SHOTS if (IMAGES / name).read_text() != made[name]] == []


@pytest.mark.parametrize("name", SHOTS)
def test_a_screen_is_small_and_whole_in_itself(name: str) -> None:
    text = (IMAGES / name).read_text()
    assert len(text) < 150_000
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text)
    assert not re.search(r"<(script|image|foreignObject)|href=", text)
    assert ET.fromstring(text).tag.endswith("svg")
