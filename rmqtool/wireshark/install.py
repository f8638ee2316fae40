"""`rmqtool wireshark`: writes the dissector, or puts it where Wireshark looks for plugins.

Rules: a file with a foreign first line is never touched; older ones of ours are replaced. The
plugin folder is that of tshark, or Wireshark's default without tshark.
Wireshark: `tshark -G folders`, Personal Lua Plugins.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from dissectors.printable import printable
from dissectors.wireshark import FILE_NAME, SIGNATURE, lua_text

from ..ui.errors import print_note
from ..ui.output import Output, naming
from ..ui.status import CommandError, ExitStatus
from ..version import VERSION

_PATIENCE: Final = 20
"""timeout of tshark in seconds"""
_FOLDER: Final = re.compile(r"^Personal Lua Plugins:\s*(.+?)\s*$", re.MULTILINE)
_SAME_PROTOCOL: Final = re.compile(r"""\bProto(?:\.new)?\s*\(\s*["']rocketmq["']""", re.IGNORECASE)
_LARGEST_PLUGIN: Final = 4 * 1024 * 1024
"""bytes of a plugin that are read"""


def run_wireshark(
    output: str | None = None,
    install: bool = False,
    uninstall: bool = False,
    force: bool = False,
) -> ExitStatus:
    """Write the dissector to `output` (None: standard output), install it or remove it.

    CommandError where two of these are asked for, a foreign file is in the way, or a file cannot
    be written.
    """
    if install + uninstall + (output is not None) > 1:
        raise CommandError(
            "--output, --install, and --uninstall cannot be combined",
            status=ExitStatus.USAGE,
        )
    if install:
        return _install(plugin_folder())
    if uninstall:
        return _uninstall(plugin_folder())
    if output is not None and output != "-":
        _refuse_foreign(Path(output))
    _write(output or "-", lua_text(VERSION), force)
    return ExitStatus.OK


def plugin_folder() -> Path:
    """Return the folder of the personal Lua plugins; it need not exist."""
    match = _FOLDER.search(_tshark_folders())
    if match is not None:
        return Path(match[1])
    if sys.platform == "win32" and os.environ.get("APPDATA"):
        return Path(os.environ["APPDATA"]) / "Wireshark" / "plugins"
    return Path.home() / ".local" / "lib" / "wireshark" / "plugins"


def _tshark_folders() -> str:
    """Return the folder list of tshark, or an empty text without tshark."""
    program = shutil.which("tshark")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, "-G", "folders"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _install(folder: Path) -> ExitStatus:
    path = folder / FILE_NAME
    text = lua_text(VERSION)
    _refuse_foreign(path)
    same = path.exists() and path.read_text("utf-8", "replace") == text
    if not same:
        with naming(str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
        _write(str(path), text, force=True)  # our older version
    print(printable(f"{path} {'is already up to date' if same else 'written'}"))
    print("Wireshark loads it at startup, or with Analyze > Reload Lua Plugins.")
    for rival in _rivals(folder):
        print_note(f"{rival} declares the same protocol: Wireshark will refuse one of them")
    return ExitStatus.OK


def _uninstall(folder: Path) -> ExitStatus:
    path = folder / FILE_NAME
    if not path.exists():
        print(printable(f"{path} does not exist: nothing to remove"))
        return ExitStatus.OK
    _refuse_foreign(path)
    with naming(str(path)):
        path.unlink()
    print(printable(f"{path} removed"))
    return ExitStatus.OK


def _write(target: str, text: str, force: bool) -> None:
    with Output(target, force=force) as output:
        output.write(text.encode())


def _refuse_foreign(path: Path) -> None:
    """Raise CommandError if there is a file that rmqtool has not written."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(len(SIGNATURE.encode()))
    if start and start != SIGNATURE.encode():
        raise CommandError(
            f"{path} was not written by rmqtool and was not changed",
            "move it away, or write to another name with -o",
        )


def _rivals(folder: Path) -> list[Path]:
    """Return other plugins that declare a protocol of the same name: only one of them can load."""
    rivals = []
    for path in sorted(folder.rglob("*.lua")):
        if path.name == FILE_NAME and path.parent == folder:
            continue
        try:
            if path.stat().st_size <= _LARGEST_PLUGIN and _SAME_PROTOCOL.search(
                path.read_text("utf-8", "replace")
            ):
                rivals.append(path)
        except OSError:
            continue
    return rivals
