"""Sessions of OpenSSL on both ends: what happens in them beside data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dissectors.findings import FindingKind
from dissectors.tls.handshake import (
    CLIENT_HELLO,
    CLIENT_KEY,
    SERVER_HELLO,
    SERVER_HELLO_DONE,
    ClientHello,
    HandshakeMessage,
    ServerHello,
)
from dissectors.tls.key_log import KeyLog
from dissectors.tls.key_schedule import MAX_KEPT, MasterFinder
from dissectors.tls.session import CertificateChain, ServerExtensions, TlsAlert, TlsSession
from dissectors.tls.suites import SUITES
from tests.traffic.openssl import BOTH_UPDATE, HANDSHAKE_AGAIN, KEY_UPDATE, Relayed

pytestmark = pytest.mark.slow

TALK = [(0, b"hello\n"), (1, b"olleh\n"), (0, b"world\n"), (1, b"dlrow\n")]


def played(
    said: Sequence[tuple[int, bytes]], key_log: bytes
) -> tuple[TlsSession, list[tuple[int, bytes]]]:
    """A session after all that was said, and its plaintext."""
    secrets = KeyLog()
    secrets.add(key_log)
    session = TlsSession(secrets)
    found = []
    for number, (side, data) in enumerate(said):
        found += session.receive(side, data, number, number)
    found += session.give_up()
    return session, [(one.side, one.data) for one in found]


def without(key_log: bytes, label: bytes) -> bytes:
    return b"\n".join(line for line in key_log.splitlines() if label not in line)


@pytest.mark.parametrize(
    "suite", ["AES_128_GCM_SHA256", "CHACHA20_POLY1305_SHA256", "AES_128_CCM_8_SHA256"]
)
def test_suites_of_tls_1_3(suite: str, tmp_path: Path) -> None:
    chosen = ("-ciphersuites", f"TLS_{suite}")
    with Relayed(tmp_path, "-rev", *chosen) as server:
        said = server.session(*chosen, says=[b"hello\n", b"world\n"])
    session, plain = played(said, server.key_log)
    assert plain == TALK
    assert session.findings == []


@pytest.mark.parametrize(
    ("server_options", "client_options", "between"),
    [
        ((), (), [KEY_UPDATE, BOTH_UPDATE]),
        (("-groups", "P-384"), ("-groups", "X25519:P-384"), []),
        (("-client_renegotiation",), ("-tls1_2",), [HANDSHAKE_AGAIN]),
    ],
    ids=["key updates", "the hello was asked for again", "a second handshake in the first one"],
)
def test_keys_that_change(
    server_options: tuple[str, ...],
    client_options: tuple[str, ...],
    between: list[bytes],
    tmp_path: Path,
) -> None:
    with Relayed(tmp_path, "-rev", *server_options) as server:
        said = server.session(*client_options, says=[b"hello\n", *between, b"world\n"])
    session, plain = played(said, server.key_log)
    assert plain == TALK
    assert session.findings == []


def test_a_client_with_a_certificate(tmp_path: Path) -> None:
    own = ("-cert", "both.pem", "-key", "both.pem")
    with Relayed(tmp_path, "-rev", "-verify", "1") as server:
        said = server.session(*own, says=[b"hello\n", b"world\n"])
    session, plain = played(said, server.key_log)
    assert plain == TALK
    chains = [one for one in session.events if isinstance(one, CertificateChain)]
    assert [one.of_client for one in chains] == [False, True]


def test_data_before_the_handshake_is_done(tmp_path: Path) -> None:
    (tmp_path / "early.txt").write_bytes(b"early\n")
    with Relayed(tmp_path, "-tls1_3", "-early_data", "-no_anti_replay") as server:
        server.session("-sess_out", "session.pem", says=[KEY_UPDATE])
        early = ("-sess_in", "session.pem", "-early_data", "early.txt")
        said = server.session(*early, says=[KEY_UPDATE])
    session, plain = played(said, server.key_log)
    assert plain == [(0, b"early\n")]
    assert session.findings == []
    assert ServerExtensions("", True) in session.events
    session, plain = played(said, without(server.key_log, b"CLIENT_EARLY"))
    assert plain == [(0, b"")]
    assert [one.kind for one in session.findings] == [FindingKind.TLS_SECRET_MISSING]


def test_early_data_that_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "early.txt").write_bytes(b"early\n")
    with Relayed(tmp_path, "-tls1_3", "-early_data") as server:
        server.session("-sess_out", "session.pem", says=[KEY_UPDATE])
        early = ("-sess_in", "session.pem", "-early_data", "early.txt")
        said = server.session(*early, says=[KEY_UPDATE])
    session, plain = played(said, server.key_log)
    assert plain == []
    assert session.findings == []
    assert ServerExtensions("", False) in session.events


def test_secrets_of_data_alone_are_enough(tmp_path: Path) -> None:
    with Relayed(tmp_path, "-rev") as server:
        said = server.session(says=[b"hello\n", b"world\n"])
    session, plain = played(said, without(server.key_log, b"HANDSHAKE_TRAFFIC"))
    assert plain == TALK
    assert session.findings == []


def test_what_is_not_decrypted_is_named(tmp_path: Path) -> None:
    only = ("-tls1_2", "-cipher", "ECDHE-ECDSA-ARIA128-GCM-SHA256")
    with Relayed(tmp_path, "-rev", *only) as server:
        said = server.session(*only, says=[b"hello\n"])
    session, plain = played(said, server.key_log)
    assert plain == [(0, b""), (1, b"")]
    assert [(one.kind, one.detail) for one in session.findings] == [
        (FindingKind.TLS_UNSUPPORTED, "TLS 1.2 with 0xc05c")
    ]


def test_an_alert_that_is_encrypted(tmp_path: Path) -> None:
    with Relayed(tmp_path, "-rev") as server:
        said = server.session("-verify_return_error", says=[])
    session, plain = played(said, server.key_log)
    assert plain == []
    assert any(isinstance(one, TlsAlert) for one in session.events)


def test_a_hello_that_is_too_long_to_be_kept_gives_no_secret() -> None:
    """The extended master secret needs all messages of the handshake."""
    secrets = KeyLog()
    secrets.add_from_capture(b"PMS_CLIENT_RANDOM " + b"00" * 32 + b" " + b"00" * 48)
    finder = MasterFinder(secrets, b"")
    finder.note(True, HandshakeMessage(CLIENT_HELLO, bytes(MAX_KEPT + 1)))
    for kind in (SERVER_HELLO, SERVER_HELLO_DONE):
        finder.note(False, HandshakeMessage(kind, bytes(40)))
    finder.note(True, HandshakeMessage(CLIENT_KEY, bytes(100)))
    suite, tls_1_2 = 0xC02F, 0x0303
    client = ClientHello(bytes(32), b"", (tls_1_2,), "", (), False)
    server = ServerHello(bytes(32), b"s", tls_1_2, suite, "", False, extended=True)
    assert finder.find(client, server, SUITES[suite]) is None
