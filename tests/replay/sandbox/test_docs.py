"""docs/sandbox.md: its examples run, and it names every fault and every key."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from replay.sandbox import FaultKind, fault_of_text, faults_of_file
from replay.sandbox.fault import FAMILIES
from replay.sandbox.fault_text import _KEYS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sandbox.md"


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return found


def test_every_kind_key_and_family_is_named() -> None:
    text = PAGE.read_text()
    for kind in FaultKind:
        assert f"`{kind}" in text, kind
    for name in (*_KEYS, *FAMILIES):
        assert f"`{name}" in text, name


def test_the_file_and_the_options_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(blocks("toml")[0])
    faults, seed = faults_of_file(path)
    assert seed == 7
    words = shlex.split(
        next(line for block in blocks("") for line in block.splitlines() if "-f" in line)
    )
    assert faults == [fault_of_text(words[at + 1]) for at, word in enumerate(words) if word == "-f"]


def test_the_python_example_runs() -> None:
    exec(compile(blocks("python")[0], str(PAGE), "exec"), {})
