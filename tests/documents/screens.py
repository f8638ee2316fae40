"""The pictures of the browser, made by keys over samples; run as a module, it makes them anew."""

from __future__ import annotations

import asyncio
import re
from typing import NamedTuple

from tests.rmqtool.browse.browsing import browsing, press, sample

from .pages import DOCS

IMAGES = DOCS / "images"
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_FONTS = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'


class Shot(NamedTuple):
    """What is on a picture."""

    sample: str
    keys: tuple[str, ...]
    width: int
    height: int
    theme: str


SHOTS = {
    "browse.svg": Shot(
        "leader-lost-5x.pcap", (*"jjjjjjjjjjjjjjj", "enter", *"jjjjjjjjj"), 132, 32, "textual-dark"
    ),
    "browse-problems.svg": Shot("leader-lost-5x.pcap", ("4",), 120, 24, "textual-light"),
}


async def _drawn(shot: Shot) -> str:
    async with browsing(sample(shot.sample), size=(shot.width, shot.height)) as (browser, pilot):
        browser.theme = shot.theme
        for key in shot.keys:
            await press(browser, pilot, key)
        svg = browser.export_screenshot(title="rmqtool browse")
    svg = _FONT_FACES.sub("", svg).replace(
        "font-family: Fira Code, monospace", f"font-family: {_FONTS}"
    )
    return re.sub(r"[ \t]+$", "", svg.replace("Fira Code", "monospace"), flags=re.MULTILINE) + "\n"


def screens() -> dict[str, str]:
    """Return all pictures, by name."""
    return {name: asyncio.run(_drawn(shot)) for name, shot in SHOTS.items()}


def main() -> None:
    """Write them."""
    for name, svg in screens().items():
        (IMAGES / name).write_text(svg)


if __name__ == "__main__":
    main()
