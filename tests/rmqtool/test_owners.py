"""Packages of the same names as ours: which file, whose, and what to do. Real files, no installer.

`tests/test_wheel.py` does the same with wheels and pip.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rmqtool.owners import PACKAGES, clash
from rmqtool.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
ASK = "from rmqtool.owners import clash; print(clash())"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder as pip leaves it: what the check looks at of rmqtool, and its RECORD."""
    folder = tmp_path / "site"
    names = ["rmqtool/__init__.py", "rmqtool/owners.py", "rmqtool/version.py"]
    names += [f"{package}/__init__.py" for package in PACKAGES]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    record(folder, f"rmqtool-{VERSION}", names)
    return folder


def record(folder: Path, about: str, names: list[str]) -> None:
    info = folder / f"{about}.dist-info"
    info.mkdir()
    name, version = about.split("-")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{path},,{(folder / path).stat().st_size}\n" for path in names]
    (info / "RECORD").write_text("".join(lines))


def asked(site: Path, *before: Path) -> str:
    path = f"import sys; sys.path[:0] = {[str(folder) for folder in (*before, site)]};"
    return subprocess.run(
        [sys.executable, "-S", "-I", "-c", path + ASK], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_source_tree_and_an_installation_alone_are_in_order(site: Path) -> None:
    assert clash() is None
    assert asked(site) == "None"


def test_a_file_that_another_distribution_replaced(site: Path) -> None:
    (site / "replay" / "__init__.py").write_text("VERSION = 3\n")
    record(site, "replayer-3.0", ["replay/__init__.py"])
    said = asked(site)
    assert f"{site}/replay/__init__.py belongs to replayer 3.0" in said
    assert "pipx install rmqtool" in said
    assert said.endswith("fatal=True)")


@pytest.mark.parametrize("name", ["dissectors/sheep.py", "dissectors.py"])
@pytest.mark.slow
def test_a_file_beside_ours(site: Path, name: str) -> None:
    (site / name).write_text("")
    assert asked(site) == "None"  # nobody's
    record(site, "farm-1.2", [name])
    said = asked(site)
    assert f"{site}/{name} belongs to farm 1.2" in said
    assert said.endswith("fatal=False)")


@pytest.mark.slow
def test_a_file_that_its_user_changed_is_no_clash(site: Path) -> None:
    (site / "replay" / "__init__.py").write_text("changed = True\n")
    assert asked(site) == "None"


def test_a_package_that_is_found_before_ours(site: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "analytics.py").write_text("")
    # as a module of that name in the directory that `python -m rmqtool` is started in
    said = asked(site, work)
    assert "hides the package analytics" in said
    assert "PYTHONPATH" in said


def test_a_package_that_another_distribution_took_along(site: Path) -> None:
    (site / "analytics" / "__init__.py").unlink()
    said = asked(site)
    assert "the package analytics of rmqtool is incomplete" in said
    assert "Reinstall rmqtool" in said
