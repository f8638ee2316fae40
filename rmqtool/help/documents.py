"""The project's documents, as `rmqtool help` shows them: a wheel has them beside this module.

In the source tree they are the files of `docs/`; `setup.py` copies them into the wheel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = (_PACKAGE / "documents", _PACKAGE.parent / "docs")
"""Folders of the documents: in a wheel, in the source tree."""
_HEAD = re.compile(r"(#{1,6})\s+(.*\S)")
_LINK = re.compile(r"\[([^\]]*)\]\((?:docs/)?([a-z-]+)\.md(?:#[^)]*)?\)")
_ANCHOR = re.compile(r"\[([^\]]*)\]\(#[^)]*\)")
_PATH = re.compile(r"`?docs/([a-z-]+)\.md`?")
_FENCE = "```"
_START = re.compile(r"^(?:#+|[-*>])\s+")
"""mark of a heading, an item, or a quotation"""
_CELL_END = re.compile(r"(?<!\\)\|")
_MARKUP = re.compile(r"`([^`]*)`|\*\*|(?<![\w*])\*(\w[^*`]*)\*(?![\w*])")
"""code, the ends of strong text, emphasis"""
_MOST = 100
"""Characters of a line that a search shows, without the ellipsis."""


class Section(NamedTuple):
    """A heading with its text and subsections."""

    title: str
    """text of the heading"""
    level: int
    """1 for the document itself"""
    lines: Sequence[str]
    """its lines, the heading first"""


def topics() -> dict[str, Path]:
    """Return the documents that are installed, sorted by topic; empty where there are none."""
    for folder in FOLDERS:
        documents = {
            path.stem: path for path in sorted(folder.glob("*.md"), key=lambda file: file.stem)
        }
        if documents:
            return documents
    return {}


def document(path: Path) -> str:
    """Return a document; references to other documents name the command that shows them.

    Those within the document are text.
    """
    text = path.read_text(encoding="utf-8")
    text = _ANCHOR.sub(r"\1", text)
    text = _LINK.sub(lambda match: f"{match[1]} (`rmqtool help {match[2]}`)", text)
    return _PATH.sub(lambda match: f"`rmqtool help {match[1]}`", text)


def title_of(text: str) -> str:
    """Return the title of a document."""
    return next((section.title for section in sections(text)), "")


def sections(text: str) -> list[Section]:
    """Return the sections of a document in order; a section contains those below it."""
    lines = text.splitlines()
    heads = _heads(lines)
    result = []
    for position, (start, level, title) in enumerate(heads):
        later = (line for line, other_level, _ in heads[position + 1 :] if other_level <= level)
        result.append(Section(title, level, lines[start : next(later, len(lines))]))
    return result


def chosen_sections(text: str, words: str) -> list[Section]:
    """Return the sections whose headings contain `words`, without those inside another of them."""
    wanted = words.lower()
    chosen: list[Section] = []
    inside = 0
    for section in sections(text):
        if inside and section.level > inside:
            continue
        inside = 0
        if wanted in section.title.lower():
            chosen.append(section)
            inside = section.level
    return chosen


def topics_with(words: str) -> list[str]:
    """Return the topics with a heading that contains whole words, those that consist of it first.

    Upper and lower case are equal. Titles of documents do not count.
    """
    wanted = re.compile(rf"\b{re.escape(words)}\b", re.IGNORECASE)
    found = []
    for topic, path in topics().items():
        titles = [section.title for section in sections(document(path)) if section.level > 1]
        if near := [title for title in titles if wanted.search(title)]:
            found.append((min(map(len, near)) > len(words), topic))
    return [topic for _, topic in sorted(found)]


def sections_with(word: str) -> list[tuple[str, str]]:
    """Return topic and heading of the innermost sections that contain a word, with a line of each.

    Upper and lower case are equal.
    """
    wanted = word.lower()
    matches = []
    for topic, path in topics().items():
        lines = document(path).splitlines()
        heads = _heads(lines)
        for (start, _, title), after in zip(heads, [*heads[1:], (len(lines), 0, "")], strict=True):
            line = next((text for text in lines[start : after[0]] if wanted in text.lower()), None)
            if line is not None:
                matches.append(
                    (f"{topic} {title.replace('`', '').lower()}", _excerpt(_plain(line)))
                )
    return matches


def _plain(line: str) -> str:
    """Return a line of Markdown as text: the cells of a row, and nothing that only marks up."""
    text = line.strip()
    if text.startswith("|"):
        cells = (cell.strip().replace(r"\|", "|") for cell in _CELL_END.split(text))
        text = ": ".join(filter(None, cells))
    return _MARKUP.sub(lambda match: match[1] or match[2] or "", _START.sub("", text))


def _excerpt(text: str) -> str:
    """Return a text; a long one ends with a whole word and an ellipsis."""
    if len(text) <= _MOST:
        return text
    return f"{text[: _MOST + 1].rpartition(' ')[0] or text[:_MOST]} …"


def _heads(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (line, level, title) of all headings; a fenced block has none."""
    heads = []
    fenced = False
    for number, line in enumerate(lines):
        if line.startswith(_FENCE):
            fenced = not fenced
        match = None if fenced else _HEAD.match(line)
        if match:
            heads.append((number, len(match[1]), match[2].replace("`", "")))
    return heads
