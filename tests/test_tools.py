"""The switch hides every optional tool: from the tests, and from the processes they start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import ROOT
from tests.tools import HOMES, PROGRAMS, STARTUP, SWITCH

NAMES = sorted(program for programs in PROGRAMS.values() for program in programs)
CODE = f"""
import ctypes.util, json, os, shutil, subprocess, sys
if sys.argv[1:]:
    import tests.conftest
    subprocess.run([sys.executable, __file__], check=True)
names = ["ordinary", *{NAMES!r}]
print(json.dumps([
    [name for name in names if shutil.which(name)],
    [name for name in {HOMES!r} if name in os.environ],
    ctypes.util.find_library("pcap"),
    ctypes.util.find_library("c"),
]))
"""
"""prints what a process finds, after what a process that it started finds"""


def found(folder: Path, **environment: str) -> list[list[object]]:
    """Return what a process with the tests' settings and a process that it starts find."""
    script = folder / "script.py"
    script.write_text(CODE)
    programs = folder / "programs"
    programs.mkdir()
    for name in ("ordinary", *NAMES):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    known = {name: value for name, value in os.environ.items() if name != SWITCH}
    environment |= {
        **dict.fromkeys(HOMES, str(folder)),
        "PATH": f"{programs}:{known['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, str(script), "settings"]
    run = subprocess.run(command, env=known | environment, capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture
def libpcap(tmp_path: Path) -> dict[str, str]:
    """A library called pcap, and the environment in which ctypes finds it."""
    if shutil.which("cc") is None or shutil.which("ld") is None:
        pytest.skip("no C compiler")
    library = tmp_path / "libpcap.so"
    command = ["cc", "-shared", "-Wl,-soname,libpcap.so", "-o", str(library), "-xc", os.devnull]
    subprocess.run(command, check=True)
    return {"LD_LIBRARY_PATH": str(tmp_path), "LIBRARY_PATH": str(tmp_path)}


@pytest.mark.slow
def test_without_the_switch_everything_is_found(tmp_path: Path, libpcap: dict[str, str]) -> None:
    for programs, homes, pcap, c in found(tmp_path, **libpcap):
        assert programs == ["ordinary", *NAMES]
        assert homes == list(HOMES)
        assert str(pcap).startswith("libpcap.so")
        assert c


@pytest.mark.slow
def test_the_switch_hides_everything(tmp_path: Path, libpcap: dict[str, str]) -> None:
    both = found(tmp_path, **libpcap, **{SWITCH: "1"})
    assert len(both) == 2
    for programs, homes, pcap, c in both:
        assert programs == ["ordinary"]
        assert homes == []
        assert pcap is None
        assert c, "other libraries are still found"


def test_no_tool_is_visible_in_a_run_with_the_switch() -> None:
    if os.environ.get(SWITCH) != "1":
        pytest.skip(f"{SWITCH} is not set")
    assert [name for name in NAMES if shutil.which(name)] == []
    assert str(STARTUP) in os.environ["PYTHONPATH"].split(":")
