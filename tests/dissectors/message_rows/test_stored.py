"""Rows of stored messages of which no recorded sample can be: lite consumers speak gRPC."""

from __future__ import annotations

from pathlib import Path

from bench.captures.frames import encode_stored_message, stored_crc
from dissectors.remoting.codes import RequestCode
from tests.analytics.life.lives import lives_in
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command
from tests.traffic.talk import Talk

HOST = bytes((127, 0, 0, 1)) + (10911).to_bytes(4, "big")
QUEUE = "%LMQ%$Orders$order-1"


def record(queue_offset: int, key: str, queues: str, offsets: str) -> bytes:
    """A record of topic Orders, queue 0, with these offsets in the queues of lite topics."""
    properties = {
        "UNIQ_KEY": key,
        "__LITE_TOPIC": "order-1",
        "INNER_MULTI_DISPATCH": queues,
        "INNER_MULTI_QUEUE_OFFSET": offsets,
    }
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
    body = (key.encode(), stored_crc(key.encode()))
    born = 1_795_000_000_000
    return encode_stored_message(
        b"Orders", 0, queue_offset, 300 * queue_offset, born, HOST, HOST, text, body
    )


def test_an_acknowledged_lite_message_is_that_of_its_lite_queue(tmp_path: Path) -> None:
    pop = {"clientId": "c", "consumerGroup": "g", "topic": "Orders", "maxMsgNum": "8"}
    ack = {"consumerGroup": "g", "topic": "Orders", "liteTopic": "order-1", "queueId": "0"}
    # The offset of one in the lite queue is that of the other one in the topic's own queue.
    records = record(7, "K7", QUEUE, "3") + record(3, "K3", f"%LMQ%other,{QUEUE}", "9,4")
    popped = Command(int(RequestCode.POP_LITE_MESSAGE), 1, ext=pop)
    acked = Command(int(RequestCode.ACK_MESSAGE), 2, ext={**ack, "offset": "3"})
    talk = Talk().open().say(0, popped.frame).say(1, popped.answer(body=records).frame)
    talk = talk.say(0, acked.frame).say(1, acked.answer().frame)
    path = tmp_path / "lite.pcap"
    path.write_bytes(pcap_of(talk.segments))
    (first,), (second,) = (lives_in(path, key=key) for key in ("K7", "K3"))
    rows = [step.row for step in first.steps]
    assert [(row.event, row.topic, row.queue_offset) for row in rows] == [
        ("delivered", QUEUE, 3),
        ("acknowledged", QUEUE, 3),
    ]
    assert {row.original_topic for row in rows} == {"Orders"}
    assert [(step.row.event, step.row.queue_offset) for step in second.steps] == [("delivered", 4)]
