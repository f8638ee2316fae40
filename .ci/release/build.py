"""Builds an sdist, a pure wheel, and a compiled wheel for each Python, from what is committed."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from .interpreters import ROOT
from .tools import FOLDER, environment_at, install, run

UMASK: Final = 0o022


class Commit(NamedTuple):
    """What is built: a branch may go on meanwhile."""

    id: str
    time: str
    """in seconds: the time of all that is built"""


def committed() -> Commit:
    """Return the last commit."""
    return Commit(*run("git", "log", "-1", "--format=%H %ct", cwd=ROOT).split())


def build_all(
    work: Path, pythons: Mapping[str, Path], commit: Commit, umask: int = UMASK
) -> list[Path]:
    """Return the files built, all in `work/dist`; `work` is emptied before.

    Every wheel is built from the sdist, with the pinned tools.
    """
    shutil.rmtree(work, ignore_errors=True)
    made = work / "dist"
    made.mkdir(parents=True)
    before = os.umask(umask)
    try:
        sdist = _sdist(work, made, next(iter(pythons.values())), commit)
        for number, (version, python) in enumerate(pythons.items()):
            builder = _builder(work, version, python)
            source = _unpacked(sdist, work / f"source-{version}")
            if number == 0:
                _wheel(builder, source, made, commit, compiled=False)
            print(f"compiling for CPython {version}: {python}", flush=True)
            _wheel(builder, source, made, commit, compiled=True)
    finally:
        os.umask(before)
    return sorted(made.iterdir())


def build_pure(work: Path, python: Path, commit: Commit) -> Path:
    """Return a pure wheel, built from the sdist; `work` is emptied before."""
    shutil.rmtree(work, ignore_errors=True)
    made = work / "dist"
    made.mkdir(parents=True)
    source = _unpacked(_sdist(work, made, python, commit), work / "source")
    _wheel(_builder(work, "pure", python), source, made, commit, compiled=False)
    (wheel,) = made.glob("*.whl")
    return wheel


def _builder(work: Path, version: str, python: Path) -> Path:
    folder = work / f"builder-{version}"
    if not folder.exists():
        environment_at(folder, python)
        requirements = ROOT / "requirements-build.txt"
        install(folder / "bin" / "python", "--require-hashes", "-r", requirements)
    return folder / "bin" / "python"


def _sdist(work: Path, made: Path, python: Path, commit: Commit) -> Path:
    archive = subprocess.run(
        ["git", "archive", commit.id], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    tree = work / "tree"
    with tarfile.open(fileobj=io.BytesIO(archive)) as committed:
        committed.extractall(tree, filter="tar")
    builder = _builder(work, "sdist", python)
    _build(builder, tree, made, "--sdist", commit, compiled=False)
    (sdist,) = made.glob("*.tar.gz")
    return sdist


def _unpacked(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def _wheel(builder: Path, source: Path, made: Path, commit: Commit, *, compiled: bool) -> None:
    if not compiled:
        _build(builder, source, made, "--wheel", commit, compiled=False)
        return
    raw = source.parent / "raw"
    _build(builder, source, raw, "--wheel", commit, compiled=True)
    (wheel,) = raw.glob("*.whl")
    # names the oldest glibc whose symbols the modules ask for, or refuses; the modes of the folders
    # that it packs again follow its umask
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit.time}
    environment["PATH"] = f"{FOLDER}:{environment['PATH']}"
    command: list[str | Path] = [FOLDER / "auditwheel", "repair", "-w", made, wheel]
    run(*command, cwd=source, env=environment, umask=UMASK)


def _build(
    builder: Path, source: Path, made: Path, what: str, commit: Commit, *, compiled: bool
) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit.time}
    environment.pop("RMQTOOL_COMPILE", None)
    if compiled:
        environment["RMQTOOL_COMPILE"] = "1"
        # An interpreter's own flags may name its folder (-rpath) and where the sources are (-g);
        # what mypyc checks when it runs names its sources, too.
        environment["LDSHARED"] = "cc -shared"
        places = (source, builder.parents[1])
        maps = [f"-ffile-prefix-map={place}=." for place in places]
        environment["CFLAGS"] = " ".join(["-g0", *maps])
    command: list[str | Path] = [
        builder,
        "-m",
        "build",
        "--no-isolation",
        what,
        "--outdir",
        made,
        source,
    ]
    run(*command, cwd=source, env=environment)
