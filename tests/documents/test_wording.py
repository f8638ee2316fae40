"""Documents, man pages, and help follow the rules of wording: standard terms, short sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from analytics.diagnosis.registry import FAMILIES, rules_of
from analytics.diagnosis.rule import DiagnosisRule
from analytics.reports import report_names, report_of
from rmqtool.cli import app
from tests.cases import in_one

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
    "by its answer",
    "now this and now that",
    "not whole",
    "sent again and again",
    "speaks of",
    "one-way",
    "with packets as proof",
)
"""phrases that read like a translation; docs/glossary.md has the terms to use"""
_BANNED = re.compile(rf"\b({'|'.join(map(re.escape, BANNED))})(?!\w)", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_GENERATED = re.compile(r"<!-- ([\w ]+): begin -->.*?<!-- \1: end -->", re.DOTALL)
_MOST_WORDS = 12
"""words of the help of an option and of the first line of a command, without the default"""
_DEFAULT = re.compile(r" \(default\b.*\)\.?$", re.DOTALL)
_NOT_OURS = {"--install-completion", "--show-completion"}
"""options of typer"""
_MOST_SENTENCE_WORDS = 35
_END = re.compile(r"(?<=[.!?:;])\s+")
_MOST_HEADING_WORDS = 4
"""words of a heading: a noun phrase"""
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
_NO_GLOSSARY = [path for path in sorted(DOCS.glob("*.md")) if path.name != "glossary.md"]
PAGES = [*_NO_GLOSSARY, *(ROOT / name for name in ROOT_PAGES)]
"""documents; the glossary is excluded, because it lists the words not to use"""
PACKAGES = ("analytics", "dissectors", "replay", "rmqtool")


_BANNED_WORDS = frozenset(
    (
        *("anew", "answer", "answerer", "answering", "answers", "asker", "askers", "birth"),
        *("births", "expert", "experts", "grave", "gravest", "orphaned", "requester", "requesters"),
        *("told", "trespass", "trespasses", "twin", "twins"),
    )
)
"""words of identifiers for which docs/glossary.md has another term"""
_ALLOWED_NAMES = {
    "EXPERT_LIMIT": "a kind of finding: its name is in rows and filters",
    "ORPHANED": "ID of the rule queue-orphaned",
    "queue_orphaned": "module of the rule queue-orphaned",
    "experts": "attribute of the sessions of scapy, see docs/scapy.md",
    "answer": "what a user types",
    "answers": "method of scapy's packets",
}
"""name → reason why it has such a word"""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


def _commands() -> Iterator[tuple[str, Any]]:
    """Give each command and group by its words."""

    def walk(command: Any, words: str) -> Iterator[tuple[str, Any]]:
        yield words, command
        for name, one in getattr(command, "commands", {}).items():
            yield from walk(one, f"{words} {name}")

    return walk(typer.main.get_command(app), "rmqtool")


COMMANDS = list(_commands())
RULES = [rule for family in FAMILIES for rule in rules_of(family)]
_MOST_TABLE_WORDS = 6
"""words of the heading of a table of a report"""
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


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


@in_one(PAGES, str)
def test_documents_have_no_banned_phrase(page: Path) -> None:
    assert banned_in(_written_text_of(page)) == []


@in_one(sorted((DOCS / "man").iterdir()), str)
def test_man_pages_have_no_banned_phrase(page: Path) -> None:
    assert banned_in(page.read_text()) == []


@in_one(PACKAGES)
def test_texts_in_the_code_have_no_banned_phrase(package: str) -> None:
    found = [
        (str(path.relative_to(ROOT)), node.lineno, banned_in(node.value))
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [place for place in found if place[2]] == []


def _names_in(tree: ast.AST) -> Iterator[str]:
    """Give the identifiers of a module, as often as they are there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg or ""
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")
            yield node.asname or ""


def banned_words_in(name: str) -> set[str]:
    """Return the words of an identifier for which the glossary has another term."""
    return {word.lower() for word in _WORD.findall(name)} & _BANNED_WORDS


@in_one(PACKAGES)
def test_identifiers_use_the_terms_of_the_glossary(package: str) -> None:
    wrong: dict[str, set[str]] = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        names = {path.stem, *_names_in(ast.parse(path.read_text()))}
        for name in names - _ALLOWED_NAMES.keys():
            if banned_words_in(name):
                wrong.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert wrong == {}


@in_one(COMMANDS, lambda named: named[0])
def test_help_has_no_banned_phrase(named: tuple[str, Any]) -> None:
    command = named[1]
    texts = [command.help or "", *(one.help or "" for one in _options_of(command))]
    assert banned_in("\n".join(texts)) == []


@in_one(COMMANDS, lambda named: named[0])
def test_help_of_options_is_short_and_begins_with_an_uppercase_letter(
    named: tuple[str, Any],
) -> None:
    wrong = {}
    for option in _options_of(named[1]):
        text = option.help or ""
        long = len(_DEFAULT.sub("", text).split()) > _MOST_WORDS
        if (long and option.opts[0] not in _NOT_OURS) or not text[:1].isupper():
            wrong[option.opts[0]] = text
    assert wrong == {}


@in_one(COMMANDS, lambda named: named[0])
def test_help_of_commands_begins_with_a_short_sentence(named: tuple[str, Any]) -> None:
    first = (named[1].help or "").strip().split("\n")[0]
    assert 0 < len(first.split()) <= _MOST_WORDS
    assert first.endswith(".")


def long_sentences_in(text: str) -> list[str]:
    """Return the sentences of a text, or their parts at a colon or semicolon, that are too long."""
    found = _END.split(" ".join(text.split()))
    return [one for one in found if len(one.split()) > _MOST_SENTENCE_WORDS]


@in_one(RULES, lambda rule: rule.id)
def test_texts_of_rules_are_short_and_have_no_banned_phrase(rule: DiagnosisRule) -> None:
    for name in ("title", "proof", "explanation", "advice", "limits", "grpc"):
        text = getattr(rule, name)
        assert banned_in(text) == []
        assert long_sentences_in(text) == []


def test_titles_of_problems_have_no_banned_phrase() -> None:
    text = (ROOT / "tests/analytics/diagnosis/problems_of_samples.txt").read_text()
    titles = [line.partition(": ")[2] for line in text.splitlines()]
    assert banned_in("\n".join(titles)) == []


@in_one(report_names())
def test_texts_of_reports_are_short_and_have_no_banned_phrase(name: str) -> None:
    report = report_of(name)
    texts = [report.title, report.question]
    for table in report.tables:
        texts += [table.title, *(column.meaning for column in table.columns)]
        assert len(table.title.split()) <= _MOST_TABLE_WORDS, table.title
    assert banned_in("\n".join(texts)) == []
    assert [one for text in texts for one in long_sentences_in(text)] == []


@in_one(PAGES, str)
def test_sentences_of_documents_are_short(page: Path) -> None:
    blocks = re.split(
        r"\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+\. ))", _LINK.sub(r"\1", _GENERATED.sub("", prose_of(page)))
    )
    prose = [one for one in blocks if not one.lstrip().startswith(("|", "#", "<", "!["))]
    assert [one for block in prose for one in long_sentences_in(block)] == []


def _options_of(command: Any) -> list[Any]:
    """Return the options and arguments that a help shows."""
    return [one for one in command.params if not getattr(one, "hidden", False)]


@in_one(PAGES, str)
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


def test_banned_words_of_identifiers_are_found() -> None:
    assert banned_words_in("MAX_ANSWERS") == {"answers"}
    assert banned_words_in("_ServerAnswer") == {"answer"}
    assert banned_words_in("unanswered_told") == {"told"}
    assert banned_words_in("answered") == set()
