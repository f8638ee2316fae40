"""The pages of the site as `make docs` builds it, read without mkdocs: headings, anchors, links."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
"""documents that a reader of the repository sees beside those of the site"""
_NAVIGATION = re.compile(r'^ {2,}- (?:"([^"]+)"|([^":]+)): (\S+\.md)$', re.MULTILINE)
_INCLUDED = re.compile(r'^--8<-- "([^"]+)"$', re.MULTILINE)
_HEAD = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_FENCED = re.compile(r"^( *)```.*?^\1``` *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_STARTS = re.compile(r"( {1,3}(?=[-*])|)([-*] |\d+\. |\|)")
_LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def navigation() -> list[tuple[str, str]]:
    """The titles and pages of mkdocs.yml, in order."""
    text = (ROOT / "mkdocs.yml").read_text()
    found = _NAVIGATION.findall(text[text.index("\nnav:\n") :])
    return [(quoted or plain, page) for quoted, plain, page in found]


def pages() -> list[Path]:
    """All pages of the site."""
    return sorted(DOCS.rglob("*.md"))


def text_of(page: Path) -> str:
    """The text of a page with what it includes."""
    return _INCLUDED.sub(lambda match: (ROOT / match[1]).read_text(), page.read_text())


def prose_of(page: Path) -> str:
    """The text of a page without its code blocks."""
    return _FENCED.sub("", text_of(page))


def links_of(page: Path) -> list[str]:
    """The targets of all links and pictures of a page."""
    return _LINK.findall(_CODE.sub("", prose_of(page)))


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of the headings of a page, as mkdocs names them."""
    anchors: set[str] = set()
    for heading in _HEAD.findall(prose_of(page)):
        anchor = _slug_of(heading)
        number = 1
        while anchor in anchors:
            anchor = f"{_slug_of(heading)}_{number}"
            number += 1
        anchors.add(anchor)
    return anchors


def _slug_of(heading: str) -> str:
    plain = _LINK.sub(lambda match: match[0][1 : match[0].index("]")], heading).replace("`", "")
    ascii_ = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_).strip().lower())


def blocks_without_a_blank_line(page: Path) -> Iterator[tuple[int, str]]:
    """Lists and tables right below a line of text, lists indented by less than four.

    GitHub shows them as such, mkdocs as parts of what stands above.
    """
    fenced = False
    before = ""
    for number, line in enumerate(text_of(page).splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        starts = _STARTS.match(line)
        if starts and not fenced:
            kind = "1" if starts[2][0].isdigit() else starts[2][0]
            above = "1" if before[:1].isdigit() else before[:1]
            if starts[1] or not (above in ("", "#", " ", kind) or before.startswith("<!--")):
                yield number, line
        before = line
