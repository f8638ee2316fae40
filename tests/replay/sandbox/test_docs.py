"""docs/sandbox.md: its examples run, and it names every fault and every key."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from replay.sandbox import InjectionKind, injection_of_text, injections_of_file
from replay.sandbox.injection.injection import FAMILIES
from replay.sandbox.injection.injection_text import FAULT_KEYS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sandbox.md"


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return found


def test_every_kind_key_and_family_is_named() -> None:
    text = PAGE.read_text()
    for kind in InjectionKind:
        assert f"`{kind}" in text, kind
    for name in (*FAULT_KEYS, *FAMILIES):
        assert f"`{name}" in text, name


def test_the_file_and_the_options_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(blocks("toml")[0])
    injections, seed = injections_of_file(path)
    assert seed == 7
    words = shlex.split(
        next(line for block in blocks("") for line in block.splitlines() if "--fault" in line)
    )
    assert injections == [
        injection_of_text(words[at + 1]) for at, word in enumerate(words) if word == "--fault"
    ]


def test_the_python_example_runs() -> None:
    exec(compile(blocks("python")[0], str(PAGE), "exec"), {})
