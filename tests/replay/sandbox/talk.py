"""A plain client of the protocol for tests: sockets, struct and json, nothing of the project."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

_opaque = count(1)


@dataclass
class Reply:
    """A response, or a request of the broker."""

    code: int
    flag: int
    opaque: int
    remark: str
    fields: dict[str, str]
    body: bytes


def frame(
    code: int,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
    *,
    flag: int = 0,
    opaque: int | None = None,
    version: int = 479,
) -> bytes:
    """A request as Java writes it."""
    header = {
        "code": code,
        "extFields": fields or {},
        "flag": flag,
        "language": "JAVA",
        "opaque": next(_opaque) if opaque is None else opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": version,
    }
    text = json.dumps(header).encode()
    return struct.pack(">II", 4 + len(text) + len(body), len(text)) + text + body


class Talk:
    """One connection."""

    def __init__(self, address: str, timeout: float = 30.0):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout)

    def ask(
        self,
        code: int,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        version: int = 479,
    ) -> Reply:
        """The answer to a request; raises OSError when none comes."""
        self.send(code, fields, body, version=version)
        return self.receive()

    def send(
        self,
        code: int,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        flag: int = 0,
        opaque: int | None = None,
        version: int = 479,
    ) -> None:
        """Send a request and do not wait."""
        self.socket.sendall(frame(code, fields, body, flag=flag, opaque=opaque, version=version))

    def receive(self) -> Reply:
        """The next command; raises OSError when none comes."""
        (length,) = struct.unpack(">I", self._read(4))
        data = self._read(length)
        size = struct.unpack(">I", data[:4])[0] & 0xFFFFFF
        header = json.loads(data[4 : 4 + size])
        return Reply(
            header["code"],
            header["flag"],
            header["opaque"],
            header.get("remark") or "",
            header.get("extFields", {}),
            data[4 + size :],
        )

    def is_closed(self, seconds: float = 2.0) -> bool:
        """Whether the other side ends the connection within that time, without a byte more."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """End it."""
        self.socket.close()

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the connection ended")
            parts += part
        return bytes(parts)

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def send_fields(topic: str, queue_id: int = 0, **properties: str) -> dict[str, str]:
    """Header fields of 310 as a Java client writes them."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    return {
        "a": "producers",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": str(queue_id),
        "f": "0",
        "g": str(int(time.time() * 1000)),
        "h": "0",
        "i": text,
        "j": "0",
        "k": "false",
        "m": "false",
    }


def pull_fields(
    topic: str, queue_id: int = 0, offset: int = 0, *, hold_ms: int = 0, tags: str = "*"
) -> dict[str, str]:
    """Header fields of 11 with the subscription in it."""
    return {
        "consumerGroup": "consumers",
        "topic": topic,
        "queueId": str(queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": str(4 | (2 if hold_ms else 0)),
        "commitOffset": "0",
        "suspendTimeoutMillis": str(hold_ms),
        "subscription": tags,
        "subVersion": "0",
        "expressionType": "TAG",
    }


def heartbeat(
    client_id: str, *, producers: tuple[str, ...] = (), consumers: dict[str, str] | None = None
) -> bytes:
    """Body of 34: producer groups, and consumer groups with the topic of each."""
    now = int(time.time() * 1000)
    return json.dumps(
        {
            "clientID": client_id,
            "producerDataSet": [{"groupName": name} for name in producers],
            "consumerDataSet": [
                {
                    "groupName": group,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": "CLUSTERING",
                    "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
                    "subscriptionDataSet": [
                        {"topic": topic, "subString": "*", "subVersion": now, "tagsSet": []}
                    ],
                }
                for group, topic in (consumers or {}).items()
            ],
        }
    ).encode()


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is inside must not take longer."""
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < seconds
