"""scapy is GPL-2.0-only: everything outside of one folder runs where it is not installed.

A contract in `pyproject.toml` keeps the imports there. Here commands run in processes where
importing scapy raises.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

import pytest

from replay.sandbox import SandboxOptions, TopicSpec, sandbox_thread
from tests.sources import ROOT

FOLDER = "dissectors/with_scapy"
SPDX = "# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only\n"
SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"
_CODE = """
import sys

class NoScapy:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "scapy" or name.startswith("dissectors.with_scapy"):
            raise RuntimeError(f"{name} is imported")

sys.meta_path.insert(0, NoScapy())
from rmqtool.cli import main
main()
"""


def test_the_folder_says_its_licence() -> None:
    for path in (ROOT / FOLDER).rglob("*.py"):
        assert path.read_text().startswith(SPDX), path
    for notice in (ROOT / FOLDER / "NOTICE", ROOT / "NOTICE", ROOT / "docs" / "dependencies.md"):
        assert "GPL-2.0-only" in notice.read_text(), notice
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0 AND (Apache-2.0 OR GPL-2.0-only)"
    assert f"{FOLDER}/NOTICE" in project["license-files"]
    named = [name for name, extra in _requirements(project) if name == "scapy" and not extra]
    assert named == []
    assert "GPL-2.0" in str(metadata("scapy")["License-Expression"] or metadata("scapy")["License"])


def _requirements(project: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Return (library, extra) of all that the package asks for; no extra: always."""
    core, extras = project["dependencies"], project["optional-dependencies"]
    assert isinstance(core, list)
    assert isinstance(extras, dict)
    for extra, names in (("", core), *extras.items()):
        for one in names:
            yield one.partition(">")[0].partition("=")[0].partition("[")[0], extra


def _run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _CODE, *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("decode", "pcap", SAMPLE, "-T", "jsonl"), '"SEND_MESSAGE_V2"'),
        (("decode", "pcap", SAMPLE, "-V"), "SEND_MESSAGE_V2"),
        (("diagnose", SAMPLE), ""),
        (("report", "--list"), "latency"),
        (("replay", SAMPLE, "--dry-run", "-n", "127.0.0.1:9"), "SyncTopic"),
        (("wireshark",), "RocketMQ"),
        (("help", "live"), "capture"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_commands_run_where_scapy_cannot_be_imported(
    arguments: tuple[str | Path, ...], words: str, tmp_path: Path
) -> None:
    done = _run(*arguments, cwd=tmp_path)
    assert "is imported" not in done.stderr
    assert words in done.stdout, done.stderr


@pytest.mark.slow
def test_send_runs_where_scapy_cannot_be_imported(tmp_path: Path) -> None:
    with sandbox_thread(SandboxOptions(topics=[TopicSpec("T", 1)])) as box:
        done = _run("send", "-n", box.namesrv, "-t", "T", "--body", "hello", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "is imported" not in done.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_report_runs_where_scapy_cannot_be_imported(tmp_path: Path) -> None:
    done = _run("report", "latency", SAMPLE, "-q", cwd=tmp_path)
    assert "is imported" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_live_capture_alone_asks_for_it(tmp_path: Path) -> None:
    done = _run("decode", "live", "-i", "lo", cwd=tmp_path)
    assert "dissectors.with_scapy" in done.stderr
