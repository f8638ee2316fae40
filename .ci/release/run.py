"""Which parts of a release are asked for."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .build import build_all, build_pure, committed
from .check import check_wheel
from .image import check_image
from .installers import check_installers
from .interpreters import ROOT, found, supported
from .sbom import write_sbom
from .tools import Failed

DIST = ROOT / "dist"
WORK = ROOT / ".cache" / "release"


def dist(pythons: dict[str, Path]) -> None:
    """Build everything, test each wheel in fresh environments, put all into dist/."""
    built = build_all(WORK / "build", pythons, committed())
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
    commit = committed()
    first = build_all(WORK / "once", pythons, commit)
    second = build_all(WORK / "again" / "elsewhere", pythons, commit, umask=0o077)
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
    """Write dist/rmqtool-VERSION.cdx.json for the pure wheel of what is committed."""
    python = next(iter(pythons.values()))
    wheel = _pure(python)
    DIST.mkdir(exist_ok=True)
    target = DIST / f"rmqtool-{wheel.name.split('-')[1]}.cdx.json"
    count = write_sbom(WORK / "sbom", python, wheel, target)
    print(f"{target.relative_to(ROOT)}: {count} components")


def installers(pythons: dict[str, Path]) -> None:
    """Do with a wheel what docs/install.md tells users to do."""
    python = next(iter(pythons.values()))
    held = check_installers(WORK / "installers", python, _pure(python))
    print(f"{python}: {', '.join(held)}")


def image(pythons: dict[str, Path]) -> None:
    """Run the steps of the Containerfile without a container, with the Python nearest to its."""
    version = "3.13" if "3.13" in pythons else next(reversed(pythons))
    python = pythons[version]
    held = check_image(WORK / "image", python, [_pure(python)])
    print(f"Containerfile, with CPython {version}: {', '.join(held)}")


def _pure(python: Path) -> Path:
    return build_pure(WORK / "pure", python, committed())


_PARTS = {part.__name__: part for part in (dist, reproducible, sbom, installers, image)}


def main(arguments: Sequence[str]) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m release")
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
