"""A capture that ends inside a packet: the bar and a notification say so, as `decode pcap` does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from textual.pilot import Pilot

import rmqtool
from rmqtool.browse.views.actions import FullBrowser
from tests.rmqtool.browse.browsing import run, sample, sees, shown

SMALL = (80, 24)


def cut_copy(name: str, size: int, folder: Path, copy: str = "") -> str:
    """Write the first bytes of a sample; return their file."""
    path = folder / (copy or name)
    path.write_bytes(Path(sample(name)).read_bytes()[:size])
    return str(path)


@pytest.mark.parametrize(
    ("name", "size", "packet", "left"),
    [("send-sync-5x.pcap", 3000, 15, 281), ("format-pcapng-5x.pcapng", 3050, 15, 50)],
)
def test_the_bar_and_a_notification_say_where(
    name: str, size: int, packet: int, left: int, tmp_path: Path
) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        assert f"cut after packet {packet}  {name}" in shown(browser)[0]
        (told,) = browser._notifications
        assert told.severity == "warning"
        assert told.message == (
            "the capture file ends inside a packet:"
            f" packet {packet}: {left} bytes of a packet that is cut off"
        )
        browser.look()
        assert len(browser._notifications) == 1
        await sees(browser, f"packet {packet}: {left} bytes")

    run(act, cut_copy(name, size, tmp_path), size=SMALL)


def test_a_long_name_does_not_hide_it(tmp_path: Path) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        assert "cut after packet 15" in shown(browser)[0]

    run(act, cut_copy("send-sync-5x.pcap", 3000, tmp_path, "n" * 90 + ".pcap"), size=SMALL)


def test_of_several_captures_the_cut_one_is_named(tmp_path: Path) -> None:
    shutil.copy(sample("acl-5x.pcap"), tmp_path / "a.pcap")
    cut_copy("send-sync-5x.pcap", 3000, tmp_path, "b\x1b.pcap")

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        assert "cut after packet 15 of b\\x1b.pcap  2 captures" in shown(browser)[0]
        (told,) = browser._notifications
        assert "\x1b" not in told.message

    run(act, str(tmp_path), size=SMALL)


def test_a_decoded_log_of_it_says_so(tmp_path: Path) -> None:
    log = rmqtool.read(cut_copy("send-sync-5x.pcap", 3000, tmp_path)).to_parquet(tmp_path / "log")

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        assert "cut inside a packet  log" in shown(browser)[0]

    run(act, str(log), size=SMALL)


def test_of_a_whole_capture_nothing_is_said() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        assert "cut" not in shown(browser)[0]
        assert not browser._notifications

    run(act, sample("acl-5x.pcap"), size=SMALL)
