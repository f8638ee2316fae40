"""docs/options.md has the options of today; every command in a document has options that exist."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .options_docs import PAGE, commands, page_with_options
from .pages import ROOT, ROOT_PAGES, pages
from .site_hooks import on_page_markdown

PAGES = [*pages(), *(ROOT / name for name in (*ROOT_PAGES, "samples/README.md"))]
_BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(
    r"^(?:\$ )?(?:\w+=\S+ )*(?:sudo )?(rmqtool [a-z-].*(?:\\\n.*)*)", re.MULTILINE
)
_ENDS = {"|", "&&", "||", ";", ">", "2>", "<", "#"}


def test_the_page_has_the_options_of_today() -> None:
    """`python -m tests.documents.options_docs` writes them anew."""
    assert PAGE.read_text() == page_with_options(PAGE.read_text())


def test_the_page_has_every_command() -> None:
    assert len(list(commands())) >= 13
    text = PAGE.read_text()
    assert all(f"\n## {words}\n" in text for words, _ in commands())


def commands_in(page: Path) -> list[str]:
    """The commands of rmqtool in the blocks of a page."""
    return [
        match[1].replace("\\\n", " ")
        for block in _BLOCK.findall(page.read_text())
        for match in _COMMAND.finditer(block)
    ]


@cache
def _known() -> dict[tuple[str, ...], Any]:
    """Return all commands by their words."""
    return {tuple(name.split()): one for name, one in commands()}


def unknown_in(line: str) -> list[str]:
    """The words of a command that no command or option is called."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if word in _ENDS or word.startswith("#"):
            break
        words.append(word)
    known = _known()
    command = next((known[way] for way in known if tuple(words[: len(way)]) == way), None)
    if command is None:
        return [] if words[1].startswith("--") or words[1].isupper() else words[:3]
    names = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    options = [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)]
    return [word for word in options if word not in names | {"--help", "-h"}]


@pytest.mark.parametrize("page", PAGES, ids=[path.relative_to(ROOT).as_posix() for path in PAGES])
def test_options_in_documents_exist(page: Path) -> None:
    assert {line: unknown for line in commands_in(page) if (unknown := unknown_in(line))} == {}


def test_unknown_words_are_found() -> None:
    assert unknown_in("rmqtool decode pcap a.pcap --summary | head -3 --no") == []
    assert unknown_in("rmqtool decode pcap a.pcap --sumary") == ["--sumary"]
    assert unknown_in("rmqtool decode pacp a.pcap") == ["rmqtool", "decode", "pacp"]
    assert sum(len(commands_in(page)) for page in PAGES) > 150


def test_the_site_shows_pipes_in_the_code_of_tables() -> None:
    row = r"| `a\|b` | c \| d |"
    assert on_page_markdown(f"{row}\n`a\\|b`") == "| `a|b` | c \\| d |\n`a\\|b`"
