"""A replay of very many connections that never respond and never end, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.conversations.conversation_table import MAX_CONVERSATIONS
from tests.traffic.captures import pcap_of
from tests.traffic.talk import MILLISECOND, START, End, Talk

from .catalogue import keyed
from .limited import MIB, Ended, limited

MOST = 220 * MIB
"""some 185 MB with the modules as plain Python; what other machines take more is allowed for"""


def replayed(folder: Path, count: int) -> Ended:
    """Replay one send on each of many connections."""
    segments = []
    for number in range(count):
        client = End(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1024)
        talk = Talk(client=client, at=START + number * MILLISECOND).open()
        segments += talk.say(0, keyed(number).frame).segments
    capture = folder / f"{count}.pcap"
    capture.write_bytes(pcap_of(segments, "raw"))
    options = ("--target", "sandbox", "--top-speed", "-q", "-o", folder / f"run-{count}")
    return limited(folder, 2 << 30, "replay", capture, *options)


@pytest.mark.slow
def test_twice_the_connections_take_the_same_memory(tmp_path: Path) -> None:
    """From the first count on, all that is held of connections is held."""
    count = MAX_CONVERSATIONS + 1000
    once, twice = replayed(tmp_path, count), replayed(tmp_path, 2 * count)
    assert (once.status, twice.status) == (0, 0), once.err + twice.err
    assert twice.peak < 1.1 * once.peak
    assert twice.peak < MOST
