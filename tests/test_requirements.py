"""What make installs has pins and hashes; what the audit says is judged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.audit import FOUND, NOT_CHECKED, said_of

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(ROOT.glob("requirements*.txt"))
_PINNED = re.compile(
    r"[A-Za-z0-9_.-]+==[^\s;]+( ; [^\\]+)? \\(\n    --hash=sha256:[0-9a-f]{64}( \\)?)+"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_everything_is_pinned_with_hashes(path: Path) -> None:
    text = "".join(
        line
        for line in path.read_text().splitlines(keepends=True)
        if not line.startswith(("#", "-r "))
    )
    assert _PINNED.sub("", text).strip() == ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_registry_is_named(path: Path) -> None:
    assert "://" not in path.read_text()
    assert "index" not in path.read_text()


def test_the_files_belong_together() -> None:
    assert [path.name for path in FILES] == [
        "requirements-audit.txt",
        "requirements-build.txt",
        "requirements-docs.txt",
        "requirements-release.txt",
        "requirements.txt",
    ]
    assert "\n-r requirements-build.txt\n" in (ROOT / "requirements.txt").read_text()
    makefile = (ROOT / "Makefile").read_text()
    assert makefile.count("$(PIP)") == makefile.count("--require-hashes") + 1  # ourselves


_GOOD = {"name": "a", "version": "1", "vulns": []}
_BAD = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}]}
_SKIPPED = {"name": "c", "skip_reason": "it was not found"}


def test_an_audit_says_what_it_did_not_check() -> None:
    assert said_of([_GOOD]) == (["1 of 1 packages checked"], 0)
    assert said_of([_GOOD, _SKIPPED])[1] == NOT_CHECKED
    assert "not checked: c" in said_of([_GOOD, _SKIPPED])[0]
    lines, status = said_of([_SKIPPED])
    assert (status, "NOT AUDITED" in lines[0]) == (NOT_CHECKED, True)
    assert said_of([])[1] == NOT_CHECKED
    lines, status = said_of([_GOOD, _BAD, _SKIPPED])
    assert (status, lines[0]) == (FOUND, "b 2: PYSEC-1, mended in 3")
