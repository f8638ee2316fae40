"""Pictures to look at: what commands show at 80, 120 and 160 columns, on dark and light screens.

python -m tests.documents.gallery [FOLDER] [NAME...]

One PNG per command and width, dark above light, in .cache/gallery unless a folder is named. Whoever
changes how something is drawn looks at them. Chromium takes the pictures; reports need Java.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rmqtool.command import PROGRAM

from .pages import ROOT
from .pictures import DARK, LIGHT, Look, Screen, shown_by, take_picture, terminal_svg

WIDTHS = (80, 120, 160)
_MOST_LINES = 60
_CELL = 12.2
"""points of a cell in the pictures of rich"""
_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_PROGRESS = re.compile(r"\r(?:\x1b\[K|[^\r\n]*\x1b\[K)")
_NAMESRV = "NAMESRV"
"""stands for the address of a sandbox in which one of ten sends fails, and some are slow"""
_FAULTS = ("--fault", "busy p=0.1", "--fault", "latency=lognormal:5ms,300ms")
COMMANDS = {
    "decode": "decode pcap samples/fault-freeze-5x.pcap --limit 30",
    "messages": "decode pcap samples/stored-twice-5x.pcap --list-messages",
    "summary": "decode pcap samples/fault-slow-5x.pcap --summary",
    "tree": "decode pcap samples/send-sync-5x.pcap -V --limit 2",
    "hex": "decode hex 000000430000003f7b22636f6465223a33342c226c616e6775616765223a224a415641222c"
    "2276657273696f6e223a3531332c226f7061717565223a372c22666c6167223a307d",
    "diagnose": "diagnose samples/fault-freeze-5x.pcap -V",
    "rules": "diagnose --list",
    "rule": "diagnose --explain send-queue-timeout",
    "codes": "codes 310",
    "help": "help install",
    "report": "report samples/fault-kill-5x.pcap samples/fault-slow-5x.pcap",
    "report-list": "report --list",
    "trace": "trace samples/stored-twice-5x.pcap key-5",
    "plan": "replay samples/fault-slow-5x.pcap -n 127.0.0.1:9 --dry-run",
    "replay": "replay samples/fault-slow-5x.pcap --target sandbox --top-speed -o FOLDER/replayed",
    "send": f"send -n {_NAMESRV} -t Orders --body hello --count 60 --retries 0",
    "error": "decode pcap samples/no-such-capture.pcap",
    "usage": "decode pcap samples/send-sync-5x.pcap -Y 'latencyy > 5ms'",
    "option": "decode pcap samples/send-sync-5x.pcap --sumary",
}


def write_gallery(folder: Path, names: list[str]) -> None:
    """Take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, _sandbox() as namesrv:
        for name in names:
            for width in WIDTHS:
                words = _words_of(COMMANDS[name], namesrv, f"{scratch}/{width}")
                output, _ = shown_by(words, width, errors=True)
                output = _PROGRESS.sub("", output)
                screen = Screen(f"rmqtool {COMMANDS[name]}", output)
                picture = folder / f"{name}-{width}.png"
                _draw(screen, width, Path(scratch), picture)
                print(picture)


def _draw(screen: Screen, width: int, scratch: Path, picture: Path) -> None:
    drawn = [
        terminal_svg(screen, f"{name}.svg", 0, Look(width, theme, _MOST_LINES))
        for name, theme in (("dark", DARK), ("light", LIGHT))
    ]
    page = scratch / "page.html"
    page.write_text(f"<meta charset=utf-8><body style='margin:0'>{'<br>'.join(drawn)}")
    heights = [float(found[2]) for one in drawn if (found := _BOX.search(one))]
    wide = round(width * _CELL) + 40
    take_picture(page, picture, wide, round(sum(heights)) + 40)


def _words_of(command: str, namesrv: str, folder: str) -> list[str]:
    import shlex

    return [
        word.replace(_NAMESRV, namesrv).replace("FOLDER", folder) for word in shlex.split(command)
    ]


@contextmanager
def _sandbox() -> Iterator[str]:
    """A sandbox; the address of its NameServer."""
    arguments = ["broker", "--port", "0", "--namesrv-port", "0", *_FAULTS]
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as running:
        try:
            assert running.stdout is not None
            yield running.stdout.readline().split()[1]
        finally:
            running.terminate()
            running.communicate()


def main(arguments: list[str]) -> None:
    """Take all pictures, or those that are named."""
    names = [word for word in arguments if word in COMMANDS]
    folders = [word for word in arguments if word not in COMMANDS]
    folder = Path(folders[0]) if folders else ROOT / ".cache" / "gallery"
    write_gallery(folder, names or list(COMMANDS))


if __name__ == "__main__":
    main(sys.argv[1:])
