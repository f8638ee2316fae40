"""The commands of docs/send.md and docs/consume.md are run as they stand, against the sandbox."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from replay.sandbox import SandboxOptions, TopicSpec, sandbox_thread
from rmqtool.cli import app
from tests.rmqtool.command import PROGRAM, ROOT

PAGE = ROOT / "docs" / "send.md"
CONSUME = ROOT / "docs" / "consume.md"


def _commands(page: Path = PAGE) -> list[str]:
    return [line[2:] for line in page.read_text().splitlines() if line.startswith("$ ")]


def test_the_page_has_commands() -> None:
    assert len(_commands()) >= 8


@pytest.mark.slow
def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    program = shlex.join(PROGRAM)
    topics = [TopicSpec("Orders", 4)]
    (tmp_path / "order.json").write_text('{"order": 4711}')
    with sandbox_thread(SandboxOptions(brokers=2, topics=topics)) as box:
        for command in (*_commands(), *_commands(CONSUME)):
            line = command.replace("127.0.0.1:9876", box.namesrv).replace("rmqtool", program)
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", line],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert done.returncode == 0, (command, done.stderr)
            assert done.stdout
        assert len(_commands(CONSUME)) >= 5


def test_every_option_is_on_the_page() -> None:
    page = PAGE.read_text()
    command = get_command(app).commands["send"]  # type: ignore[attr-defined]
    options = [param.opts for param in command.params if param.opts[0][0] == "-"]
    assert len(options) > 30
    known = ("--help", "--color", "--quiet")
    missing = [names for names in options if not any(name in page for name in names)]
    assert [names for names in missing if names[0] not in known] == []
