"""The command on a real terminal, that of tmux, and over a decoded log."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rmqtool
from rmqtool.browse.options import BrowseRequest
from rmqtool.browse.run import opened
from rmqtool.ui.declared import read_request
from rmqtool.ui.status import CommandError, ExitStatus
from tests.rmqtool.browse.browsing import browsing, press, sample, sees

HAS_TMUX = shutil.which("tmux") is not None


class Tmux:
    """A terminal of 80x24 that a test looks at."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    def run(self, *words: str) -> str:
        """Run a command of tmux."""
        done = subprocess.run(
            ["tmux", "-S", self.socket, *words], capture_output=True, text=True, check=False
        )
        return done.stdout

    def until(self, holds: Callable[[str], bool]) -> str:
        """Wait until the screen is as it should be; return it."""
        end = time.monotonic() + 60
        while not holds(seen := self.run("capture-pane", "-p")):
            assert time.monotonic() < end, seen
            time.sleep(0.1)
        return seen


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """Give a terminal with the browser over a sample, without colours."""
    one = Tmux(str(tmp_path / "tmux"))
    command = f"{sys.executable} -m rmqtool browse {sample('leader-lost-5x.pcap')}"
    environment = f"env NO_COLOR=1 XDG_CONFIG_HOME={tmp_path}"
    one.run("new-session", "-d", "-x", "80", "-y", "24", f"{environment} {command}; sleep 60")
    yield one
    one.run("kill-server")


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TMUX, reason="there is no tmux")
def test_it_runs_in_a_terminal(tmux: Tmux) -> None:
    tmux.until(lambda seen: "BROKER_HEARTBEAT" in seen)
    tmux.run("send-keys", "-l", "fstatus == unanswered")
    tmux.run("send-keys", "Enter")
    tmux.until(lambda seen: " 1 of 68 " in seen and "SEND_MESSAGE_V2" in seen)
    styles = re.findall(r"\x1b\[([\d;]*)m", tmux.run("capture-pane", "-e", "-p"))
    numbers = {int(one) for style in styles for one in style.split(";") if one}
    assert 7 in numbers  # the cursor is seen
    assert not {one for one in numbers if one >= 30 and one not in (39, 49)}
    tmux.run("send-keys", "4")
    tmux.until(lambda seen: "broker-gone" in seen or "was gone" in seen)
    tmux.run("send-keys", "q")
    tmux.until(lambda seen: "was gone" not in seen)


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ({"inputs": ["x.pcap"]}, {"keep": "--keep"}, "--keep: is for live captures; add -i NAME"),
        ({"inputs": ["x.pcap"]}, {"filter": "--filter"}, "--filter: is for live captures"),
        ({"interface": "lo"}, {"follow": "--follow"}, "--follow: is for files, not for -i"),
        ({"inputs": ["LOG"]}, {"follow": "--follow"}, "--follow: is for captures, and the input"),
        ({"inputs": ["LOG"]}, {"decode_as": "--decode-as"}, "--decode-as: is for captures"),
    ],
)
def test_options_without_an_effect_are_refused(
    tmp_path: Path, given: dict[str, object], named: dict[str, str], said: str
) -> None:
    if given.get("inputs") == ["LOG"]:
        rmqtool.read(sample("acl-5x.pcap")).to_parquet(tmp_path / "log")
        given = {"inputs": [str(tmp_path / "log")]}
    request = read_request(BrowseRequest, {**given, "named_options": named})
    with pytest.raises(CommandError) as refused:
        opened(request)
    assert refused.value.message.startswith(said)
    assert refused.value.status == ExitStatus.USAGE


def test_it_shows_a_decoded_log(tmp_path: Path) -> None:
    log = rmqtool.read(sample("acl-5x.pcap")).to_parquet(tmp_path / "log")

    async def act() -> None:
        async with browsing(str(log)) as (browser, pilot):
            assert browser.session.problem is None
            assert browser.session.exchanges.count == 44
            await sees(browser, "rows only, no frames")
            await press(browser, pilot, "2")
            await sees(browser, "stored")

    asyncio.run(act())


@pytest.mark.slow
def test_without_a_terminal_it_says_what_else_there_is() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rmqtool", "browse", sample("acl-5x.pcap")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "rmqtool decode pcap" in done.stderr
