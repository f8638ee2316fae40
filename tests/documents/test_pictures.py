"""The pictures of terminals are those of today, and ask for nothing from elsewhere."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from .pictures import CASTS, IMAGES, PAGES, TERMINALS, WIDTH, pictures

DRAWN = [*TERMINALS, *CASTS]


@pytest.mark.slow
def test_pictures_are_those_of_today() -> None:
    """`make pictures` makes them anew."""
    made = pictures()
    assert list(made) == DRAWN
    assert [name for name in DRAWN if (IMAGES / name).read_text() != made[name]] == []


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_small_and_whole_in_itself(name: str) -> None:
    text = (IMAGES / name).read_text()
    assert len(text) < 100_000
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text)
    assert not re.search(r"<(script|image|foreignObject)|href=", text)
    lines = [one.text or "" for one in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert any("rmqtool" in line for line in lines)
    assert max(map(len, lines)) <= WIDTH


def test_pictures_of_pages_are_small() -> None:
    assert all((IMAGES / name).stat().st_size < 250_000 for name in PAGES)
