"""The pictures of the documents, made from samples; run as a module, it makes them anew.

python -m tests.documents.pictures [--pages]

Terminals are SVG, drawn by rich from what a command writes to a terminal. With `--pages` Chromium
takes pictures of the HTML pages, too; that needs Java.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.rmqtool.command import PROGRAM

from .pages import DOCS, ROOT

IMAGES = DOCS / "images"
WIDTH = 96
MOST_LINES = 42
SECONDS = 6
"""how long one screen of a cast is shown"""
_FONT_FACES = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
_FONTS = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'
_HEIGHT = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
DARK = TerminalTheme(
    (24, 28, 31),
    (222, 226, 224),
    [
        *((54, 60, 64), (240, 113, 120), (135, 200, 120), (229, 192, 105)),
        *((110, 170, 240), (200, 150, 230), (95, 200, 200), (222, 226, 224)),
    ],
    [
        *((130, 140, 145), (255, 135, 140), (160, 220, 145), (245, 215, 135)),
        *((140, 190, 250), (215, 175, 245), (130, 220, 220), (255, 255, 255)),
    ],
)
LIGHT = TerminalTheme(
    (252, 252, 250),
    (40, 44, 46),
    [
        *((40, 44, 46), (190, 40, 50), (30, 120, 40), (150, 105, 0)),
        *((20, 90, 180), (130, 60, 160), (0, 120, 125), (200, 204, 202)),
    ],
    [
        *((110, 116, 120), (215, 60, 70), (45, 140, 55), (175, 125, 10)),
        *((40, 110, 205), (150, 80, 180), (10, 140, 145), (255, 255, 255)),
    ],
)


class Look(NamedTuple):
    """How a terminal looks."""

    width: int = WIDTH
    """cells"""
    theme: TerminalTheme = DARK
    most_lines: int = MOST_LINES


_LOOK = Look()


class Screen(NamedTuple):
    """A terminal after one command."""

    command: str
    """what was typed"""
    output: str
    """what came, with its colours"""


TERMINALS = {
    "diagnose.svg": "rmqtool diagnose samples/fault-freeze-5x.pcap",
    "trace.svg": "rmqtool trace samples/stored-twice-5x.pcap key-5",
    "summary.svg": "rmqtool decode pcap samples/fault-slow-5x.pcap --summary",
}
CASTS = {
    "tour.svg": (
        "rmqtool decode pcap samples/fault-freeze-5x.pcap --limit 16",
        "rmqtool decode pcap samples/fault-freeze-5x.pcap -Y 'outcome == unanswered'",
        TERMINALS["diagnose.svg"],
        "rmqtool trace samples/fault-freeze-5x.pcap C000020A01A84E0E2F2A68D4992E000B",
    )
}
PAGES = {
    "trace-page.png": ("trace samples/stored-twice-5x.pcap key-5", 860),
    "report-page.png": ("report samples/fault-freeze-5x.pcap", 860),
}


def screen_of(command: str, width: int = WIDTH) -> Screen:
    """Run a command on a terminal of its own, without what it tells on the way."""
    screen, status = shown_by([*_words_of(command), "--quiet"], width)
    assert status == 0, command
    return Screen(command, screen)


def shown_by(words: Sequence[str], width: int, errors: bool = False) -> tuple[str, int]:
    """Return what a command writes to a terminal, perhaps errors as well, and its status."""
    arguments = [*PROGRAM, *words]
    master, slave = os.openpty()
    environment = os.environ | {"COLUMNS": str(width), "LINES": "50", "TZ": "UTC"}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    for name in ("NO_COLOR", "FORCE_COLOR"):
        environment.pop(name, None)
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave if errors else None,
        cwd=ROOT,
        env=environment,
    ) as program:
        os.close(slave)
        output = _all_of(master)
    os.close(master)
    return output.replace("\r\n", "\n"), program.returncode


def terminal_svg(screen: Screen, name: str, least: int = 0, look: Look = _LOOK) -> str:
    """Draw a terminal of at least so many lines; the picture asks for nothing from elsewhere."""
    console = Console(
        record=True, width=look.width, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    lines = screen.output.rstrip().splitlines()
    more = ["…"] if len(lines) > look.most_lines else []
    empty = [""] * (least - len(lines))
    text = Text.from_ansi("\n".join([*lines[: look.most_lines], *more, *empty]))
    console.print(Text.assemble(("$ ", "bold green"), (screen.command, "bold")))
    console.print(text)
    svg = console.export_svg(
        title="rmqtool", theme=look.theme, code_format=_form(), unique_id=name.partition(".")[0]
    )
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE).rstrip() + "\n"


def cast_svg(screens: Sequence[Screen], name: str) -> str:
    """Draw screens that follow each other, again and again; all at the size of the largest.

    Who wants no motion sees the last but one.
    """
    stem = name.partition(".")[0]
    least = max(len(one.output.rstrip().splitlines()) for one in screens)
    drawn = [terminal_svg(one, f"{stem}{number}", least) for number, one in enumerate(screens)]
    sizes = [tuple(map(float, found.groups())) for one in drawn if (found := _HEIGHT.search(one))]
    width, height = (max(size) for size in zip(*sizes, strict=True))
    total = SECONDS * len(drawn)
    part = 100 / len(drawn)
    style = (
        f"@keyframes {stem} {{ 0%, {part:.2f}% {{ visibility: visible }} "
        f"{part + 0.01:.2f}%, 100% {{ visibility: hidden }} }}\n"
        f".{stem} {{ visibility: hidden; animation: {stem} {total}s step-end infinite }}\n"
        "@media (prefers-reduced-motion) { "
        f".{stem} {{ animation: none }} .{stem}.still {{ visibility: visible }} }}\n"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f"<style>\n{style}</style>",
    ]
    for number, (one, size) in enumerate(zip(drawn, sizes, strict=True)):
        still = " still" if number == len(drawn) - 2 else ""
        placed = one.replace(
            "<svg ", f'<svg x="0" y="0" width="{size[0]:g}" height="{size[1]:g}" ', 1
        )
        delay = f"animation-delay: {number * SECONDS}s"
        parts.append(f'<g class="{stem}{still}" style="{delay}">\n{placed}</g>')
    return "\n".join([*parts, "</svg>\n"])


def pictures() -> dict[str, str]:
    """All pictures of terminals, by name."""
    commands = {*TERMINALS.values(), *(one for cast in CASTS.values() for one in cast)}
    screens = {command: screen_of(command) for command in sorted(commands)}
    terminals = {name: terminal_svg(screens[one], name) for name, one in TERMINALS.items()}
    casts = {name: cast_svg([screens[one] for one in all_], name) for name, all_ in CASTS.items()}
    return terminals | casts


def write_pages() -> None:
    """Take pictures of the HTML pages."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (command, height) in PAGES.items():
            page = Path(folder) / f"{name}.html"
            arguments = [*PROGRAM, *_words_of(f"rmqtool {command}"), "-o", str(page), "--quiet"]
            subprocess.run(arguments, cwd=ROOT, check=True)
            take_picture(page, IMAGES / name, 1200, height)


def take_picture(page: Path, picture: Path, width: int, height: int) -> None:
    """Let Chromium take a picture of an HTML page."""
    with tempfile.TemporaryDirectory() as profile:
        chromium = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars"]
        size, shot = f"--window-size={width},{height}", f"--screenshot={picture}"
        subprocess.run(
            [*chromium, size, shot, f"--user-data-dir={profile}", page.as_uri()],
            check=True,
            capture_output=True,
        )


def _words_of(command: str) -> list[str]:
    import shlex

    return shlex.split(command)[1:]


def _all_of(master: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux says so where the other end was closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


def _form() -> str:
    """rich's picture of a terminal, with fonts that are there."""
    return _FONT_FACES.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", _FONTS)


def main() -> None:
    """Write all pictures."""
    for name, svg in pictures().items():
        (IMAGES / name).write_text(svg)
    if "--pages" in sys.argv:
        write_pages()


if __name__ == "__main__":
    main()
