"""The data of a browser: a live one drops the oldest rows and what belongs to them."""

from __future__ import annotations

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
from rmqtool.browse.model import disk
from rmqtool.browse.model.session import BrowseSession
from tests.rmqtool.browse.browsing import sample


def test_the_exchanges_of_dropped_messages_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "SEGMENT_ROWS", 4)
    monkeypatch.setattr(disk, "PART_ROWS", 8)
    decode = Decode([sample("acl-5x.pcap")], DecodeOptions(messages=True))
    batches = [(decode.rows_of(one), decode.take_messages()) for one in decode.exchanges()]
    rows, carried = next(batch for batch in batches if batch[1])
    session = BrowseSession("live", most_rows=8, has_frames=False)
    for _ in range(20):
        session.add(rows, (), carried)
    messages = session.messages
    assert 0 < messages.first < messages.count
    assert session.exchange_of_message(messages.first - 1) is None
    assert session.exchange_of_message(messages.count) is None
    assert len(session._exchange_of[1]) == messages.count - messages.first
    number, message = session.exchange_of_message(messages.count - 1), carried[-1].messages[-1]
    assert number is not None
    assert rows[number % len(rows)].unique_key == message.unique_key
    session.close()
