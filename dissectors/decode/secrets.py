"""The key log that a run decrypts TLS by, as the user names it."""

from __future__ import annotations

import os

from ..expert import ExpertInfo, ExpertKind
from ..tcp.source import CaptureError
from ..tls.key_log import KeyLog


def key_log_named(path: str | None) -> str:
    """Return the file that a user names; else the one of SSLKEYLOGFILE, where it has something.

    That variable is often set for another program, so what it names may be missing or empty.
    """
    if path:
        return path
    usual = os.environ.get("SSLKEYLOGFILE", "")
    return usual if usual and os.path.isfile(usual) and os.path.getsize(usual) else ""


def secrets_of(path: str, *, growing: bool) -> KeyLog:
    """Return the secrets of a key log; none where `path` is empty.

    `growing`: it is still being written and may come later. Raise CaptureError where it cannot be
    read, and where it is complete and has no secrets.
    """
    try:
        secrets = KeyLog(path, growing=growing)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CaptureError(path, f"the key log cannot be read: {reason}") from None
    if path and not secrets.wanted:
        hint = "a line is CLIENT_RANDOM or another label, 64 hexadecimal digits, the secret"
        raise CaptureError(path, "not a TLS key log: no secrets found", 0, hint)
    return secrets


def left_out_of(secrets: KeyLog) -> list[ExpertInfo]:
    """Return a finding where not all secrets of the key log were taken."""
    count = secrets.left_out
    detail = f"{count} secrets of the key log: more than can be held"
    kind = ExpertKind.TLS_SECRET_MISSING
    return [ExpertInfo(kind, detail, 0, 0, -1, -1)] if count else []
