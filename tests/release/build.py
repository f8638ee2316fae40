"""Builds an sdist, a pure wheel, and a compiled wheel for each Python, from what is committed."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from .interpreters import ROOT
from .tools import FOLDER, environment_at, install, run


def build_all(work: Path, pythons: Mapping[str, Path], umask: int = 0o022) -> list[Path]:
    """Return the files built, all in `work/dist`; `work` is emptied before.

    Every wheel is built from the sdist, with the pinned tools.
    """
    shutil.rmtree(work, ignore_errors=True)
    made = work / "dist"
    made.mkdir(parents=True)
    before = os.umask(umask)
    try:
        sdist = _sdist(work, made, next(iter(pythons.values())))
        for number, (version, python) in enumerate(pythons.items()):
            builder = _builder(work, version, python)
            source = _unpacked(sdist, work / f"source-{version}")
            if number == 0:
                _wheel(builder, source, made, compiled=False)
            print(f"compiling for CPython {version}: {python}", flush=True)
            _wheel(builder, source, made, compiled=True)
    finally:
        os.umask(before)
    return sorted(made.iterdir())


def committed_at() -> str:
    """Return the time of the last commit, in seconds: the time of all that is built."""
    return run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def _builder(work: Path, version: str, python: Path) -> Path:
    folder = work / f"builder-{version}"
    if not folder.exists():
        environment_at(folder, python)
        requirements = ROOT / "requirements-build.txt"
        install(folder / "bin" / "python", "--require-hashes", "-r", requirements)
    return folder / "bin" / "python"


def _sdist(work: Path, made: Path, python: Path) -> Path:
    archive = subprocess.run(
        ["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    tree = work / "tree"
    with tarfile.open(fileobj=io.BytesIO(archive)) as committed:
        committed.extractall(tree, filter="tar")
    builder = _builder(work, "sdist", python)
    _build(builder, tree, made, "--sdist", compiled=False)
    (sdist,) = made.glob("*.tar.gz")
    return sdist


def _unpacked(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def _wheel(builder: Path, source: Path, made: Path, *, compiled: bool) -> None:
    if not compiled:
        _build(builder, source, made, "--wheel", compiled=False)
        return
    raw = source.parent / "raw"
    _build(builder, source, raw, "--wheel", compiled=True)
    (wheel,) = raw.glob("*.whl")
    # names the oldest glibc whose symbols the modules ask for, or refuses
    environment = {**_environment(source, compiled=True), "PATH": f"{FOLDER}:{os.environ['PATH']}"}
    run(FOLDER / "auditwheel", "repair", "-w", made, wheel, cwd=source, env=environment)


def _build(builder: Path, source: Path, made: Path, what: str, *, compiled: bool) -> None:
    command = [builder, "-m", "build", "--no-isolation", what, "--outdir", made, source]
    run(*command, cwd=source, env=_environment(source, compiled=compiled))


def _environment(source: Path, *, compiled: bool) -> dict[str, str]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": committed_at()}
    environment.pop("RMQTOOL_COMPILE", None)
    if compiled:
        environment["RMQTOOL_COMPILE"] = "1"
        # An interpreter's own flags may name its folder (-rpath) and where the sources are (-g).
        environment["LDSHARED"] = "cc -shared"
        environment["CFLAGS"] = f"-g0 -ffile-prefix-map={source}=."
    return environment
