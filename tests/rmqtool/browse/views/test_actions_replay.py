"""Sends among the rows are sent again: after their plan, to a target that is typed, and guarded."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from replay.sandbox import SandboxOptions, sandbox_thread
from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.dialogs import TextDialog
from tests.rmqtool.browse.browsing import fill, press, run, sample, sees

CAPTURE = "send-sync-5x.pcap"
SENDS = 'request_name ~ "^SEND"'


async def ask_target(browser: FullBrowser, pilot: Pilot[None]) -> None:
    """Mark two sends, look at their plan, go on to the target."""
    await press(browser, pilot, "f")
    await fill(browser, pilot, SENDS)
    await press(browser, pilot, "m", "m", "R")
    assert isinstance(browser.screen, TextDialog)
    await sees(browser, "2 messages in 2 sends would be replayed")
    await press(browser, pilot, "enter")
    await sees(browser, "target: HOST:PORT")


@pytest.mark.slow
def test_marked_sends_go_to_the_target_and_the_result_is_shown(tmp_path: Path) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        with sandbox_thread(SandboxOptions(brokers=1)) as box:
            await ask_target(browser, pilot)
            await fill(browser, pilot, f"{box.namesrv} --top-speed -o {tmp_path / 'run'}")
            await sees(browser, "Replay result")
            await sees(browser, "2 messages")
            stored = box.call(lambda running: len(running.brokers["broker-a"].state.store))
        assert stored == 2
        assert (tmp_path / "run" / "run.json").exists()
        await press(browser, pilot, "escape")
        assert len(browser.tables["exchanges"].marks) == 2

    run(act, sample(CAPTURE))


@pytest.mark.slow
def test_marked_messages_that_were_sent_go_to_the_target(tmp_path: Path) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        with sandbox_thread(SandboxOptions(brokers=1)) as box:
            await press(browser, pilot, "2", "j", "m", "m", "R")
            await sees(browser, "2 messages in 2 sends would be replayed")
            await press(browser, pilot, "enter")
            await sees(browser, "target: HOST:PORT")
            await fill(browser, pilot, f"{box.namesrv} --top-speed -o {tmp_path / 'run'}")
            await sees(browser, "Replay result")
            stored = box.call(lambda running: len(running.brokers["broker-a"].state.store))
        assert stored == 2

    run(act, sample(CAPTURE))


def test_of_messages_of_which_no_send_is_chosen_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2", "f")
        await fill(browser, pilot, "event == delivered")
        assert len(browser.tables["messages"].listing)
        await press(browser, pilot, "R")
        await sees(browser, "these rows are not sends; press a to list a message's attempts")
        monkeypatch.setattr("rmqtool.browse.views.actions.MOST_NUMBERS", 3)
        await press(browser, pilot, "x", "R")
        await sees(browser, "too many messages (maximum: 3); mark some")

    run(act, sample("admin-5x.pcap"))


@pytest.mark.slow
def test_a_captured_address_is_refused(tmp_path: Path) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        row = browser.session.exchanges.row(0)
        assert row is not None
        await ask_target(browser, pilot)
        await fill(browser, pilot, f"{row.server_address} -o {tmp_path / 'run'}")
        await sees(browser, "Replay failed")
        await sees(browser, "is an address of the capture")

    run(act, sample(CAPTURE), size=(160, 40))


@pytest.mark.slow
@pytest.mark.parametrize("allowed", ["", " --allow 192.0.2.8"])
def test_a_target_that_is_not_loopback_needs_a_typed_yes(tmp_path: Path, allowed: str) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await ask_target(browser, pilot)
        await fill(browser, pilot, f"192.0.2.7:9876 -o {tmp_path / 'run'}{allowed}")
        await sees(browser, "192.0.2.7 is not loopback; send there? Type yes")
        await fill(browser, pilot, "y")
        await sees(browser, "nothing was sent")
        assert not (tmp_path / "run").exists()

    run(act, sample(CAPTURE), size=(160, 40))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--yes", "enter the target first"),
        ("'", "No closing quotation"),
        (";", "no NameServer given"),
    ],
)
def test_what_is_no_target_is_said(line: str, said: str) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        browser.ask("target", "target", "")
        await fill(browser, pilot, line)
        await sees(browser, said, "nothing was sent")

    run(act, sample(CAPTURE), size=(160, 30))


def test_what_cannot_be_sent_again_is_said() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "3", "R")
        await sees(browser, "only exchanges and messages from capture files can be replayed")

    run(act, sample(CAPTURE))
