"""Which Pythons are supported, and which of them are on this machine."""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CLASSIFIER = "Programming Language :: Python :: 3."


def supported() -> list[str]:
    """Return the versions that pyproject.toml names, as `3.11`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [
        "3." + line.removeprefix(_CLASSIFIER)
        for line in project["classifiers"]
        if line.startswith(_CLASSIFIER)
    ]


def found() -> dict[str, Path]:
    """Return a CPython of each supported version that is here, by version."""
    pythons: dict[str, Path] = {}
    for version in supported():
        for path in _candidates(version):
            if path.exists() and (python := _usable(path)) is not None:
                pythons[version] = python
                break
    return pythons


def _candidates(version: str) -> Iterator[Path]:
    """Yield where a Python may be: on PATH, where pyenv and uv put theirs, in /opt."""
    for folder in os.environ.get("PATH", "").split(":"):
        if folder:
            yield Path(folder, f"python{version}")
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    uv = home / ".local" / "share" / "uv" / "python"
    yield from sorted(uv.glob(f"cpython-{version}.*/bin/python{version}"), reverse=True)
    yield from sorted(Path("/opt").glob(f"python/cp3*/bin/python{version}"))


def _usable(path: Path) -> Path | None:
    """Return the interpreter itself where it has headers and can make environments, else None."""
    script = (
        "import sys, sysconfig, os, venv, ensurepip\n"
        "headers = os.path.join(sysconfig.get_path('include'), 'Python.h')\n"
        "free = sysconfig.get_config_var('Py_GIL_DISABLED')\n"
        "if sys.implementation.name == 'cpython' and os.path.exists(headers) and not free:\n"
        "    print(sys.executable)\n"
    )
    try:
        asked = subprocess.run(
            [str(path), "-c", script], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:
        return None
    answer = asked.stdout.strip()  # a shim of pyenv may know no such version
    return Path(answer) if answer else None
