"""The search reads once, finds what is recognised late, and stays within its bounds."""

from __future__ import annotations

import pytest

from analytics.life import search as search_module
from analytics.life.search import MessageSearch
from dissectors.decode.pipeline import Decode, DecodeOptions

from .lives import SAMPLES, searched


def test_any_id_of_a_message_finds_the_same_rows() -> None:
    name = "push-retry-dlq-5x.pcap"
    by_key, _ = searched([name], "key-3")
    (wanted,) = by_key.messages
    rows = {id(row.unique_key): row for row in wanted.rows}
    assert rows
    last = max(wanted.rows, key=lambda row: row.reconsume_times or 0)
    for key in (wanted.unique_key, last.offset_msg_id):
        (found,) = searched([name], key)[0].messages
        assert sorted(row.packet or 0 for row in found.rows) == sorted(
            row.packet or 0 for row in wanted.rows
        )
        assert found.covered.keys() == wanted.covered.keys()


def test_a_commit_of_another_queue_or_group_covers_nothing() -> None:
    search, _ = searched(["push-consumer-5x.pcap"], where="event == delivered")
    assert search.messages
    for found in search.messages:
        for (group, place), row in found.covered.items():
            assert row.topic == place[1]
            assert row.queue_id == place[2]
            assert (row.queue_offset or 0) > place[3]
            assert row.consumer_group == group


def test_the_bounds_hold_and_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "MOST_MESSAGES", 3)
    search, _ = searched(["push-consumer-5x.pcap"], where="event == delivered")
    assert len(search.messages) == 3
    assert search.messages_left_out
    monkeypatch.setattr(search_module, "MOST_ROWS", 2)
    search, _ = searched(["push-retry-dlq-5x.pcap"], "key-0")
    (found,) = search.messages
    assert len(found.rows) == 2
    assert found.left_out == 4
    monkeypatch.setattr(search_module, "MOST_ROWS", 1)
    search, _ = searched(["push-consumer-5x.pcap"], where="event == stored")
    assert {len(message.covered) for message in search.messages} == {1}


def test_what_is_remembered_does_not_grow_with_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "LOOK_BACK", 8)
    monkeypatch.setattr(search_module, "MOST_CLIENTS", 4)
    monkeypatch.setattr(search_module, "MOST_FETCHERS", 2)
    search = MessageSearch("no such key")
    for path in sorted(SAMPLES.glob("push-*.pcap")):
        decode = Decode([str(path)], DecodeOptions(messages=True))
        for batch in decode.records():
            search.add_exchanges(batch)
            for carried in decode.take_messages():
                search.add(carried.messages)
    assert search.messages == []
    assert len(search.past) == 8
    assert len(search.client_ids) == 4
    assert len(search.fetches) == 2


def test_rows_that_are_gone_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "LOOK_BACK", 2)
    search, _ = searched(["send-timer-5x.pcap"], where="event == recalled")
    assert search.forgotten > 0
