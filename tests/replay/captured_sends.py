"""What the send requests of a capture carry, taken apart without the code that replays them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dissectors.decode.pipeline import Decode
from dissectors.remoting.messages.batch import decode_batch
from dissectors.remoting.messages.compression import decompress
from dissectors.remoting.messages.properties import decode_properties
from dissectors.remoting.sysflag import compression_of


class SentMessage(NamedTuple):
    """A message as it was sent."""

    body: bytes
    properties: dict[str, str]
    topic: str
    lane: tuple[int, str, str]
    """conversation, broker and queue that it was sent to"""


def captured_sends(path: Path) -> dict[str, SentMessage]:
    """UNIQ_KEY → the message, in the order sent; traces are left out."""
    found: dict[str, SentMessage] = {}
    for batch in Decode([str(path)]).exchanges():
        for exchange in batch:
            pdu = exchange.request
            if pdu is None or pdu.command.code not in (10, 310, 320):
                continue
            fields = pdu.command.ext_fields
            topic = fields.get("b") or fields["topic"]
            if topic.startswith("RMQ_SYS_"):
                continue
            queue = fields.get("e") or fields["queueId"]
            lane = (pdu.conversation, fields.get("n") or fields.get("bname") or pdu.dst, queue)
            if pdu.command.code == 320:
                for item in decode_batch(pdu.body).items:
                    key = item.properties["UNIQ_KEY"]
                    found[key] = SentMessage(item.body, item.properties, topic, lane)
                continue
            properties = decode_properties(fields.get("i") or fields.get("properties") or "")
            kind = compression_of(int(fields.get("f") or fields.get("sysFlag") or 0))
            body = pdu.body if kind is None else decompress(pdu.body, kind).data
            found[properties["UNIQ_KEY"]] = SentMessage(body, properties, topic, lane)
    return found
