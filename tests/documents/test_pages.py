"""The site is whole: what mkdocs would warn of in its strict mode is found without mkdocs."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from tests.cases import in_one

from .pages import (
    DOCS,
    ROOT,
    ROOT_PAGES,
    anchors_of,
    blocks_without_a_blank_line,
    links_of,
    navigation,
    pages,
    prose_of,
)

PAGES = [*pages(), *(ROOT / name for name in ROOT_PAGES)]


def test_the_navigation_has_each_page_once() -> None:
    named = [page for _, page in navigation()]
    assert sorted(named) == [path.relative_to(DOCS).as_posix() for path in pages()]
    titles = [title for title, _ in navigation()]
    assert len(set(titles)) == len(titles) > 15


@in_one(PAGES, str)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links_of(page):
        target, _, anchor = link.partition("#")
        if target.startswith(("https://", "http://")):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors_of(path)):
            broken.append(link)
        elif DOCS in page.parents and DOCS not in path.parents:
            broken.append(f"{link} is not part of the site")
    assert broken == []


@in_one(PAGES, str)
def test_documents_are_named_by_links(page: Path) -> None:
    """Where the site has a page, a bare path would leave its readers without a way."""
    if DOCS in page.parents and page.parent != DOCS / "site":
        assert "docs/" not in prose_of(page)


@in_one(PAGES, str)
def test_lists_and_tables_stand_apart(page: Path) -> None:
    assert list(blocks_without_a_blank_line(page)) == []


def test_every_picture_is_shown() -> None:
    shown = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in links_of(page)
        if link.endswith((".png", ".svg"))
    }
    assert sorted((DOCS / "images").iterdir()) == sorted(shown)


def test_what_the_reference_of_the_api_names_is_there() -> None:
    names = re.findall(r"^::: (\S+)$", (DOCS / "site" / "api.md").read_text(), re.MULTILINE)
    assert len(names) > 10
    for name in names:
        module, _, inner = name.rpartition(".")
        try:
            import_module(name)
        except ModuleNotFoundError:
            assert hasattr(import_module(module), inner), name
