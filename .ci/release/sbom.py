"""Lists what an installation of the wheel consists of, as CycloneDX."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .interpreters import ROOT
from .tools import FOLDER, environment_at, install, run


def write_sbom(work: Path, python: Path, wheel: Path, target: Path) -> int:
    """Write the parts of the wheel with all extras in the pinned versions; return how many.

    The same wheel and the same pins give the same bytes: no time, no random number.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    installed = environment_at(work / "environment", python)
    pins = ROOT / "requirements.txt"
    install(installed, "--constraint", pins, f"rmqtool[all] @ {wheel.as_uri()}")
    command: list[str | Path] = [
        FOLDER / "cyclonedx-py",
        "environment",
        installed,
        "--output-reproducible",
    ]
    command += ["--pyproject", ROOT / "pyproject.toml", "--output-format", "JSON"]
    made = work / "sbom.json"
    run(*command, "--output-file", made, cwd=work)
    listed = json.loads(made.read_text())
    names = {part["name"] for part in listed["components"]}
    assert {"typer", "rich", "msgspec", "pyspark", "scapy"} <= names, names
    text = made.read_text().replace(work.as_uri(), "file:").replace(wheel.as_uri(), wheel.name)
    assert str(ROOT) not in text, "names a folder of this machine"
    target.write_text(text)
    return len(names)
