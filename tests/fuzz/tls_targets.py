"""What is fuzzed of TLS: records in the clear, what is inside encrypted ones, key logs."""

from __future__ import annotations

from collections.abc import Callable

from dissectors.conversations.tls_facts import tls_facts
from dissectors.tls.key_log import CLIENT_TRAFFIC, MASTER, SERVER_TRAFFIC, KeyLog
from dissectors.tls.session import TlsSession
from tests.traffic.tls_records import (
    KEY_LOG,
    PREMASTERS,
    RANDOM,
    client_hello,
    record,
    sealed,
    server_hello,
)

MOST = 1 << 16
"""bytes that one input may hold at a time: what it is itself, and what its records cost"""


def tls(data: bytes) -> None:
    """Parts of both ends, each behind two bytes: what it is, and its size."""
    _play(data, b"")


def tls_sealed(data: bytes) -> None:
    """The same behind the hellos of a session whose secrets are known: parts may be encrypted."""
    _play(data, client_hello(random=RANDOM))


def key_log(data: bytes) -> None:
    """Bytes as a key log."""
    log = KeyLog()
    log.add(data)
    for label in (CLIENT_TRAFFIC, SERVER_TRAFFIC):
        found = log.find(label, RANDOM)
        assert found is None or len(found) in (32, 48)
    log.find(MASTER, RANDOM)


def _play(data: bytes, hello: bytes) -> None:
    secrets = KeyLog()
    secrets.add(KEY_LOG + PREMASTERS)
    session = TlsSession(secrets)
    given = 0
    taken = len(hello) * 2
    if hello:
        session.receive(0, hello, 1, 1)
        session.receive(1, server_hello(b"\x03\x04"), 2, 2)
    numbers = [0, 0]
    at = 0
    while at + 2 <= len(data):
        kind, size = data[at], data[at + 1]
        part = data[at + 2 : at + 2 + size]
        side = kind & 1
        if kind & 2:
            part = record(20 + (kind >> 4 & 7), part)
        elif kind & 4 and hello:
            part = sealed(part, numbers[side])
            numbers[side] += 1
        taken += len(part)
        if kind & 8 and kind & 0x80:
            found = session.receive_gap(side, at + 3, at)
        else:
            found = session.receive(side, part, at + 3, at)
        given += sum(len(one.data) for one in found)
        assert session.held_bytes <= MOST * 4
        at += 2 + size
    given += sum(len(one.data) for one in session.give_up())
    assert session.done
    assert given <= taken  # nothing is made
    for fact in tls_facts(session.events):
        assert fact.isprintable()


TARGETS: dict[str, Callable[[bytes], None]] = {
    "tls": tls,
    "tls_sealed": tls_sealed,
    "key_log": key_log,
}
"""name and what takes the bytes"""
