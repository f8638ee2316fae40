"""One message's life from recorded traffic: the steps, why they came, and what cannot be seen."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest

from analytics.life.lanes import CONNECT_FAILED
from dissectors.rows.message_record import STORED
from dissectors.rows.outcome import is_send
from tests.analytics.reported import tables_of

from .lives import SAMPLES, events_of, lives_in


def test_a_message_that_is_given_back_until_it_is_dead() -> None:
    (life,) = lives_in("push-retry-dlq-5x.pcap", key="key-0")
    events = [one for one in events_of(life) if one != "acknowledged"]
    assert events == ["delivered", "returned"] * 3
    assert [step.row.reconsume_times for step in life.steps if step.row.event == "delivered"] == [
        0,
        1,
        2,
    ]
    covering = [step.row for step in life.steps if step.row.event == "acknowledged"]
    assert {row.topic for row in covering} == {"RetryTopic", "%RETRY%push_retry_dlq_5x_group"}
    assert life.topic == "RetryTopic"
    group = "push_retry_dlq_5x_group"
    assert f"ended in the DLQ of {group} with packet 145: returned after 2 of 2 redeliveries" in (
        life.summary
    )
    assert not any("DLQ" in line or "redelivered" in line for line in life.unseen)
    assert any(line.startswith("the send, ") for line in life.unseen)
    whys = [step.why for step in life.steps if step.why]
    assert whys == ["redelivered: it was returned"] * 2


def test_a_message_that_was_stored_twice_was_delivered_twice() -> None:
    (life,) = lives_in("stored-twice-5x.pcap", key="key-5")
    assert events_of(life) == [
        "sent",
        "stored",
        "delivered",
        "acknowledged",
        "delivered",
        "acknowledged",
    ]
    brokers = [step.source.name for step in life.steps if step.row.event == "delivered"]
    assert sorted(brokers) == ["broker-a", "broker-b"]
    assert life.steps[1].why.startswith("attempt 2: the previous one got no response")
    assert "delivered twice to twice_group" in life.summary
    assert life.unseen == []
    (also,) = [line for line in life.summary if "was stored, too" in line]
    assert re.search(
        r"the message was also delivered from broker-[ab], queue \d, offset \d+$", also
    )


@pytest.mark.parametrize(
    ("key", "ends"),
    [
        ("key-0", ["prepared", "committed", "checked", "undecided"]),
        ("key-1", ["prepared", "rolled_back", "checked", "undecided"]),
        ("key-2", ["prepared", "undecided", "checked", "committed"]),
    ],
)
def test_a_transaction(key: str, ends: list[str]) -> None:
    (life,) = lives_in("transaction-5x.pcap", key=key)
    assert events_of(life) == ends
    told = " ".join(life.unseen)
    assert ("no consumer connection" in told) is (key != "key-1")


def test_a_half_message_that_nobody_ends() -> None:
    (life,) = lives_in("transaction-abandoned-5x.pcap", where="event == prepared")
    assert "prepared" in events_of(life)
    assert any("no commit or rollback was captured" in line for line in life.unseen)


def test_a_commit_after_a_rollback_delivers() -> None:
    (life,) = lives_in("ends-contradict-5x.pcap.gz", key="key-0")
    assert events_of(life) == ["prepared", "checked", "rolled_back", "committed", "delivered"]


def test_request_and_reply_are_two_messages() -> None:
    asked, *_ = lives_in("request-reply-5x.pcap", where="request_name == SEND_MESSAGE_V2")
    assert events_of(asked) == ["stored", "delivered", "acknowledged"]
    reply, *_ = lives_in("request-reply-5x.pcap", where="request_name ~ REPLY")
    assert sorted(events_of(reply)) == ["delivered", "stored"]
    assert {lane.kind for lane in reply.lanes} == {"producer", "broker", "consumer"}


def test_popped_late_and_again() -> None:
    (life,) = lives_in("pop-late-5x.pcap", key="key-0")
    assert events_of(life) == [
        "delivered",
        "acknowledged",
        "delivered",
        "acknowledged",
    ]
    assert life.steps[2].why.startswith("redelivered: returned, or not acknowledged in time")
    assert life.unseen == ["the send, and sends of other messages"]


def test_a_message_that_an_orderly_consumer_gave_up() -> None:
    ended = ": retried once, as often as its consumer allows"
    for generation in ("4x", "5x"):
        lives = lives_in(f"orderly-dead-letters-{generation}.pcap.gz", where="event == returned")
        assert len(lives) == 4
        for life in lives:
            assert life.summary[-1].startswith("ended in the DLQ of orderly_dead with packet ")
            assert life.summary[-1].endswith(ended)
            assert not any("redeliver" in line for line in life.unseen)


def test_a_recalled_message_is_not_missed() -> None:
    lives = lives_in("send-timer-5x.pcap", where="event == recalled")
    assert len(lives) == 2
    for life in lives:
        assert events_of(life) == ["stored", "recalled"]  # the send came before the match
        assert life.unseen == []


def test_every_send_of_the_java_producer_is_traced_by_its_id() -> None:
    name = "fault-kill-5x"
    told = json.loads((SAMPLES / f"{name}.faults.json").read_text(encoding="utf-8"))
    sends = [one for one in told if one["kind"] == "send" and one.get("status") == "SEND_OK"]
    for send in sends[:: max(1, len(sends) // 5)]:
        (life,) = lives_in(f"{name}.pcap", key=send["msgId"].lower())
        assert life.name == send["msgId"]
        assert life.steps[-1].row.event == STORED
        assert life.steps[-1].target.name == send["broker"]


def test_what_nobody_fetches_was_not_delivered() -> None:
    (life,) = lives_in("send-sync-5x.pcap", key="key-0")
    assert events_of(life) == ["stored"]
    assert life.unseen == ["deliveries (no consumer connection)"]
    unrelated = lives_in("send-sync-5x.pcap", "push-consumer-5x.pcap", where="topic == SyncTopic")
    for one in unrelated:
        assert any("no client fetches" in line for line in one.unseen)


def test_a_refused_message_says_why() -> None:
    lives = lives_in("fault-unknown-topic-5x.pcap", where="event == refused")
    assert lives
    for life in lives:
        assert set(events_of(life)) == {"refused"}
        assert "TOPIC_NOT_EXIST" in life.steps[0].words
        assert any("every attempt was refused" in line for line in life.unseen)
        assert life.steps[1].why.startswith("attempt 2: the previous one was refused")


@pytest.mark.parametrize("release", ["5x", "4x"])
def test_replication_to_a_slave(release: str) -> None:
    lives = lives_in(f"ha-replication-{release}.pcap", where="event == stored")
    passed = [
        (life, step) for life in lives for step in life.steps if step.row.event == "replicated"
    ]
    assert passed
    assert len(passed) < len(lives)  # one of the brokers has no slave
    for life, step in passed:
        assert (step.source.kind, step.target.kind) == ("broker", "slave")
        (stored,) = (one for one in life.steps if one.row.event == "stored")
        assert step.source == stored.target
        # A synchronous master answers what a slave has; what was sent before it joined, not so.
        if stored.row.response_name == "SUCCESS":
            assert stored.row.latency_us is not None
            assert stored.time < step.time <= stored.time + 1000 * stored.row.latency_us
        else:
            assert stored.row.response_name in ("FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")
            assert step.time > stored.time


@pytest.mark.parametrize(
    "name", ["grpc-tls-keys-5x.pcapng", "grpc-go-keys-53.pcapng", "grpc-python-5x.pcap"]
)
def test_a_proxy_stands_between_its_clients_and_the_broker(name: str) -> None:
    told = json.loads((SAMPLES / f"{name.partition('.')[0]}.grpc.json").read_text())
    key = next(line["rest"] for line in told if line["what"] == "sent")
    (life,) = lives_in(name, key=key)
    ways = [(step.source.kind, step.row.event, step.target.kind) for step in life.steps]
    assert ways == [
        ("producer", "stored", "proxy"),
        ("proxy", "stored", "broker"),
        ("broker", "delivered", "proxy"),
        ("proxy", "delivered", "consumer"),
        ("consumer", "acknowledged", "proxy"),
        ("proxy", "acknowledged", "broker"),
    ]
    assert [lane.kind for lane in life.lanes] == ["producer", "proxy", "broker", "consumer"]
    behind = [step.why for step in life.steps if step.why]
    assert len(behind) == 3
    assert all(why.startswith("behind the proxy: ") for why in behind)


def test_a_proxy_in_local_mode_is_the_broker_too() -> None:
    told = json.loads((SAMPLES / "grpc-local-53.grpc.json").read_text())
    key = next(line["rest"] for line in told if line["what"] == "sent")
    (life,) = lives_in("grpc-local-53.pcap", key=key)
    assert [lane.kind for lane in life.lanes] == ["producer", "proxy", "consumer"]
    assert events_of(life) == ["stored", "delivered", "acknowledged"]


@pytest.mark.parametrize(
    "name", ["fault-kill-4x", "going-away-5x", "queue-illegal-5x", "vip-closed-4x"]
)
def test_attempts_are_numbered_as_in_the_retry_report(name: str) -> None:
    reported = defaultdict(list)
    for row in tables_of("retries", [str(SAMPLES / f"{name}.pcap")])["retry_attempts"]:
        reported[row["unique_key"]].append((row["attempt"], row["inferred"]))
    with_connects = [key for key, rows in reported.items() if any(made for _, made in rows)]
    assert with_connects
    traced = {}
    for life in lives_in(f"{name}.pcap", where="event in (stored, refused, sent)"):
        sent = [step for step in life.steps if is_send(step.row.request_name)]
        numbers = [re.match(r"attempt (\d+)", step.why) for step in sent]
        traced[life.name] = [
            (int(number[1]) if number else 1, step.row.event == CONNECT_FAILED)
            for number, step in zip(numbers, sent, strict=True)
        ]
    for key in with_connects:
        assert traced[str(key)] == sorted(reported[key])
