"""Which parts of a release are asked for."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .build import build_all
from .check import check_wheel
from .interpreters import ROOT, found, supported
from .sbom import write_sbom
from .tools import Failed

DIST = ROOT / "dist"
WORK = ROOT / ".cache" / "release"


def dist(pythons: dict[str, Path]) -> None:
    """Build everything, test each wheel in fresh environments, put all into dist/."""
    built = build_all(WORK / "build", pythons)
    (pure,) = (path for path in built if path.name.endswith("none-any.whl"))
    for version, python in pythons.items():
        tag = f"-cp{version.replace('.', '')}-"
        (compiled,) = (path for path in built if tag in path.name)
        for wheel, resolution in ((compiled, "highest"), (pure, "lowest-direct")):
            held = check_wheel(WORK / "check", python, wheel, resolution)
            print(f"{wheel.name} on {version}, {resolution} dependencies: {', '.join(held)}")
            sys.stdout.flush()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for path in built:
        shutil.copy(path, DIST)
        print(f"dist/{path.name}  {path.stat().st_size:,} bytes")


def reproducible(pythons: dict[str, Path]) -> None:
    """Build everything twice, in other folders and with another umask; compare all bytes.

    Raises:
        Failed: files differ.
    """
    first = build_all(WORK / "once", pythons)
    second = build_all(WORK / "again" / "elsewhere", pythons, umask=0o077)
    if [path.name for path in first] != [path.name for path in second]:
        raise Failed("the second build made other files")
    different = []
    for one, other in zip(first, second, strict=True):
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other)]
        print(f"{digests[0]}  {one.name}{'' if digests[0] == digests[1] else '  DIFFERS'}")
        if digests[0] != digests[1]:
            different.append(f"{one} {other}")
    if different:
        raise Failed("not the same bytes: " + ", ".join(different))


def sbom(pythons: dict[str, Path]) -> None:
    """Write dist/rmqtool-VERSION.cdx.json for the pure wheel in dist/.

    Raises:
        Failed: there is no wheel.
    """
    wheels = sorted(DIST.glob("*-none-any.whl"))
    if len(wheels) != 1:
        raise Failed("dist/ has no pure wheel: make dist")
    version = wheels[0].name.split("-")[1]
    target = DIST / f"rmqtool-{version}.cdx.json"
    count = write_sbom(WORK / "sbom", next(iter(pythons.values())), wheels[0], target)
    print(f"{target.relative_to(ROOT)}: {count} components")


_PARTS = {"dist": dist, "reproducible": reproducible, "sbom": sbom}


def main(arguments: Sequence[str]) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.release")
    parser.add_argument("what", choices=sorted(_PARTS))
    parser.add_argument(
        "--python", action="append", choices=supported(), help="only this version; repeatable"
    )
    asked = parser.parse_args(arguments)
    pythons = {
        version: path
        for version, path in found().items()
        if not asked.python or version in asked.python
    }
    missing = [version for version in asked.python or supported() if version not in pythons]
    print(f"CPython here: {', '.join(f'{v} ({p})' for v, p in pythons.items()) or 'none'}")
    if missing:
        print(f"not here, so not built and not tested: {', '.join(missing)}")
    if not pythons:
        return 1
    sys.stdout.flush()
    try:
        _PARTS[asked.what](pythons)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0
