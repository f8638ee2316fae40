"""Optional programs and libraries of the tests, and a switch that hides them all.

`RMQTOOL_WITHOUT_TOOLS=1` runs the tests as on a machine that has none of them: neither the tests
nor the processes they start find one.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

SWITCH: Final = "RMQTOOL_WITHOUT_TOOLS"
PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "tshark": ("tshark", "dumpcap", "capinfos", "editcap", "mergecap", "text2pcap", "rawshark"),
    "tcpdump": ("tcpdump",),
    "Chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "Java": ("java", "javac", "javap", "jar", "jcmd", "jdeps", "jlink", "jshell", "keytool"),
    "Maven": ("mvn", "mvnDebug"),
    "Go": ("go", "gofmt"),
    "mandoc": ("mandoc",),
    "systemd": ("systemd-analyze",),
}
"""optional tool → its programs"""
HOMES: Final = ("JAVA_HOME", "JDK_HOME", "MAVEN_HOME", "M2_HOME", "GOROOT")
"""environment variables that lead to a tool past PATH"""
_SBIN: Final = "/usr/sbin:/sbin"
STARTUP: Final = Path(__file__).parent / "without_tools"
"""has a `sitecustomize` that hides the libraries from each Python"""


def are_hidden() -> bool:
    """Return whether the environment asks for tests without optional tools."""
    return os.environ.get(SWITCH) == "1"


def find(program: str) -> str | None:
    """Return the path of a program, even if only root has its folder on PATH."""
    found = shutil.which(program)
    return found if found or are_hidden() else shutil.which(program, path=_SBIN)


def absent() -> list[str]:
    """Return the optional tools that tests cannot use here."""
    from ctypes.util import find_library

    libraries = [] if find_library("pcap") else ["libpcap"]
    return libraries + [tool for tool, programs in PROGRAMS.items() if find(programs[0]) is None]


def hide() -> None:
    """Hide all optional tools from this process and from those it starts; harmless if repeated."""
    from .without_tools import sitecustomize  # noqa: F401 (hides the libraries when imported)

    for home in HOMES:
        os.environ.pop(home, None)
    paths = [_without_tools(Path(folder)) for folder in os.environ.get("PATH", "").split(":")]
    os.environ["PATH"] = ":".join(map(str, paths))
    python_path = os.environ.get("PYTHONPATH", "").split(":")
    if str(STARTUP) not in python_path:
        os.environ["PYTHONPATH"] = ":".join(filter(None, [str(STARTUP), *python_path]))


def _without_tools(folder: Path) -> Path:
    """Return the folder, or a folder of links to its programs if optional tools are among them."""
    hidden = {program for programs in PROGRAMS.values() for program in programs}
    if not any((folder / program).exists() for program in hidden):
        return folder
    links = Path(tempfile.mkdtemp(prefix="rmqtool-without-tools-"))
    atexit.register(shutil.rmtree, links, ignore_errors=True)
    for program in folder.iterdir():
        if program.name not in hidden:
            (links / program.name).symlink_to(program)
    return links
