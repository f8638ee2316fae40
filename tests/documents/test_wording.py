"""Documents, man pages, and help follow the rules of wording: standard terms, short sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from analytics.diagnosis.registry import FAMILIES, rules_of
from rmqtool.cli import app

from .pages import DOCS, ROOT, ROOT_PAGES, anchors_of, prose_of
from .site_hooks import RULE, rules_linked

BANNED = (
    "all the same",
    "anew",
    "born by",
    "by Spark",
    "could not speak",
    "for want of",
    "from its birth",
    "given back",
    "in tcpdump's words",
    "is told by",
    "nobody can tell",
    "shared out",
    "the gravest",
    "what became of",
    "what comes of",
    "which interface?",
    "with packets as proof",
)
"""phrases that read like a translation; docs/glossary.md has the terms to use"""
_BANNED = re.compile(rf"\b({'|'.join(map(re.escape, BANNED))})(?!\w)", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_GENERATED = re.compile(r"<!-- ([\w ]+): begin -->.*?<!-- \1: end -->", re.DOTALL)
_MOST_WORDS = 25
"""words of the help of an option"""
_MOST_HEADING_WORDS = 6
"""words of a heading: a noun phrase, with some room for names"""
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
_NO_GLOSSARY = [path for path in sorted(DOCS.glob("*.md")) if path.name != "glossary.md"]
PAGES = [*_NO_GLOSSARY, *(ROOT / name for name in ROOT_PAGES)]
"""documents; the glossary is excluded, because it lists the words not to use"""
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]


def _commands() -> Iterator[tuple[str, Any]]:
    """Give each command and group by its words."""

    def walk(command: Any, words: str) -> Iterator[tuple[str, Any]]:
        yield words, command
        for name, one in getattr(command, "commands", {}).items():
            yield from walk(one, f"{words} {name}")

    return walk(typer.main.get_command(app), "rmqtool")


COMMANDS = list(_commands())


def banned_in(text: str) -> list[str]:
    """Return the banned phrases in a text, whatever its line breaks and its case."""
    return [match[1] for match in _BANNED.finditer(" ".join(text.split()))]


def _written_text_of(page: Path) -> str:
    """Return the prose of a page without code and without rules and reports made from code.

    Their texts are data of `analytics`, which has its own tests.
    """
    text = prose_of(page)
    if page.name in ("diagnosis.md", "reports.md"):
        text = _GENERATED.sub("", text)
    return _CODE.sub("", text)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_documents_have_no_banned_phrase(page: Path) -> None:
    assert banned_in(_written_text_of(page)) == []


@pytest.mark.parametrize("page", sorted((DOCS / "man").iterdir()), ids=lambda page: str(page.name))
def test_man_pages_have_no_banned_phrase(page: Path) -> None:
    assert banned_in(page.read_text()) == []


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_help_has_no_banned_phrase(words: str, command: Any) -> None:
    texts = [command.help or "", *(one.help or "" for one in _options_of(command))]
    assert banned_in("\n".join(texts)) == []


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_help_of_options_is_short_and_begins_with_an_uppercase_letter(
    words: str, command: Any
) -> None:
    wrong = {}
    for option in _options_of(command):
        text = option.help or ""
        if len(text.split()) > _MOST_WORDS or not text[:1].isupper():
            wrong[option.opts[0]] = text
    assert wrong == {}


def _options_of(command: Any) -> list[Any]:
    """Return the options and arguments that a help shows."""
    return [one for one in command.params if not getattr(one, "hidden", False)]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_headings_are_short(page: Path) -> None:
    headings = _HEADING.findall(_GENERATED.sub("", prose_of(page)))
    assert [one for one in headings if len(one.split()) > _MOST_HEADING_WORDS] == []


def test_troubleshooting_names_existing_rules() -> None:
    known = {rule.id for family in FAMILIES for rule in rules_of(family)}
    page = rules_linked((DOCS / "troubleshooting.md").read_text())
    named = re.findall(r"\[`([a-z0-9-]+)`\]\(diagnosis\.md#([a-z0-9-]+)\)", page)
    assert len(named) > 80
    assert {rule for rule, _ in named} <= known
    assert {anchor for _, anchor in named} <= anchors_of(DOCS / "diagnosis.md")
    options = set(re.findall(r"--rule ([a-z0-9-]+)", page))
    assert options <= known


def test_each_entry_of_troubleshooting_has_a_command() -> None:
    text = (DOCS / "troubleshooting.md").read_text()
    entries = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
    assert len(entries) > 50
    assert [one for one in entries if "`rmqtool " not in " ".join(one.split())] == []


def test_rules_are_linked_on_the_site() -> None:
    assert RULE.fullmatch("`broker-hung`")
    linked = rules_linked("- `x`: Text. Rules: `broker-hung`,\n  `no-route`. Run `a`.")
    assert linked == (
        "- `x`: Text. Rules: [`broker-hung`](diagnosis.md#broker-hung),\n"
        "  [`no-route`](diagnosis.md#no-route). Run `a`."
    )


def test_banned_phrases_are_found() -> None:
    assert banned_in("stored\nall  the same, Anew") == ["all the same", "Anew"]
    assert banned_in("a new reader, renewed") == []
