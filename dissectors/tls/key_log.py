"""Secrets of TLS sessions: the NSS key log format, in a file or in blocks of a capture.

Rules: a line that is not a secret is ignored. Secrets are stored by client random, TLS 1.2 master
secrets also by session id; they are neither printed nor written. Their number is bounded. A growing
file is read further when a secret is missing. draft-ietf-tls-keylogfile.
"""

from __future__ import annotations

import os
from typing import Final, final

from ..foreign import hex_bytes_of

MASTER: Final = "CLIENT_RANDOM"
"""master secret of TLS 1.2 and below"""
MASTER_OF_SESSION: Final = "RSA"
"""master secret by session id, as Java agents write it: `RSA Session-ID:… Master-Key:…`"""
PREMASTER: Final = "PMS_CLIENT_RANDOM"
"""pre-master secret"""
PREMASTER_BY_RSA: Final = "RSA-premaster"
"""pre-master secret by the first bytes of its ciphertext, in old logs: `RSA … …`"""
CLIENT_EARLY: Final = "CLIENT_EARLY_TRAFFIC_SECRET"
CLIENT_HANDSHAKE: Final = "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
SERVER_HANDSHAKE: Final = "SERVER_HANDSHAKE_TRAFFIC_SECRET"
CLIENT_TRAFFIC: Final = "CLIENT_TRAFFIC_SECRET_0"
SERVER_TRAFFIC: Final = "SERVER_TRAFFIC_SECRET_0"

MAX_SECRETS: Final = 2_000_000
"""maximum secrets: some 150 bytes each"""
MAX_LINE: Final = 512
"""maximum bytes of a line with a secret"""
READ_BYTES: Final = 1024 * 1024
"""bytes of a file read at a time"""
_RANDOM_DIGITS: Final = 64
ENCRYPTED_BYTES: Final = 8
"""first bytes of an encrypted pre-master secret, which identify it"""
_SESSION: Final = b"Session-ID:"
_SESSION_MASTER: Final = b"Master-Key:"
_SECRETS: Final = (32, 48)
"""valid bytes of a secret: those of the hash of a suite, or of a master secret"""
_LABELS: Final = {
    label.encode(): bytes((number,))
    for number, label in enumerate(
        (
            MASTER,
            MASTER_OF_SESSION,
            PREMASTER,
            PREMASTER_BY_RSA,
            CLIENT_EARLY,
            CLIENT_HANDSHAKE,
            SERVER_HANDSHAKE,
            CLIENT_TRAFFIC,
            SERVER_TRAFFIC,
        )
    )
}
_PREMASTERS: Final = (_LABELS[PREMASTER.encode()], _LABELS[PREMASTER_BY_RSA.encode()])
MAX_SESSIONS: Final = 100_000
"""TLS 1.2 sessions remembered for resumption in another connection"""


@final
class KeyLog:
    """Secrets known to a run."""

    def __init__(self, path: str = "", *, growing: bool = False) -> None:
        """Load secrets from a file if `path` is not empty; raise OSError if it cannot be read,
        unless it is `growing`: then it may appear later, and is read again when needed.
        """
        self.left_out = 0
        """secrets dropped beyond the maximum"""
        self.has_premasters = False
        """pre-master secrets are known, which need whole handshakes"""
        self._secrets: dict[bytes, bytes] = {}
        self._sessions: dict[bytes, bytes] = {}
        self._path = path
        self._growing = growing
        self._in_capture = False
        self._offset = 0
        self._rest = b""
        if path:
            try:
                self._read_on()
            except OSError:
                if not growing:
                    raise

    def __len__(self) -> int:
        return len(self._secrets)

    @property
    def wanted(self) -> bool:
        """Whether anything can be decrypted: secrets are known or may still arrive."""
        return self.may_grow or bool(self._secrets)

    @property
    def may_grow(self) -> bool:
        """Whether missing secrets may still arrive."""
        return (self._growing and bool(self._path)) or self._in_capture

    def find(self, label: str, session: bytes) -> bytes | None:
        """Return a secret of a session, or None if unknown.

        `session` is the client random; for `MASTER_OF_SESSION` the session id.
        """
        if not session:
            return None
        key = _LABELS[label.encode()] + session
        secret = self._secrets.get(key)
        if secret is None and self._growing and self._path:
            try:
                self._read_on()
            except OSError:
                return None
            secret = self._secrets.get(key)
        return secret

    def remember(self, session: bytes, master: bytes) -> None:
        """Remember the master secret of a session for its resumption."""
        if len(self._sessions) >= MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        self._sessions[session] = master

    def remembered(self, session: bytes) -> bytes | None:
        """Return the master secret of an earlier session."""
        return self._sessions.get(session)

    def add_from_capture(self, text: bytes) -> None:
        """Add secrets of a capture, which may contain more after the data that they decrypt."""
        self._in_capture = True
        self.add(text)

    def add(self, text: bytes) -> None:
        """Add the secrets of a whole key log."""
        for line in text.split(b"\n"):
            self._take(line)

    def _read_on(self) -> None:
        """Read new complete lines of the file."""
        with open(self._path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == self._offset:
                return
            if size < self._offset:  # rewritten
                self._offset, self._rest = 0, b""
            file.seek(self._offset)
            while data := file.read(READ_BYTES):
                self._offset += len(data)
                *lines, rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self._take(line)
                self._rest = rest[: MAX_LINE + 1]  # so much proves that the line is too long
        if not self._growing:  # the last line of a finished file needs no line end
            self._take(self._rest)

    def _take(self, line: bytes) -> None:
        """Parse a line: label, client random or session id, secret."""
        if len(line) > MAX_LINE:
            return
        parts = line.split()
        if len(parts) != 3:
            return
        first, session_text, secret_text = parts
        label = _LABELS.get(first)
        if label is None:
            return
        if session_text.startswith(_SESSION) and secret_text.startswith(_SESSION_MASTER):
            session_text = session_text.removeprefix(_SESSION)
            secret_text = secret_text.removeprefix(_SESSION_MASTER)
        elif first == MASTER_OF_SESSION.encode() and len(session_text) == 2 * ENCRYPTED_BYTES:
            label = _LABELS[PREMASTER_BY_RSA.encode()]
        elif len(session_text) != _RANDOM_DIGITS:
            return
        session = hex_bytes_of(session_text.decode("ascii", "replace"))
        secret = hex_bytes_of(secret_text.decode("ascii", "replace"))
        if not session or not secret or len(secret) not in _SECRETS:
            return
        self.has_premasters = self.has_premasters or label in _PREMASTERS
        key = label + session
        if len(self._secrets) >= MAX_SECRETS and key not in self._secrets:
            self.left_out += 1
        else:
            self._secrets[key] = secret
