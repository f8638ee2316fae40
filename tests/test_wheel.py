"""The wheel holds the four packages and nothing else, and runs where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import typer

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"
PACKAGES = {"rmqtool", "dissectors", "replay", "analytics"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a clone: only what is committed is in it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(source)], check=True)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    done = subprocess.run(
        [*command, str(folder), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("rmqtool-*.whl")
    return built


def test_wheel_ships_exactly_the_four_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == PACKAGES
    data = {name.split(".data/data/")[1] for name in names if ".data/" in name}
    assert data == {f"share/man/man1/{path.name}" for path in (ROOT / "docs/man").glob("*.1")}
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert modules <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {"dissectors/anonymize/words.txt", "analytics/page/page.css"} <= names
    assert "dissectors/wireshark/stream.lua" in names
    assert {f"rmqtool/documents/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/dissectors/with_scapy/NOTICE") for name in names)


def test_wheel_runs_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies are those that the tests run with; the source tree is out of reach."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--no-index", "--no-deps", str(wheel)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = environment / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(str(Path(typer.__file__).parents[1]) + "\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*arguments: str, status: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            arguments,
            cwd=elsewhere,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout, done.stderr

    found, _ = run(str(python), "-c", "import rmqtool, dissectors; print(rmqtool.__file__)")
    assert Path(found.strip()).is_relative_to(environment)
    command = str(environment / "bin" / "rmqtool")
    said, complaints = run(command, "--version")
    assert (said.startswith("rmqtool "), complaints) == (True, "")
    rows = run(command, "decode", "pcap", str(SAMPLE), "--format", "jsonl")[0].splitlines()
    assert len(rows) > 1
    assert "SEND_MESSAGE_V2" in {json.loads(row)["request_name"] for row in rows}

    other = _other_wheel(tmp_path)
    subprocess.run([*install, "--no-index", "--no-deps", str(other)], check=True)
    _, complaints = run(command, "--version", status=1)
    assert f"{packages}/analytics/__init__.py belongs to web-analytics 2.1" in complaints
    assert "pipx install rmqtool" in complaints
    ours = [*install, "--no-index", "--no-deps", "--force-reinstall", str(wheel)]
    subprocess.run(ours, check=True)
    said, complaints = run(command, "--version")
    assert said.startswith("rmqtool ")
    assert f"{packages}/analytics/client.py belongs to web-analytics 2.1" in complaints
    assert "may no longer work" in complaints


def _other_wheel(folder: Path) -> Path:
    """Write a wheel of another distribution with a package `analytics`."""
    path = folder / "web_analytics-2.1-py3-none-any.whl"
    about = "web_analytics-2.1.dist-info"
    files = {
        "analytics/__init__.py": "from .client import track\n",
        "analytics/client.py": "def track() -> None: ...\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: web-analytics\nVersion: 2.1\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in files))
    return path
