"""What was captured or sent is the user's alone where it is written; who opens it keeps it open."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.expected import SAMPLES

from ..command import rmqtool

CAPTURE = SAMPLES / "push-retry-dlq-5x.pcap"
KEY = "C000020A05274E0E2F2A67850EAA0000"
FILES = {
    "table": ("decode", "pcap", CAPTURE, "-o"),
    "jsonl": ("decode", "pcap", CAPTURE, "-T", "jsonl", "-o"),
    "csv": ("decode", "pcap", CAPTURE, "-T", "csv", "-o"),
    "commands": ("decode", "pcap", CAPTURE, "--commands", "-T", "jsonl", "-o"),
    "command table": ("decode", "pcap", CAPTURE, "--commands", "-o"),
    "tree": ("decode", "pcap", CAPTURE, "-V", "-o"),
    "summary": ("decode", "pcap", CAPTURE, "--summary", "-o"),
    "messages": ("decode", "pcap", CAPTURE, "--list-messages", "-T", "jsonl", "-o"),
    "conversation": ("decode", "pcap", CAPTURE, "--follow-conversation", "1", "-o"),
    "ladder": ("trace", CAPTURE, KEY, "-o"),
    "spans": ("trace", CAPTURE, KEY, "-T", "otlp", "-o"),
    "page": ("trace", CAPTURE, KEY, "-T", "html", "-o"),
}
FOLDERS = {
    "decoded log": ("decode", "pcap", CAPTURE, "-T", "parquet", "-o"),
    "decoded lines": ("decode", "pcap", CAPTURE, "-T", "jsonl", "-o"),
    "bodies": ("decode", "pcap", CAPTURE, "--messages", "-o"),
    "journal": ("replay", CAPTURE, "--target", "sandbox", "--top-speed", "--limit", "2", "-o"),
}


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """A umask that takes nothing away."""
    former = os.umask(0)
    yield
    os.umask(former)


def _modes(path: Path) -> set[int]:
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return {stat.S_IMODE(one.lstat().st_mode) for one in files}


@pytest.mark.parametrize("name", FILES)
def test_a_new_file_is_the_users_alone(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = rmqtool(*FILES[name], out)
    assert done.status == 0, done.err
    assert _modes(out) == {0o600}
    out.chmod(0o640)
    assert rmqtool(*FILES[name], out, "--force").status == 0
    assert _modes(out) == {0o640}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_new_folder_is_the_users_alone(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = rmqtool(*FOLDERS[name], f"{out}/")
    assert done.status == 0, done.err
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert {one for path in out.rglob("*") if path.is_file() for one in _modes(path)} == {0o600}


@pytest.mark.parametrize("name", ["decoded log", "bodies"])
def test_a_folder_that_was_opened_stays_open(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert rmqtool(*FOLDERS[name], f"{out}/").status == 0
    out.chmod(0o755)
    for path in out.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert rmqtool(*FOLDERS[name], f"{out}/", "--force").status == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o755
    assert {one for path in out.rglob("*") if path.is_file() for one in _modes(path)} == {0o644}
