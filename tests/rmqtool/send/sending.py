"""`rmqtool send` run against a sandbox."""

from __future__ import annotations

from pathlib import Path

from replay.sandbox import SandboxThread
from tests.rmqtool.command import Result, rmqtool


def send_to(box: SandboxThread, *arguments: str | Path, **environment: str) -> Result:
    """Run `rmqtool send` with the NameServer of a sandbox."""
    return rmqtool("send", "-n", box.namesrv, *arguments, **environment)
