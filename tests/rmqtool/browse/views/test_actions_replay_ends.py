"""A run that sends again is ended: by R, by quitting, never by Esc; its journal can go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from textual.pilot import Pilot

from replay.sandbox import SandboxOptions, SandboxThread, sandbox_thread
from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.dialogs import TextDialog
from tests.rmqtool.browse.browsing import fill, press, run, sample, sees, text, type_keys, until
from tests.rmqtool.browse.test_run import HAS_TMUX, Tmux
from tests.rmqtool.browse.views.test_actions_replay import CAPTURE, SENDS

SLOWLY = "--rate 0.2/s"
"""a pace at which no run ends by itself while a test looks"""


def stored(box: SandboxThread) -> int:
    """Return how many messages the broker has."""
    return box.call(lambda running: len(running.brokers["broker-a"].state.store))


def outcomes(journal: Path) -> int:
    """Return how many lines of outcomes a journal has."""
    steps = journal / "steps.jsonl"
    return steps.read_text().count('"result"') if steps.exists() else 0


async def begin(
    browser: FullBrowser, pilot: Pilot[None], box: SandboxThread, journal: Path
) -> subprocess.Popen[bytes]:
    """Send all sends, slowly; return the process once two were sent."""
    await press(browser, pilot, "f")
    await fill(browser, pilot, SENDS)
    await press(browser, pilot, "R")
    await press(browser, pilot, "enter")
    await sees(browser, "target: HOST:PORT")
    browser.line.input.value = f"{box.namesrv} {SLOWLY} -o {journal}"
    type_keys(browser, "enter")
    await until(lambda: browser._sending is not None, "a run")
    process = browser._sending
    assert process is not None
    await until(lambda: stored(box) >= 2, "two messages")
    return process


def resumed(journal: Path, box: SandboxThread) -> int:
    """Go on with a run; return its status."""
    words = ["replay", "--resume", str(journal), "-n", box.namesrv, "--top-speed"]
    return subprocess.run([sys.executable, "-P", "-m", "rmqtool", *words], check=False).returncode


@pytest.mark.slow
def test_r_ends_a_run_whose_journal_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "run"

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        with sandbox_thread(SandboxOptions(brokers=1)) as box:
            process = await begin(browser, pilot, box, journal)
            type_keys(browser, "escape", "2", "question_mark", "escape", "1")
            await until(lambda: browser.view == "exchanges", "the keys")
            assert process.poll() is None
            type_keys(browser, "R", "R")  # a key that is held is one end
            await sees(browser, "Replay stopped early", "stopped; continue with", "--resume")
            assert process.returncode == 130
            assert "Traceback" not in text(browser)
            await press(browser, pilot, "escape")
            assert not isinstance(browser.screen, TextDialog)
            assert browser._sending is None
            sent = stored(box)
            assert 2 <= sent < len(browser.tables["exchanges"].listing)
            assert resumed(journal, box) == 0
            assert stored(box) == len(browser.tables["exchanges"].listing)

    run(act, sample(CAPTURE))


@pytest.mark.slow
def test_a_plan_that_is_ended_is_no_refusal() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        type_keys(browser, "R", "R")
        await sees(browser, "nothing was sent")
        assert not isinstance(browser.screen, TextDialog)

    run(act, sample(CAPTURE))


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TMUX, reason="there is no tmux")
def test_quitting_ends_a_run_in_order(tmp_path: Path) -> None:
    journal, one = tmp_path / "run", Tmux(str(tmp_path / "tmux"))
    command = f"{sys.executable} -m rmqtool browse {sample(CAPTURE)} -Y '{SENDS}'"
    one.run("new-session", "-d", "-x", "80", "-y", "24", f"{command}; echo status $?; sleep 60")
    try:
        with sandbox_thread(SandboxOptions(brokers=1)) as box:
            one.until(lambda seen: "q:quit" in seen and "SEND" in seen)
            one.run("send-keys", "R")
            one.until(lambda seen: "nothing was sent" in seen)
            one.run("send-keys", "Enter")
            one.until(lambda seen: "target: HOST" in seen)
            one.run("send-keys", "-l", f"{box.namesrv} {SLOWLY} -o {journal}")
            one.run("send-keys", "Enter")
            one.until(lambda _: stored(box) >= 2)
            one.run("send-keys", "q")
            seen = one.until(lambda seen: "status 0" in seen)
            assert "Traceback" not in seen
            sent = stored(box)
            assert 2 <= sent < 8
            assert outcomes(journal) == sent
            assert resumed(journal, box) == 0
    finally:
        one.run("kill-server")
