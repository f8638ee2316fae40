"""Check that the packages beside `rmqtool` are its own: other distributions use their names.

`analytics`, `dissectors`, and `replay` are common names. If another distribution in the environment
uses one, its files are in the same folder as ours, and the last installed file wins.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from .version import VERSION

PACKAGES = ("analytics", "dissectors", "replay")
ALONE = "install rmqtool in an environment of its own: pipx install rmqtool"


class Clash(NamedTuple):
    """A clash with the files of another distribution."""

    text: str
    """the file and its owner, then a hint"""
    fatal: bool
    """rmqtool cannot run: a file of ours was replaced"""


def clash() -> Clash | None:
    """Return a clash of the packages beside this one, or None.

    Takes less than a millisecond without a clash: a name lookup and a list of files.
    """
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return _shadowed(ours) or _mixed(ours)


def _shadowed(ours: str) -> Clash | None:
    """Return the package that is imported from elsewhere, or None."""
    for name in PACKAGES:  # `find_spec` of a package without dots imports nothing
        spec = find_spec(name)
        origin = spec.origin if spec is not None else None
        if origin is None:
            text = f"the package {name} of rmqtool is incomplete in {ours}"
            return Clash(f"{text}\nReinstall rmqtool, or {ALONE}", fatal=True)
        home = os.path.dirname(os.path.dirname(origin))
        if home != ours and os.path.realpath(home) != os.path.realpath(ours):
            owner = _owner_of([origin])
            text = f"{origin} hides the package {name} of rmqtool"
            if owner is not None:
                return Clash(f"{text}: it belongs to {owner[1]}\nTo have both, {ALONE}", fatal=True)
            way = "Start rmqtool from another directory, check PYTHONPATH, or"
            return Clash(f"{text}\n{way} {ALONE}", fatal=True)
    return None


def _mixed(ours: str) -> Clash | None:
    """Return a file of another distribution in the folders of our packages, or None."""
    installed = _installed(os.path.join(ours, f"rmqtool-{VERSION}.dist-info", "RECORD"))
    if not installed:
        return None  # the source tree
    replaced, beside = [], []
    for name in PACKAGES:
        for entry in os.scandir(os.path.join(ours, name)):
            size = installed.get(f"{name}/{entry.name}")
            if size is None:
                if entry.name != "__pycache__" and entry.is_file():
                    beside.append(entry.path)
            elif entry.stat().st_size != size:  # RECORD has the size of the file that we installed
                replaced.append(entry.path)
        module = os.path.join(ours, f"{name}.py")
        if os.path.exists(module):
            beside.append(module)
    for paths, fatal in ((replaced, True), (beside, False)):
        owner = _owner_of(paths) if paths else None
        if owner is not None:
            path, distribution = owner
            text = f"{path} belongs to {distribution}, which uses the same package name as rmqtool"
            effect = "rmqtool cannot run" if fatal else f"{distribution} may no longer work"
            return Clash(f"{text}; {effect}\nTo have both, {ALONE}", fatal)
    return None


def _installed(record: str) -> Mapping[str, int]:
    """Return the installed files with their sizes, and a missing file of ours."""
    try:
        with open(record, encoding="utf-8") as lines:
            # From the right: a path may contain commas, hash and size cannot.
            fields = [line.rstrip("\n").rsplit(",", 2) for line in lines]
    except OSError:
        return {}
    return {
        path: int(size)  # type: ignore[number-in-text]
        for path, _, size in fields
        if size.isdecimal() and len(size) < 20
    }


def _owner_of(paths: list[str]) -> tuple[str, str] | None:
    """Return a path with the distribution that installed it, or None."""
    from importlib.metadata import distributions

    wanted = {os.path.realpath(path): path for path in paths}
    for distribution in distributions():
        if distribution.name == "rmqtool":
            continue
        for file in distribution.files or ():
            if file.parts[0] not in PACKAGES and file.stem not in PACKAGES:
                continue
            match = wanted.get(os.path.realpath(str(distribution.locate_file(file))))
            if match is not None:
                return match, f"{distribution.name} {distribution.version}"
    return None


def said_of_owners() -> bool:
    """Report a clash on standard error; return whether rmqtool can run."""
    problem = clash()
    if problem is None:
        return True
    first, way = problem.text.split("\n")
    print(f"rmqtool: {first}\n  {way}", file=sys.stderr)
    return not problem.fatal
