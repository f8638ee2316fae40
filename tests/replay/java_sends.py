"""The sends of Java clients in the samples, and our requests for the same messages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.header_codec import decode_header
from dissectors.remoting.messages.batch import decode_batch
from dissectors.remoting.messages.compression import decompress
from dissectors.remoting.messages.properties import decode_properties
from dissectors.remoting.sysflag import compression_of
from replay.config import ProducerConfig
from replay.message import MessageQueue, message_of_properties
from replay.sending.send_request import SendEncoder, SendRequest
from replay.unique_id import UniqueIds
from tests.streams import frames_of, streams_of

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "protocol" / "vectors.json"


class Sent(NamedTuple):
    """One send of a capture."""

    capture: str
    frame: bytes
    command: RemotingCommand
    body: bytes


def sends_of(path: Path) -> Iterator[Sent]:
    """All sends of a capture."""
    for stream in streams_of(path):
        for frame in frames_of(stream) if stream.whole else []:
            size = int.from_bytes(frame[5:8], "big")
            command = decode_header(frame[4], frame[8 : 8 + size])
            if command is not None and not command.is_response and command.code in SENDS:
                yield Sent(path.name, frame, command, frame[8 + size :])


@cache
def java_sends() -> list[Sent]:
    """The sends of Java clients in all samples."""
    # in captures of gRPC the proxy sends, with ids that clients of 5.x made
    paths = sorted(path for path in SAMPLES.glob("*.pcap") if not path.name.startswith("grpc-"))
    sends = [sent for path in paths for sent in sends_of(path)]
    return [sent for sent in sends if sent.command.language == "JAVA"]


def _encoder_like(command: RemotingCommand, namespace: str = "") -> SendEncoder:
    fields = command.ext_fields
    config = ProducerConfig(
        fields["a"].removeprefix(f"{namespace}%"),
        client_version=command.version,
        language=command.language,
        serialize_type=command.serialize_type,
        create_topic_key=fields["c"],
        default_topic_queue_nums=int(fields["d"]),
        namespace=namespace,
        compress_over=4096 if int(fields["f"]) & 1 else 1 << 30,
        compress_type=compression_of(int(fields["f"])) or "zlib",
    )
    return SendEncoder(config, UniqueIds("192.0.2.10", 1, 1))


def request_again(sent: Sent) -> SendRequest:
    """Our request for the message that Java sent, to where it sent it."""
    fields = sent.command.ext_fields
    properties = decode_properties(fields["i"])
    namespace = properties.pop("INSTANCE_ID", "")
    encoder = _encoder_like(sent.command, namespace)
    topic = fields["b"].removeprefix(f"{namespace}%")
    queue = MessageQueue(fields["b"], fields.get("n", ""), int(fields["e"]))
    flags = int(fields["f"])
    if sent.command.code == 320:
        messages = [
            message_of_properties(topic, item.body, item.properties, item.flag)
            for item in decode_batch(sent.body).items
        ]
        prepared = encoder.prepare_batch(messages, 0)
    else:
        half = properties.pop("TRAN_MSG", None) is not None
        if half:
            assert properties.pop("PGROUP") == encoder.config.group
        kind = compression_of(flags)
        body = decompress(sent.body, kind).data if kind else sent.body
        message = message_of_properties(topic, body, properties, int(fields["h"]))
        prepared = encoder.prepare(message, 0, half=half)
    oneway = sent.command.is_oneway
    return encoder.request(prepared, queue, int(fields["g"]), oneway=oneway)
