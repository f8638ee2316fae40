"""One request to a NameServer or broker, enough to know that it serves and to make topics.

It is on purpose apart from `dissectors`: what the project's own code decodes is tested against
this cluster, so the
cluster must not lean on that code.

RocketMQ: RemotingCommand with a JSON header; of a binary one only the code is read.
"""

from __future__ import annotations

import json
import socket
import struct
from itertools import count

GET_BROKER_CLUSTER_INFO = 106
GET_ROUTEINFO_BY_TOPIC = 105
UPDATE_AND_CREATE_TOPIC = 17
UPDATE_BROKER_CONFIG = 25
SUCCESS = 0
LIMIT = 1 << 24
BINARY = 1

SOURCE = "127.0.0.99"
"""Where probes come from, so that a capture can leave them out."""

_opaque = count(1)


def ask(
    address: tuple[str, int],
    code: int,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
    timeout: float = 30.0,
    source: str = SOURCE,
) -> tuple[dict[str, object], bytes]:
    """Header and body of the answer; raises `OSError` when there is none."""
    origin = None if ":" in address[0] else (source, 0)
    with socket.create_connection(address, timeout, origin) as connection:
        return ask_on(connection, code, fields, body)


def ask_on(
    connection: socket.socket,
    code: int,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
) -> tuple[dict[str, object], bytes]:
    """As `ask`, on a connection that goes on."""
    header = json.dumps(
        {
            "code": code,
            "language": "OTHER",
            "version": 401,
            "opaque": next(_opaque),
            "flag": 0,
            "extFields": fields or {},
        }
    ).encode()
    frame = struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body
    connection.sendall(frame)
    length = struct.unpack(">I", _read(connection, 4))[0]
    if length > LIMIT:
        raise ConnectionError(f"a frame of {length} bytes came as an answer")
    answer = _read(connection, length)
    kind, size = divmod(struct.unpack(">I", answer[:4])[0], 1 << 24)
    head, rest = answer[4 : 4 + size], answer[4 + size :]
    if kind == BINARY:
        # A server that was told to answer in binary; its code is all that is asked for here.
        return {"code": struct.unpack(">H", head[:2])[0]}, rest
    decoded: dict[str, object] = json.loads(head)
    return decoded, rest


def is_registered(namesrv: tuple[str, int], server_address: str) -> bool:
    """Whether the NameServer lists that broker address."""
    try:
        header, body = ask(namesrv, GET_BROKER_CLUSTER_INFO, timeout=1.0)
    except (OSError, ValueError):
        return False
    return header.get("code") == SUCCESS and f'"{server_address}"'.encode() in body


def listens(address: tuple[str, int]) -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection(address, 1.0).close()
    except OSError:
        return False
    return True


def has_route(namesrv: tuple[str, int], topic: str, brokers: int = 1) -> bool:
    """Whether the NameServer answers with queues of that many brokers for a topic."""
    try:
        header, body = ask(namesrv, GET_ROUTEINFO_BY_TOPIC, {"topic": topic}, timeout=1.0)
    except (OSError, ValueError):
        return False
    return header.get("code") == SUCCESS and body.count(b'"readQueueNums"') >= brokers


def make_topic(
    broker: tuple[str, int],
    topic: str,
    *,
    queues: int = 4,
    perm: int = 6,
    order: bool = False,
    attributes: str = "",
) -> None:
    """Creates or changes a topic on one broker; raises `OSError` when it refuses."""
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": str(perm),
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": str(order).lower(),
        "attributes": attributes,
    }
    header, _ = ask(broker, UPDATE_AND_CREATE_TOPIC, fields)
    if header.get("code") != SUCCESS:
        raise ConnectionError(f"{broker} does not make the topic: {header.get('remark')}")


def set_broker_config(broker: tuple[str, int], **settings: object) -> None:
    """Changes settings of a running broker (`brokerPermission=4` makes it read-only)."""
    body = "".join(f"{name}={value}\n" for name, value in settings.items()).encode()
    header, _ = ask(broker, UPDATE_BROKER_CONFIG, body=body)
    if header.get("code") != SUCCESS:
        raise ConnectionError(f"{broker} does not take the settings: {header.get('remark')}")


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the connection ended inside an answer")
        parts += part
    return bytes(parts)
