"""`--pager`: who reads it has all of it, and what is said beside it comes after."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from ..command import PROGRAM, ROOT, rmqtool

pytestmark = pytest.mark.slow

KILL = ROOT / "samples" / "fault-kill-5x.pcap"


def on_terminal(*arguments: str, **environment: str) -> tuple[int, str]:
    """Return the status and what a terminal of 80 columns shows."""
    main, terminal = pty.openpty()
    env = {"TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    environ = {name: text for name, text in os.environ.items() if name != "FORCE_COLOR"}
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=ROOT,
        env=environ | env | environment,
    ) as running:
        os.close(terminal)
        shown = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # the last one has closed it
                break
            if not part:
                break
            shown += part
        running.wait(60)
    os.close(main)
    return running.returncode, shown.decode().replace("\r\n", "\n")


def test_what_is_no_pager_leaves_the_terminal() -> None:
    arguments = ("decode", "pcap", str(KILL), "-c", "1")
    plain = on_terminal(*arguments)
    for pager in ("cat '", " "):
        assert on_terminal(*arguments, "--pager", PAGER=pager) == plain


def test_a_pager_is_no_shell(tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = f"cat; touch {made} $(touch {made}) `touch {made}` >{made}"
    on_terminal("decode", "pcap", str(KILL), "-c", "1", "--pager", PAGER=text)
    assert not made.exists()


def test_the_pager_gets_what_the_terminal_would(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho begin $1 $LESS; cat; sleep 0.2; echo end\n")
    pager.chmod(0o700)
    plain = on_terminal("decode", "pcap", str(KILL), "-c", "3")
    paged = on_terminal("decode", "pcap", str(KILL), "-c", "3", "--pager", PAGER=f"{pager} 'a b'")
    first, *lines = paged[1].splitlines()
    end = lines.index("end")
    assert first == "begin a b FRX"
    assert lines[:end] == [one for one in plain[1].splitlines() if not one.startswith("rmqtool:")]
    assert lines[end + 1 :] == [one for one in plain[1].splitlines() if one.startswith("rmqtool:")]
    assert lines[end + 1 :]
    assert plain[0] == paged[0] == 0


def test_a_reader_that_ends_early_and_a_pager_that_is_not_there() -> None:
    status, shown = on_terminal("diagnose", str(KILL), "-V", "--pager", PAGER="head -n 1")
    assert (status, shown.count("\n")) == (0, 1)
    status, shown = on_terminal("diagnose", str(KILL), "--pager", PAGER="/nowhere/pager")
    assert status == 0
    assert re.search(r"^╭─ ERROR broker-gone ─", shown, re.M)


def test_nothing_is_paged_that_no_terminal_shows() -> None:
    arguments = ("diagnose", KILL, "-q")
    assert rmqtool(*arguments, "--pager", PAGER="false") == rmqtool(*arguments)
