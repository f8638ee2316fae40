"""Rows of messages agree with what the clients themselves wrote down of the same run."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from dissectors.rows.message_record import DELIVERED, STORED, MessageRecord
from tests.expected import captures

from .seen import SAMPLES, seen_in

CAPTURES = {path.name.split(".")[0]: path.name for path in captures()}
PRODUCERS = sorted(
    path.name
    for path in SAMPLES.glob("*.json")
    if path.name.endswith((".faults.json", ".producer.json"))
)


@pytest.mark.parametrize("truth", PRODUCERS)
def test_each_send_of_the_java_producer_has_its_attempts(truth: str) -> None:
    told = json.loads((SAMPLES / truth).read_text(encoding="utf-8"))
    sends = [one for one in told if one["kind"] == "send"]
    attempts: dict[str | None, list[MessageRecord]] = defaultdict(list)
    for row in seen_in(CAPTURES[truth.split(".")[0]]):
        if row.request_name in ("SEND_MESSAGE_V2", "SEND_MESSAGE"):
            attempts[row.unique_key].append(row)
    good = [one for one in sends if one.get("status") == "SEND_OK"]
    assert good
    for send in good:
        rows = attempts[send["msgId"]]
        last = max(rows, key=lambda row: row.time or 0)
        assert (last.event, last.queue_id) == (STORED, send["queueId"])
        assert last.broker_name in (send["broker"], None)  # clients of 4.3 do not say it
        begun = min(row.time or 0 for row in rows) // 1_000_000
        answered = ((last.time or 0) + 1000 * (last.latency_us or 0)) // 1_000_000
        assert send["begin"] <= begun <= answered <= send["at"] + 1


@pytest.mark.parametrize("name", ["send-trace-5x.pcap", "send-trace-4x.pcap"])
def test_the_clients_own_trace_tells_of_the_same_sends(name: str) -> None:
    rows = seen_in(name, body_limit=1 << 20)
    told = {}
    for row in rows:
        if row.topic != "RMQ_SYS_TRACE_TOPIC" or row.body is None:
            continue
        for line in row.body.split("\x02"):
            parts = line.split("\x01")
            if parts[0] == "Pub":
                # TraceDataEncoder: type, time, region, group, topic, id, tags, keys, store host,
                # body length, cost, message type, offset message id, success
                told[parts[5]] = parts
    ours = {
        row.unique_key: row
        for row in rows
        if row.topic != "RMQ_SYS_TRACE_TOPIC" and row.event == STORED
    }
    assert told
    assert told.keys() == ours.keys()
    for key, parts in told.items():
        row = ours[key]
        assert (parts[3], parts[4], parts[6], parts[7]) == (
            row.producer_group,
            row.topic,
            row.tags or "",
            row.keys or "",
        )
        assert (parts[8], int(parts[9]), parts[12], parts[13]) == (
            row.server_address,
            row.body_bytes,
            row.offset_msg_id,
            "true",
        )


def test_what_was_stored_is_what_is_delivered() -> None:
    """The broker's own record of a message agrees with what its send and the answer said."""
    rows = seen_in("stored-twice-5x.pcap")
    sent = {row.offset_msg_id: row for row in rows if row.event == STORED}
    both = [
        (sent[r.offset_msg_id], r) for r in rows if r.event == DELIVERED and r.offset_msg_id in sent
    ]
    assert len(both) > 5
    for one, other in both:
        for field in ("unique_key", "topic", "queue_id", "queue_offset", "commit_log_offset",
                      "keys", "tags", "born_time", "body_bytes", "reconsume_times"):  # fmt: skip
            assert getattr(one, field) == getattr(other, field), field
        assert other.crc_ok is True
