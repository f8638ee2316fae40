"""Runs the steps of the Containerfile in a folder, where no container engine is there.

Rules: nothing outside the folder is written and no right is needed: absolute places of the image
are places in the folder, and what needs root (packages of the system, capabilities, a user) is
not run and said so. What the image then has is tried as an installed wheel is.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .check import SAMPLE, environment_of, network_of, try_command
from .interpreters import ROOT
from .tools import environment_at, run

_NEEDS_ROOT = ("apt-get", "setcap", "useradd")
_PLACES = re.compile(r"(?<![\w/.$-])/(opt|tmp|var|captures)\b")
_SHIM = '#!/bin/sh\necho "$(basename "$0") $*" >> {log}\n'


class Step(NamedTuple):
    """One instruction."""

    name: str
    """RUN, COPY, …"""
    text: str
    """the rest, in one line"""


def steps_of(text: str) -> Iterator[Step]:
    """Give the instructions of a Containerfile."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    for line in joined.splitlines():
        name, _, rest = line.strip().partition(" ")
        yield Step(name, rest.strip())


def check_image(work: Path, python: Path, wheels: list[Path]) -> list[str]:
    """Return what was tried and held, and what was not run; `work` is emptied before.

    Raises:
        Failed: a step ended with an error.
        AssertionError: the command of the image said something else than it should.
    """
    shutil.rmtree(work, ignore_errors=True)
    root, shims, log = work / "root", work / "shims", work / "not-run"
    for folder in (root / "tmp", root / "opt", root / "captures", shims):
        folder.mkdir(parents=True)
    log.write_text("")
    for name in _NEEDS_ROOT:
        (shims / name).write_text(_SHIM.format(log=log))
        (shims / name).chmod(0o755)
    base = environment_at(work / "base", python)  # the python of the image
    environment = network_of() | environment_of(root / "captures")
    environment["PATH"] = f"{shims}:{base.parent}:{environment['PATH']}"
    settings: dict[str, str] = {}
    for step in steps_of((ROOT / "Containerfile").read_text()):
        if step.name == "RUN":
            run("sh", "-c", _inside(step.text, root), cwd=root, env=environment)
        elif step.name == "COPY":
            _, target = step.text.split()
            place = Path(_inside(target, root))
            place.mkdir(parents=True, exist_ok=True)
            for wheel in wheels:
                shutil.copy(wheel, place)
        else:
            settings[step.name] = step.text
    return _tried(root, settings, log)


def _inside(text: str, root: Path) -> str:
    return _PLACES.sub(lambda place: f"{root}/{place[1]}", text)


def _tried(root: Path, settings: dict[str, str], log: Path) -> list[str]:
    captures = root / "captures"
    sample = captures / SAMPLE
    shutil.copy(ROOT / "samples" / SAMPLE, sample)
    path = re.search(r"PATH=([^:]+):", settings["ENV"])
    assert path is not None, settings["ENV"]
    folder = Path(_inside(path[1], root))
    (entry,) = json.loads(settings["ENTRYPOINT"])
    environment = environment_of(captures)
    said = run(folder / entry, *json.loads(settings["CMD"]), cwd=captures, env=environment)
    assert "Decode, replay and report" in said, said
    live = run(folder / "rmqtool-live", "decode", "live", "-D", cwd=captures, env=environment)
    assert "lo " in live, live
    held = try_command(folder / entry, captures, sample)
    left = [line.split(" ", 1)[0] for line in log.read_text().splitlines()]
    assert set(left) == set(_NEEDS_ROOT), left
    assert settings["USER"] == "10001", settings
    return [
        "help",
        "the interpreter of live capture",
        *held,
        f"not run, for want of root: {', '.join(dict.fromkeys(left))}, USER {settings['USER']}",
    ]
