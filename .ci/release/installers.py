"""What docs/install.md tells users to type: pipx, uvx, completion of three shells, man pages."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from .check import SAMPLE, environment_of, network_of
from .interpreters import ROOT
from .tools import FOLDER, Failed, run

_TYPED = "rmqtool diag"
_COMPLETED = "rmqtool diagnose"
_PATIENCE = 60.0
"""seconds that a shell has to complete a word"""


def check_installers(work: Path, python: Path, wheel: Path) -> list[str]:
    """Return what was tried and held of a wheel; `work` is emptied before.

    Raises:
        Failed: a command ended with an error, or a shell did not complete a command.
        AssertionError: it said something else than it should.
    """
    shutil.rmtree(work, ignore_errors=True)
    elsewhere = work / "elsewhere"
    elsewhere.mkdir(parents=True)
    shutil.copy(ROOT / "samples" / SAMPLE, elsewhere)
    environment = (
        network_of()
        | environment_of(elsewhere)
        | {
            "PIPX_HOME": str(work / "pipx"),
            "PIPX_BIN_DIR": str(work / "bin"),
            "PIPX_MAN_DIR": str(work / "man"),
            "UV_CACHE_DIR": str(work / "uv"),
        }
    )
    return [
        _pipx(work, python, wheel, elsewhere, environment),
        _uvx(python, wheel, elsewhere, environment),
        *(_completion(shell, work, elsewhere, environment) for shell in _SHELLS),
    ]


def _pipx(
    work: Path, python: Path, wheel: Path, elsewhere: Path, environment: Mapping[str, str]
) -> str:
    install: list[str | Path] = [FOLDER / "pipx", "install", "--python", python, wheel]
    run(*install, cwd=elsewhere, env=environment)
    command = work / "bin" / "rmqtool"
    assert run(command, "--version", cwd=elsewhere, env=environment).startswith("rmqtool ")
    assert _COUNTED in run(command, *_SUMMARY, cwd=elsewhere, env=environment)
    assert (work / "man" / "man1" / "rmqtool.1").exists()
    return "pipx install, with man pages"


def _uvx(python: Path, wheel: Path, elsewhere: Path, environment: Mapping[str, str]) -> str:
    command: list[str | Path] = [FOLDER / "uvx", "--python", python, "--from", wheel, "rmqtool"]
    assert run(*command, "--version", cwd=elsewhere, env=environment).startswith("rmqtool ")
    assert _COUNTED in run(*command, *_SUMMARY, cwd=elsewhere, env=environment)
    return "uvx"


_SUMMARY = ("decode", "pcap", SAMPLE, "--summary")
_COUNTED = "SEND_MESSAGE_V2"
_SHELLS = {
    "bash": (["--norc", "-i"], "source {script}"),
    "zsh": (["-f", "-i"], "autoload -U compinit; compinit -u -D; source {script}"),
    "fish": (["--private"], "source {script}"),
}
"""shell → how it is started without a user's settings, and how it takes a completion"""


def _completion(shell: str, work: Path, elsewhere: Path, environment: Mapping[str, str]) -> str:
    """Type the beginning of a command and a tab into a shell on a terminal."""
    if shutil.which(shell) is None:
        return f"no {shell} here: its completion was not tried"
    path = f"{work / 'bin'}:{os.environ['PATH']}"
    environment = {**environment, "PATH": path, "TERM": "dumb", "XDG_CONFIG_HOME": str(elsewhere)}
    asked = {**environment, "_RMQTOOL_COMPLETE": f"source_{shell}"}
    script = elsewhere / f"completion.{shell}"
    script.write_text(run(work / "bin" / "rmqtool", cwd=elsewhere, env=asked))
    options, load = _SHELLS[shell]
    child, terminal = pty.fork()
    if not child:
        os.chdir(elsewhere)
        os.execvpe(shell, [shell, *options], environment)
    try:
        _read(terminal, 2.0)
        os.write(terminal, f"{load.format(script=script)}\n".encode())
        _read(terminal, 2.0)
        os.write(terminal, f"{_TYPED}\t".encode())
        _wait_for(terminal, shell)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)
    return f"completion of {shell}"


def _wait_for(terminal: int, shell: str) -> None:
    said, end = "", time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        said += _read(terminal, 0.5)
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x07]", "", said)
        if _COMPLETED in shown or shown.startswith("nose"):
            return
    raise Failed(f"{shell} did not complete {_TYPED!r}: {said!r}")


def _read(terminal: int, quiet: float) -> str:
    """Return what a shell writes until it has been quiet for so many seconds."""
    parts = []
    while select.select([terminal], [], [], quiet)[0]:
        try:
            parts.append(os.read(terminal, 65536))
        except OSError:
            break
    return b"".join(parts).decode("utf-8", "replace")
