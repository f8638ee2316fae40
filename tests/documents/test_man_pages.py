"""The pages for man say what the commands have, and are right as man reads them."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import typer

from rmqtool.cli import app

from .man_pages import FOLDER, pages


def test_pages_are_current() -> None:
    """`python -m tests.documents.man_pages` writes them anew."""
    assert {path.name: path.read_text() for path in FOLDER.glob("*")} == pages()


def test_pages_have_every_option() -> None:
    command = typer.main.get_command(app).commands["replay"]  # type: ignore[attr-defined]
    page = pages()["rmqtool-replay.1"].replace("\\-", "-")
    names = {name for param in command.params for name in param.opts if name.startswith("-")}
    assert len(names) > 40
    assert [name for name in names if not re.search(rf"\\fB.*{re.escape(name)}\b", page)] == []


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_pages_are_right_for_mandoc() -> None:
    """A page without a date is meant: the date of what is not released is not known."""
    linted = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", *sorted(FOLDER.glob("*.1"))],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in linted.stdout.splitlines() if "missing date" not in line]
    assert said == []


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_pages_are_shown_by_man() -> None:
    shown = subprocess.run(
        ["man", "--warnings", "-l", str(FOLDER / "rmqtool-decode-pcap.1")],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LANG": "C.UTF-8", "PAGER": "cat"},
    )
    assert shown.stderr == ""
    text = re.sub(".\x08", "", shown.stdout)
    assert "-Y, --where EXPR" in text
    assert "rmqtool decode pcap *.pcap -Y 'response_code != 0 or status == unanswered'" in text
