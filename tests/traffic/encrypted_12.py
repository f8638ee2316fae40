"""Sessions of TLS 1.2 that need more than a line of their own in the key log."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from .encrypted import (
    MAC_INSIDE,
    NO_EXTENDED_MASTER,
    NO_TICKETS,
    RSA,
    TLS_1_2,
    Secured,
    certificate,
)
from .talk import CLIENT, End, Talk, Tcp, retimed

CLIENT_KEY_EXCHANGE = 16
Filled = Callable[[Secured], Secured]


class Opened(NamedTuple):
    """Connections one after the other, and a key log that opens them."""

    sessions: list[Secured]
    key_log: bytes


def _cbc(suite: str, options: int, filled: Filled) -> Opened:
    one = filled(Secured(TLS_1_2, suite=suite, options=options))
    assert one.suite == suite
    return Opened([one], one.key_log)


def _goes_on(options: int, filled: Filled) -> Opened:
    """The second connection has no line."""
    first = Secured(TLS_1_2, options=options).say(0, b"x").say(1, b"y")
    line = first.key_log
    second = filled(Secured(again=first))
    assert second.ends[0].session_reused
    return Opened([first, second], line)


def _premaster(label: str, options: int, filled: Filled) -> Opened:
    """The key log has what the master secret is made of."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    one = filled(Secured(TLS_1_2, suite="AES128-GCM-SHA256", options=options, kind=RSA))
    key = load_pem_private_key(certificate(RSA)[1], None)
    assert isinstance(key, RSAPrivateKey)
    stream = one.stream(0)
    encrypted = _client_key_exchange(stream)[2:]
    premaster = key.decrypt(encrypted, PKCS1v15())
    name = encrypted[:8] if label == "RSA" else stream[11:43]  # of the hello in the first record
    return Opened([one], f"{label} {name.hex()} {premaster.hex()}\n".encode())


def _client_key_exchange(stream: bytes) -> bytes:
    """The content of that message, which is alone in its record."""
    at = 0
    while stream[at + 5] != CLIENT_KEY_EXCHANGE:
        at += 5 + int.from_bytes(stream[at + 3 : at + 5])
    return stream[at + 9 : at + 5 + int.from_bytes(stream[at + 3 : at + 5])]


def apart(sessions: Sequence[Secured]) -> list[Tcp]:
    """Their packets, each session in a connection of its own."""
    found: list[Tcp] = []
    for number, one in enumerate(sessions):
        talk = Talk(End(CLIENT.address, CLIENT.port + number)).open()
        for side, data in one.said:
            talk.say(side, data)
        found += talk.close().segments
    return retimed(found)


_SUITES = (
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-ECDSA-AES256-SHA384",
)
OPENED: dict[str, Callable[[Filled], Opened]] = {
    **{
        f"{suite}, mac {where}": partial(_cbc, suite, options)
        for suite, (where, options) in itertools.product(
            _SUITES, (("behind", 0), ("inside", MAC_INSIDE))
        )
    },
    "goes on by its id": partial(_goes_on, NO_TICKETS),
    "goes on by a ticket": partial(_goes_on, 0),
    **{
        f"{label} premaster, master of {of}": partial(_premaster, label, options)
        for label, (of, options) in itertools.product(
            ("RSA", "PMS_CLIENT_RANDOM"), (("the handshake", 0), ("numbers", NO_EXTENDED_MASTER))
        )
    },
}
"""by name"""
