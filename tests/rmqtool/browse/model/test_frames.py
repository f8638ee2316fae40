"""Frames of exchanges: a live browser drops the oldest, and goes on keeping bodies."""

from __future__ import annotations

import pytest

from dissectors.decode.pipeline import Decode
from rmqtool.browse.model import frames as module
from rmqtool.browse.model.frames import FrameStore
from tests.rmqtool.browse.browsing import sample


def test_dropped_frames_leave_room_for_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PART", 16)
    decode = Decode([sample("acl-5x.pcap")])
    once = [exchange for batch in decode.exchanges() for exchange in batch][:16]
    store = FrameStore(most_bytes=50_000)
    for number in range(50):
        store.add(once)
        store.drop_before(16 * number)
    last = store.exchange(50 * 16 - 1)
    assert last is not None
    assert last.whole
    assert store.left_out == 0
    store.close()
