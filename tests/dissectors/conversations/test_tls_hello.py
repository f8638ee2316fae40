"""What a TLS hello says in the clear, and what one says that is cut or damaged."""

from __future__ import annotations

import random

import pytest

from dissectors.conversations.tls_hello import tls_facts


def extension(kind: int, value: bytes) -> bytes:
    return kind.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value


def record(kind: int, content: bytes) -> bytes:
    return bytes([kind, 3, 1]) + len(content).to_bytes(2, "big") + content


def client_hello(name: bytes = b"broker.example", versions: bytes = b"\x03\x04\x03\x03") -> bytes:
    names = b"\x00" + len(name).to_bytes(2, "big") + name
    extensions = extension(0, len(names).to_bytes(2, "big") + names)
    extensions += extension(43, bytes([len(versions)]) + versions)
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    return record(0x16, b"\x01" + len(body).to_bytes(3, "big") + body)


def server_hello(version: bytes | None) -> bytes:
    extensions = extension(43, version) if version else b""
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x13\x01" + b"\x00"
    body += len(extensions).to_bytes(2, "big") + extensions
    return record(0x16, b"\x02" + len(body).to_bytes(3, "big") + body)


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (client_hello(), ["tls_offered=1.3,1.2", "tls_name=broker.example"]),
        (server_hello(b"\x03\x04"), ["tls_chosen=1.3"]),
        (server_hello(None), ["tls_chosen=1.2"]),
        (record(0x15, b"\x02\x28"), ["tls_alert=handshake_failure"]),
        (record(0x17, b"abc"), []),
        (b"", []),
        (client_hello()[:60], ["tls_offered=1.2"]),
    ],
    ids=["client", "server 1.3", "server 1.2", "alert", "encrypted", "nothing", "cut"],
)
def test_what_is_said(data: bytes, facts: list[str]) -> None:
    assert tls_facts(data) == facts


def test_nothing_raises() -> None:
    rng = random.Random(1)
    for _ in range(500):
        data = bytearray(client_hello() + server_hello(b"\x03\x04"))
        for _ in range(8):
            data[rng.randrange(len(data))] = rng.randrange(256)
        tls_facts(bytes(data[: rng.randrange(len(data))]))
