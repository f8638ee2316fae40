"""Two ends that speak TLS in memory: ciphertext for captures, with the key log that opens it."""

from __future__ import annotations

import contextlib
import functools
import shutil
import ssl
import subprocess
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path

import pytest

from .talk import Talk

TLS_1_2 = ssl.TLSVersion.TLSv1_2
TLS_1_3 = ssl.TLSVersion.TLSv1_3
NAME = "broker.example"


NO_TICKETS = int(ssl.OP_NO_TICKET)
NO_EXTENDED_MASTER, MAC_INSIDE = 1, 1 << 19
"""OpenSSL's options that Python has no names for: the master secret is made of the random numbers
alone, and with CBC the MAC is encrypted
"""
ELLIPTIC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("-newkey", "rsa:2048")


@functools.cache
def certificate(kind: tuple[str, ...] = ELLIPTIC) -> tuple[bytes, bytes]:
    """A certificate for `NAME` and its key, made once for a run."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    with tempfile.TemporaryDirectory() as folder:
        key, cert = Path(folder, "key.pem"), Path(folder, "cert.pem")
        subprocess.run(
            [
                *("openssl", "req", "-x509", *kind, "-nodes", "-days", "2"),
                *("-subj", f"/CN={NAME}"),
                *("-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(cert)),
            ],
            check=True,
            capture_output=True,
        )
        return cert.read_bytes(), key.read_bytes()


class Secured:
    """A session: what each end says is encrypted into `said`, in the order of the wire."""

    def __init__(
        self,
        version: ssl.TLSVersion = TLS_1_3,
        *,
        suite: str = "",
        protocols: Iterable[str] = (),
        again: Secured | None = None,
        options: int = 0,
        kind: tuple[str, ...] = ELLIPTIC,
    ) -> None:
        """`again`: the session goes on where that one was, which must outlive it.

        `options`: those of OpenSSL, for both ends; `kind`: of the server's key.
        """
        pytest.importorskip("cryptography")
        self.said: list[tuple[int, bytes]] = []
        """who (0 the client) and ciphertext"""
        if again is None:
            folder = tempfile.mkdtemp()
            weakref.finalize(self, shutil.rmtree, folder)
            self._log = Path(folder, "keys.log")
            self._contexts = self._make(version, suite, list(protocols), options, kind)
        else:
            self._log, self._contexts = again._log, again._contexts
        self._bios = tuple((ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2))
        client, server = self._contexts
        self.ends = (
            client.wrap_bio(
                *self._bios[0],
                server_hostname=NAME,
                session=None if again is None else again.ends[0].session,
            ),
            server.wrap_bio(*self._bios[1], server_side=True),
        )
        done = [False, False]
        while not all(done):
            for side in (0, 1):
                try:
                    self.ends[side].do_handshake()
                    done[side] = True
                except ssl.SSLWantReadError:
                    pass
                self._carry(side)
        self._read(0)  # tickets of TLS 1.3

    def _make(
        self,
        version: ssl.TLSVersion,
        suite: str,
        protocols: list[str],
        options: int,
        kind: tuple[str, ...],
    ) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        cert, key = certificate(kind)
        path = self._log.with_name("both.pem")
        path.write_bytes(cert + key)
        client = ssl.create_default_context(cadata=cert.decode())
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(path)
        for context in (client, server):
            context.minimum_version = context.maximum_version = version
            context.options |= options
            if suite:
                context.set_ciphers(suite)
            if protocols:
                context.set_alpn_protocols(protocols)
        client.keylog_filename = str(self._log)
        return client, server

    @property
    def key_log(self) -> bytes:
        """The secrets of this session and those before it."""
        return self._log.read_bytes()

    @property
    def suite(self) -> str:
        """What was agreed on, in OpenSSL's words."""
        found = self.ends[0].cipher()
        return found[0] if found else ""

    def say(self, side: int, data: bytes) -> Secured:
        """Let an end say something, and the other one read it."""
        self.ends[side].write(data)
        self._carry(side)
        self._read(1 - side)
        return self

    def close(self, side: int) -> Secured:
        """Let an end say that it is done."""
        with contextlib.suppress(ssl.SSLError):
            self.ends[side].unwrap()
        self._carry(side)
        return self

    def stream(self, side: int) -> bytes:
        """All ciphertext of an end."""
        return b"".join(data for who, data in self.said if who == side)

    def talk(self, **form: int) -> Talk:
        """The session as a TCP connection."""
        talk = Talk(**form).open()  # type: ignore[arg-type]
        for side, data in self.said:
            talk.say(side, data)
        return talk

    def _carry(self, side: int) -> None:
        data = self._bios[side][1].read()
        if data:
            self.said.append((side, data))
            self._bios[1 - side][0].write(data)

    def _read(self, side: int) -> None:
        try:
            while self.ends[side].read(1 << 20):
                pass
        except ssl.SSLWantReadError:
            pass
