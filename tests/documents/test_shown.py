"""Every command that a document shows works, and writes what the document shows."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from .pages import ROOT
from .shown import commands_of, page_as_run, pages_with_commands

PAGES = pages_with_commands()


@pytest.mark.parametrize("page", PAGES, ids=[path.relative_to(ROOT).as_posix() for path in PAGES])
def test_outputs_are_those_of_today(page: Path, tmp_path: Path) -> None:
    """`python -m tests.documents.shown` writes them anew: read every line that changes."""
    text = page.read_text()
    now = page_as_run(text, tmp_path)
    assert "\n".join(difflib.unified_diff(text.splitlines(), now.splitlines(), n=1)) == ""


def test_tutorials_begin_with_a_capture_that_the_reader_has() -> None:
    tutorials = [page for page in PAGES if page.name.startswith("tutorial-")]
    assert len(tutorials) >= 5
    for page in tutorials:
        commands = commands_of(page.read_text())
        assert len(commands) >= 4, page.name
        assert all(
            any(text in command for text in ("samples/", "--explain", "codes"))
            for command in commands
        )
