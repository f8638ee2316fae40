"""The TLS key log of a run."""

from __future__ import annotations

import os

from ..findings import Finding, FindingKind
from ..tcp.source import CaptureError
from ..tls.key_log import KeyLog


def key_log_named(path: str | None) -> str:
    """Return the key log named by the user, or that of SSLKEYLOGFILE unless missing or empty.

    The variable is often set for another program, so a missing file is no error.
    """
    if path:
        return path
    usual = os.environ.get("SSLKEYLOGFILE", "")
    return usual if usual and os.path.isfile(usual) and os.path.getsize(usual) else ""


def secrets_of(path: str, *, growing: bool) -> KeyLog:
    """Return the secrets of a key log; empty if `path` is empty.

    `growing`: it is still being written and may not exist yet. Raise CaptureError if it is
    unreadable, or complete without secrets.
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


def left_out_of(secrets: KeyLog) -> list[Finding]:
    """Return a finding if some secrets of the key log were left out."""
    count = secrets.left_out
    detail = f"{count} secrets of the key log: more than can be held"
    kind = FindingKind.TLS_SECRET_MISSING
    return [Finding(kind, detail, 0, 0, -1, -1)] if count else []
