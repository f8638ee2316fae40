"""The commands that documents show with their output; run as a module, it writes the outputs anew.

python -m tests.documents.shown [PAGE...]

A block of the kind `console` has commands after `$ ` and below each what it writes, whole. Commands
of a page run in order in one folder that has `samples`; Before a
command may stand `COLUMNS=N`, behind it `| head -N` or `| tail -N`.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from typer.testing import CliRunner

from .pages import ROOT, pages

ELSEWHERE = {
    "send.md": "tests/rmqtool/send",
    "consume.md": "tests/rmqtool/send",
    "wireshark.md": "tests/dissectors/wireshark",
}
"""pages whose commands need a sandbox or tshark, and the tests that run them"""
ENVIRONMENT = {"COLUMNS": "100", "TZ": "UTC"}
_BLOCK = re.compile(r"(^```console\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\$ ", re.MULTILINE)
_END = re.compile(r"(?<!\\)\n")


def pages_with_commands() -> list[Path]:
    """The documents that show commands with their output."""
    found = [page for page in (*pages(), ROOT / "README.md") if _BLOCK.search(page.read_text())]
    return [page for page in found if page.name not in ELSEWHERE]


def page_as_run(text: str, folder: Path) -> str:
    """The text of a page with the outputs that its commands have when they run in `folder`."""
    with _place(folder):
        return _BLOCK.sub(lambda match: match[1] + _block_as_run(match[2]) + match[3], text)


def commands_of(text: str) -> list[str]:
    """The commands of all `console` blocks of a page."""
    return [
        _END.split(part, maxsplit=1)[0]
        for match in _BLOCK.finditer(text)
        for part in _PROMPT.split(match[2])[1:]
    ]


def _block_as_run(block: str) -> str:
    before, *parts = _PROMPT.split(block)
    assert not before, "a block begins with a command"
    commands = [_END.split(part, maxsplit=1)[0] for part in parts]
    gap = "\n" if "\n\n$ " in block else ""
    return gap.join(f"$ {command}\n{_output_of(command)}" for command in commands)


def _output_of(command: str) -> str:
    words = shlex.split(command.replace("\\\n", " "))
    width = ENVIRONMENT["COLUMNS"]
    if words[0].startswith("COLUMNS="):
        width = words.pop(0).partition("=")[2]
    assert words[0] == "rmqtool", command
    last = len(words)
    cut: Callable[[list[str]], list[str]] = list
    if "|" in words:
        last = words.index("|")
        cut = _cut_of(*words[last + 1 :])
    written = _written_by(Path.cwd(), width, tuple(words[1:last]))
    return "".join(f"{line.rstrip()}\n" for line in cut(written.rstrip().splitlines()))


def _cut_of(program: str, count: str) -> Callable[[list[str]], list[str]]:
    lines = int(count.removeprefix("-"))
    return {"head": lambda all_: all_[:lines], "tail": lambda all_: all_[-lines:]}[program]


@cache
def _written_by(folder: Path, width: str, arguments: tuple[str, ...]) -> str:
    """What a command writes to both of its outputs; equal ones of a page run once."""
    from rmqtool.cli import app

    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": width})
    assert result.exit_code == 0, (arguments, result.output)
    return result.output


@contextmanager
def _place(folder: Path) -> Iterator[None]:
    """Make `folder` the place where commands run, as they are shown: their width, their zone."""
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    here = Path.cwd()
    (folder / "samples").symlink_to(ROOT / "samples")
    os.environ.update(ENVIRONMENT)
    time.tzset()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        time.tzset()


def _write(page: Path) -> None:
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        now = page_as_run(text, Path(folder))
    if now != text:
        page.write_text(now)
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    for page in [Path(name).absolute() for name in sys.argv[1:]] or pages_with_commands():
        _write(page)
