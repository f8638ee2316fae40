"""Runs the programs of the environment of releases, and others, and shows what failed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(sys.executable).parent
"""where uv, auditwheel, … are: the environment that this runs in"""


class Failed(Exception):
    """A program that ended with an error; the message has what it printed."""


def run(
    *command: str | Path, cwd: Path, env: Mapping[str, str] | None = None, umask: int = -1
) -> str:
    """Return what a program printed; its umask is ours, unless one is given.

    Raises:
        Failed: it ended with another status than 0.
    """
    arguments = [str(word) for word in command]
    done = subprocess.run(
        arguments,
        cwd=cwd,
        env=dict(env or os.environ),
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
    )
    if done.returncode != 0:
        raise Failed(
            f"{' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def environment_at(folder: Path, python: Path) -> Path:
    """Make a virtual environment; return its interpreter."""
    run(FOLDER / "uv", "venv", "--quiet", "--clear", "--python", python, folder, cwd=folder.parent)
    return folder / "bin" / "python"


def install(python: Path, *what: str | Path) -> None:
    """Install into the environment of an interpreter."""
    run(FOLDER / "uv", "pip", "install", "--quiet", "--python", python, *what, cwd=python.parent)
