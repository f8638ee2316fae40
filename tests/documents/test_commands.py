"""Every command of rmqtool that a document names can be typed; those about bytes, brokers and
interfaces are run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rmqtool.cli import app
from rmqtool.ui import declared
from rmqtool.ui.status import CommandError, ExitStatus
from rmqtool.watch.options import WatchRequest
from tests.dissectors.live.test_interface import needs_filter
from tests.rmqtool.command import PROGRAM, process
from tests.traffic.commands import route_query

from .pages import DOCS, ROOT, pages

_BLOCKS = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)`(rmqtool [^`\n]+)`(?!`)")
_BEGIN = re.compile(r"(?:^|[|&;(] *|\$ |sudo |ssh \S+ )(rmqtool )", re.MULTILINE)
_PLACEHOLDERS = {"…", "...", "REPORT…", "TOPIC", "SECTION"}
"""what stands for arguments in text"""
DOCUMENTS = [*pages(), ROOT / "README.md", ROOT / "examples" / "README.md"]


def _commands_of(page: Path) -> Iterator[str]:
    text = page.read_text()
    for language, block in _BLOCKS.findall(text):
        if language in ("", "console", "sh", "bash", "shell"):
            block = block.replace("\\\n", " ")
            for found in _BEGIN.finditer(block):
                line = block[found.start(1) :].partition("\n")[0]
                yield line
    yield from _CODE.findall(_BLOCKS.sub("", text))


def _words_of(line: str) -> list[str] | None:
    """Return the words of a command up to a pipe, another command or a remark; None: no command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.commenters = "#"
    words: list[str] = []
    try:
        for word in lexer:
            if set(word) <= set("|&;<>()"):
                break
            words.append(word)
    except ValueError:  # a quotation goes on in the next line
        return None
    return [word for word in words[1:] if word not in _PLACEHOLDERS]


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def _said_of(words: list[str]) -> str:
    """Return what is wrong with a command line; empty: nothing."""
    command: Any = _root()
    rest = list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name.isupper() or "─" in name:  # COMMAND, or a drawing
            return ""
        if name not in command.commands:
            return f"no command {name}"
        command = command.commands[name]
    known = {text for one in command.params for text in (*one.opts, *one.secondary_opts)}
    values = {text for one in command.params if getattr(one, "is_flag", False) for text in one.opts}
    skip = False
    for word in rest:
        option = word.partition("=")[0]
        if skip or not re.fullmatch(r"--?[A-Za-z][\w-]*", option):
            skip = False
            continue
        if option.startswith("--") or option in known:
            if option not in known and option != "--help":
                return f"no option {option}"
            skip = option not in values and "=" not in word and option != "--help"
        elif option[:2] not in known and option != "-h":
            return f"no option {option}"
    return ""


@pytest.mark.parametrize(
    "page", DOCUMENTS, ids=[path.relative_to(ROOT).as_posix() for path in DOCUMENTS]
)
def test_commands_and_their_options_are_there(page: Path) -> None:
    wrong = {
        line: said
        for line in _commands_of(page)
        if (words := _words_of(line)) is not None and (said := _said_of(words))
    }
    assert wrong == {}


def test_commands_are_found() -> None:
    found = [line for page in DOCUMENTS for line in _commands_of(page)]
    assert len(found) > 150
    assert _said_of(["decode", "pcap", "a.pcap", "--sumary"]) == "no option --sumary"
    assert _said_of(["decode", "pcapp"]) == "no command pcapp"


# -- run -----------------------------------------------------------------------------------------


def _shown_in(page: Path) -> Iterator[tuple[str, str]]:
    """Give the commands after `$` with what a page shows below them."""
    for _, block in _BLOCKS.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.replace("\\\n", " ").partition("\n")
            yield command, shown


HEX = [one for one in _shown_in(DOCS / "hex.md") if one[1]]


@pytest.mark.parametrize("number", range(len(HEX)))
def test_bytes_of_hex_md_are_decoded_as_it_shows(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = route_query(9)
    request, response = query.frame, query.answer(17, remark="No topic route info").frame
    both = request + response
    dump = [both[at : at + 16] for at in range(0, len(both), 16)]
    (tmp_path / "frames.xxd").write_text(
        "".join(f"{16 * at:08x}: {_xxd(part)}\n" for at, part in enumerate(dump))
    )
    (tmp_path / "damaged.bin").write_bytes(bytes(10) + both)
    (tmp_path / "part.bin").write_bytes(request[:116])
    monkeypatch.chdir(tmp_path)
    command, shown = HEX[number]
    words = shlex.split(command)
    if words[0] != "rmqtool":
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == shown
        return
    said = CliRunner().invoke(app, words[1:], env={"COLUMNS": None}).output
    assert said.rstrip("\n") == shown.rstrip("\n")


def _xxd(part: bytes) -> str:
    pairs = " ".join(part[at : at + 2].hex() for at in range(0, len(part), 2))
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
    return f"{pairs:<39}  {text}"


@pytest.mark.slow
def test_brokers_of_sandbox_md_start_as_it_shows() -> None:
    text = (DOCS / "sandbox.md").read_text()
    commands = [
        shlex.split(line)[1:]
        for _, block in _BLOCKS.findall(text)
        for line in block.replace("$ ", "").splitlines()
        if line.startswith("rmqtool broker")
    ]
    assert len(commands) >= 2
    for words in commands:
        free = ("--port", "0", "--namesrv-port", "0", "--duration", "100ms")
        started = process(*words, *free, PYTHONUNBUFFERED="1")
        assert started.status == 0, started.err
        shown = next(
            (s for c, s in _shown_in(DOCS / "sandbox.md") if shlex.split(c)[1:] == words), ""
        )
        ports = re.compile(r"(?<=127\.0\.0\.1:)\d+")
        said = ports.sub("PORT", started.out)
        assert said.startswith(ports.sub("PORT", shown))


LIVE = [command for command, _ in _shown_in(DOCS / "live.md") if "rmqtool" in command]


def test_live_md_shows_what_a_missing_interface_gives() -> None:
    command, shown = next(one for one in _shown_in(DOCS / "live.md") if "nosuch0" in one[0])
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code != 0
    assert result.output.splitlines()[0] == shown.splitlines()[0]


@pytest.mark.slow
@needs_filter
def test_commands_of_live_md_capture(tmp_path: Path) -> None:
    captures = [one for one in LIVE if one.startswith("rmqtool decode live -i lo -f")]
    assert captures
    for command in captures:
        arguments = [*PROGRAM, *shlex.split(command)[1:], "--duration", "300ms", "--quiet"]
        done = subprocess.run(
            arguments,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "incident.pcapng").exists()


# -- examples in help ------------------------------------------------------------------------------


def _examples() -> Iterator[str]:
    """Give the examples in the help of every command."""

    def of(command: Any) -> Iterator[str]:
        for line in (command.help or "").partition("Examples:")[2].splitlines():
            if (found := _BEGIN.search(line.strip())) is not None:
                yield re.split(r"\s{2,}", line.strip()[found.start(1) :])[0]
        for inner in getattr(command, "commands", {}).values():
            yield from of(inner)

    return of(_root())


def test_examples_in_help_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Their options are read and fit together; nothing is run."""
    read = declared._read

    def read_only(*given: Any) -> Any:
        request = read(*given)
        if isinstance(request, WatchRequest):
            request.check()
        raise CommandError("it can be typed", status=ExitStatus.OK)

    monkeypatch.setattr(declared, "_read", read_only)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells").mkdir()
    examples = list(_examples())
    assert len(examples) > 80
    wrong = {}
    for line in examples:
        words = shlex.split(re.split(r" [|<] ", line)[0])
        found = CliRunner().invoke(app, words[1:])
        if found.exit_code == ExitStatus.USAGE:
            wrong[line] = found.output
    assert wrong == {}
