"""What a TLS hello says in the clear, and what one says that is cut or damaged."""

from __future__ import annotations

import random

import pytest

from dissectors.conversations import tls_facts as facts_of
from dissectors.tls.key_log import KeyLog
from dissectors.tls.session import TlsSession
from tests.traffic.tls_records import client_hello, record, server_hello


def tls_facts(data: bytes) -> list[str]:
    session = TlsSession(KeyLog())
    assert session.receive(0, data, 1, 0) == []
    assert session.give_up() == []
    assert session.findings == []
    return facts_of.tls_facts(session.events)


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (client_hello(), ["tls_offered=1.3,1.2", "tls_name=broker.example"]),
        (server_hello(b"\x03\x04"), ["tls_chosen=1.3", "tls_suite=TLS_AES_128_GCM_SHA256"]),
        (server_hello(None), ["tls_chosen=1.2", "tls_suite=TLS_AES_128_GCM_SHA256"]),
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
