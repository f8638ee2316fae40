"""docs/wireshark.md: what was typed there is typed again, and what is named there is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from dissectors.wireshark.lua_tables import PORTS, tables

pytestmark = pytest.mark.tshark

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "wireshark.md").read_text("utf-8")
SESSIONS = re.findall(r"^```console\n\$ (tshark .*)\n((?:.*\n)*?)```$", TEXT, re.MULTILINE)


@pytest.fixture(scope="session")
def home(dissector: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the dissector among its plugins."""
    folder = tmp_path_factory.mktemp("home")
    plugins = folder / ".local" / "lib" / "wireshark" / "plugins"
    plugins.mkdir(parents=True)
    shutil.copy(dissector, plugins)
    return folder


def typed(home: Path, command: str) -> str:
    """What a command says on a terminal of its own."""
    environment = os.environ | {"HOME": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, capture_output=True, check=True
    )
    return done.stdout.decode()


@cache
def release(home: Path) -> str:
    """What tshark calls itself."""
    return typed(home, "tshark -v").splitlines()[0]


@pytest.mark.parametrize(("command", "shown"), SESSIONS, ids=lambda text: text[:40])
def test_sessions(home: Path, command: str, shown: str) -> None:
    if "4.0." not in release(home):
        pytest.skip("other releases of tshark write some lines otherwise")
    assert typed(home, command).strip("\n") == shown.strip("\n")


def test_there_are_sessions() -> None:
    assert len(SESSIONS) >= 6


def test_filters(home: Path) -> None:
    """Every filter in the document is one that tshark takes."""
    table = TEXT[TEXT.index("## Filters") : TEXT.index("## Names")]
    filters = [text.replace(r"\|", "|") for text in re.findall(r"`([^`]*rocketmq[^`]*)`", table)]
    assert len(filters) > 10
    if not taken(home, " or ".join(f"({one})" for one in filters)):
        assert not [one for one in filters if not taken(home, one)]
        raise AssertionError("each filter is taken, but not all of them together")


def taken(home: Path, text: str) -> bool:
    """Whether tshark takes a filter."""
    command = ["tshark", "-r", "samples/send-sync-5x.pcap", "-Y", text]
    environment = os.environ | {"HOME": str(home)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return done.returncode == 0


def test_names(home: Path) -> None:
    """Every field that the document names is registered; so is every finding."""
    lines = typed(home, "tshark -G fields").splitlines()
    registered = {line.split("\t")[2] for line in lines if line.startswith("F\t")}
    table = TEXT[TEXT.index("## Names") : TEXT.index("## Settings")]
    named = set(re.findall(r"`(rocketmq\.[a-zA-Z_.]+)`", table))
    named |= {f"rocketmq{name}" for name in re.findall(r"`(\.[a-z_]+)`", table)}
    assert len(named) > 30
    assert named <= registered, named - registered
    experts = tables()["experts"]
    assert isinstance(experts, list)
    for row in experts:
        assert f"`{row['name']}`" in table


def test_ports_are_those_of_the_dissector() -> None:
    assert PORTS.replace(",", ", ") in TEXT
