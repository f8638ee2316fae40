"""Whether the packages beside `rmqtool` are its own: other distributions have such names, too.

`analytics`, `dissectors` and `replay` are common names. Where another distribution has one of them
in the same environment, its files and ours lie in one folder, and what was installed last wins.
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
    """Something of another owner where ours is, or was."""

    text: str
    """which file, and whose; then the way out"""
    fatal: bool
    """rmqtool cannot work: what is there in place of ours is not ours"""


def clash(folder: str | None = None) -> Clash | None:
    """Return what is wrong with the packages beside this one, or None.

    Costs less than a millisecond where nothing is: a name is looked up, a list of files read.

    Args:
        folder: where the packages are; by default where this one is.
    """
    ours = folder or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return _shadowed(ours) or _mixed(ours)


def _shadowed(ours: str) -> Clash | None:
    """Return which package is imported from elsewhere."""
    for name in PACKAGES:
        spec = find_spec(name)
        origin = spec.origin if spec is not None else None
        if origin is None:
            text = f"the package {name} of rmqtool is not complete in {ours}"
            return Clash(f"{text}\nInstall rmqtool again, or {ALONE}", fatal=True)
        home = os.path.dirname(os.path.dirname(origin))
        if home != ours and os.path.realpath(home) != os.path.realpath(ours):
            owner = _owner_of([origin])
            text = f"{origin} hides the package {name} of rmqtool"
            if owner is not None:
                return Clash(f"{text}: it is of {owner[1]}\nTo have both, {ALONE}", fatal=True)
            way = "Start rmqtool from another directory, look at PYTHONPATH, or"
            return Clash(f"{text}\n{way} {ALONE}", fatal=True)
    return None


def _mixed(ours: str) -> Clash | None:
    """Return which file in the folders of our packages is of another distribution."""
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
            elif entry.stat().st_size != size:
                replaced.append(entry.path)
        module = os.path.join(ours, f"{name}.py")
        if os.path.exists(module):
            beside.append(module)
    for paths, fatal in ((replaced, True), (beside, False)):
        owner = _owner_of(paths) if paths else None
        if owner is not None:
            path, distribution = owner
            text = f"{path} is of {distribution}, which has a package of a name that rmqtool uses"
            said = "rmqtool cannot run" if fatal else f"{distribution} may not work any more"
            return Clash(f"{text}; {said}\nTo have both, {ALONE}", fatal)
    return None


def _installed(record: str) -> Mapping[str, int]:
    """Return the files that were installed, with their sizes; a file of ours that is not there."""
    try:
        with open(record, encoding="utf-8") as lines:
            fields = [line.rstrip("\n").rsplit(",", 2) for line in lines]
    except OSError:
        return {}
    return {
        path: int(size)  # type: ignore[number-in-text]
        for path, _, size in fields
        if size.isdecimal() and len(size) < 20
    }


def _owner_of(paths: list[str]) -> tuple[str, str] | None:
    """Return one of the paths with the distribution that installed it; None where none did."""
    from importlib.metadata import distributions

    wanted = {os.path.realpath(path): path for path in paths}
    for distribution in distributions():
        if distribution.name == "rmqtool":
            continue
        for file in distribution.files or ():
            if file.parts[0] not in PACKAGES and file.stem not in PACKAGES:
                continue
            found = wanted.get(os.path.realpath(str(distribution.locate_file(file))))
            if found is not None:
                return found, f"{distribution.name} {distribution.version}"
    return None


def said_of_owners() -> bool:
    """Say on standard error what is wrong; return whether rmqtool can run."""
    found = clash()
    if found is None:
        return True
    first, way = found.text.split("\n")
    print(f"rmqtool: {first}\n  {way}", file=sys.stderr)
    return not found.fatal
