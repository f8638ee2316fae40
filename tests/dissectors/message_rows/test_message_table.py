"""Each operation about messages gives its rows, and the exchanges stay what they are without."""

from __future__ import annotations

from collections import Counter

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.message_rows.message_table import MessageTable
from dissectors.rows.message_record import DELIVERED, EVENTS

from .seen import SAMPLES, seen_in

CAPTURES = sorted(path.name for path in SAMPLES.glob("*.pcap"))


def test_exchanges_and_findings_are_the_same_with_messages() -> None:
    for name in CAPTURES[::4]:
        plain, with_messages = (
            Decode([str(SAMPLES / name)], DecodeOptions(messages=one)) for one in (False, True)
        )
        assert [r for b in plain.records() for r in b] == [
            r for b in with_messages.records() for r in b
        ], name
        assert plain.stats == with_messages.stats, name


@pytest.mark.parametrize("release", ["5x", "4x"])
def test_life_of_messages_that_are_given_back(release: str) -> None:
    rows = seen_in(f"push-retry-dlq-{release}.pcap")
    lives: dict[str | None, list[tuple[str, int | None]]] = {}
    for row in rows:
        if row.unique_key is not None:
            lives.setdefault(row.unique_key, []).append((row.event, row.reconsume_times))
            assert row.original_topic == "RetryTopic"
    assert len(lives) == 8
    for life in lives.values():
        assert life == [
            ("delivered", 0),
            ("returned", None),
            ("delivered", 1),
            ("returned", None),
            ("delivered", 2),
            ("returned", None),
        ]


def test_half_messages_and_how_they_end() -> None:
    rows = seen_in("transaction-5x.pcap")
    assert Counter(row.event for row in rows) == {
        "prepared": 4, "committed": 2, "rolled_back": 1, "undecided": 5, "checked": 4,
    }  # fmt: skip
    prepared = {row.unique_key: row for row in rows if row.event == "prepared"}
    for row in rows:
        half = prepared[row.unique_key]
        assert row.transaction_id in (None, half.transaction_id)
        assert row.client_address == half.client_address
        assert row.server_address == half.server_address
        assert half.queue_offset is None  # that of the half topic is none of its queue


def test_popped_messages_and_their_acknowledgements() -> None:
    rows = seen_in("pop-calls-5x.pcap")
    popped = {(r.queue_id, r.queue_offset) for r in rows if r.event == "delivered"}
    done = [(r.queue_id, r.queue_offset) for r in rows if r.event == "acknowledged"]
    assert len(popped) == 12
    assert set(done) <= popped
    assert len(done) == 8  # one of them twice
    (returned,) = (row for row in rows if row.event == "returned")
    assert (returned.queue_id, returned.queue_offset) in popped
    assert returned.deliver_time is not None
    assert returned.time is not None
    assert 4.8e9 < returned.deliver_time - returned.time < 5.1e9


def test_a_pop_retry_is_in_the_queue_of_its_retry_topic() -> None:
    rows = seen_in("pop-late-5x.pcap")
    again = [row for row in rows if row.reconsume_times == 1]
    assert again
    for row in again:
        assert (row.topic, row.original_topic) == ("%RETRY%late_group_LateTopic", "LateTopic")
    acks = [row for row in rows if row.event == "acknowledged" and row.topic == again[0].topic]
    assert {(r.queue_id, r.queue_offset) for r in acks} == {
        (r.queue_id, r.queue_offset) for r in again
    }


@pytest.mark.parametrize("release", ["5x", "4x"])
def test_items_of_a_batch_have_ids_and_offsets_of_their_own(release: str) -> None:
    rows = [
        r for r in seen_in(f"send-batch-{release}.pcap") if r.request_name == "SEND_BATCH_MESSAGE"
    ]
    assert len(rows) > 4
    assert len({row.unique_key for row in rows}) == len(rows)
    assert len({row.commit_log_offset for row in rows}) == len(rows)
    first, second = rows[0], rows[1]
    assert (second.place, second.queue_offset) == (1, (first.queue_offset or 0) + 1)


def test_a_recall_names_the_message_and_its_time() -> None:
    rows = seen_in("send-timer-5x.pcap")
    sent = {row.unique_key: row for row in rows if row.event == "stored"}
    recalled = [row for row in rows if row.event == "recalled"]
    assert len(recalled) == 2
    for row in recalled:
        assert row.deliver_time == sent[row.unique_key].deliver_time


@pytest.mark.parametrize("release", ["5x", "4x"])
def test_a_reply_is_delivered_to_who_asked(release: str) -> None:
    rows = seen_in(f"request-reply-{release}.pcap")
    pushed = [row for row in rows if row.request_name == "PUSH_REPLY_MESSAGE_TO_CLIENT"]
    replied = [row for row in rows if (row.request_name or "").startswith("SEND_REPLY")]
    assert [row.unique_key for row in pushed] == [row.unique_key for row in replied]
    assert {row.client_id for row in pushed} == {"127.0.0.1@asker"}


def test_looking_at_a_message_is_no_delivery() -> None:
    rows = seen_in("admin-5x.pcap")
    assert [row for row in rows if row.request_name == "QUERY_MESSAGE"]
    for row in rows:
        if row.request_name in ("QUERY_MESSAGE", "VIEW_MESSAGE_BY_ID"):
            assert row.event == "viewed"


def test_all_events_are_declared_and_bodies_are_left_out() -> None:
    seen = set()
    for name in CAPTURES[::3]:
        for row in seen_in(name):
            seen.add(row.event)
            assert row.body is None
    assert seen <= EVENTS.keys()


def test_a_pull_from_before_the_capture_is_a_delivery() -> None:
    rows = [row for row in seen_in("stored-twice-5x.pcap") if row.event == DELIVERED]
    first = next(row for row in rows if row.keys == "key-0")
    assert (first.packet, first.request_packet, first.latency_us) == (25, None, None)
    assert (first.topic, first.queue_id, first.queue_offset) == ("TwiceTopic", 1, 0)
    assert (first.consumer_group, first.broker_name) == ("twice_group", "broker-b")
    assert (first.client_address, first.client_id) == ("127.0.0.1:47784", "127.0.0.1@consumer")
    assert len({row.unique_key for row in rows}) == 30
    assert {row.consumer_group for row in rows} == {"twice_group"}


@pytest.mark.parametrize("name", ["push-consumer-4x.pcap", "pop-push-5x.pcap", "pop-late-5x.pcap"])
def test_a_response_alone_gives_the_message_that_it_gives_with_its_request(name: str) -> None:
    """The group is known as long as one group alone fetches the topic over the connection."""
    whole, alone = MessageTable(), MessageTable()
    compared = 0
    run = Decode([str(SAMPLES / name)])
    for batch in run.exchanges():
        for one, row in zip(batch, run.rows_of(batch), strict=True):
            with_request = whole.rows_of(one.request, one.response, row, [])
            alone.rows_of(one.request, None, row, [])
            if one.response is None or not any(r.event == DELIVERED for r in with_request):
                continue
            without = alone.rows_of(None, one.response, row, [])
            delivered = [r for r in with_request if r.event == DELIVERED]
            assert [(r.topic, r.queue_id, r.queue_offset, r.unique_key) for r in without] == [
                (r.topic, r.queue_id, r.queue_offset, r.unique_key) for r in delivered
            ]
            assert [r.consumer_group for r in without] == [r.consumer_group for r in delivered]
            compared += len(without)
    assert compared > 3
