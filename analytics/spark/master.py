"""Whether a standalone Spark master answers at its address, asked before Java is started.

Rules: Spark itself tries for a minute, and then ends in the middle of something else; a TCP
connection says the same at once. Only `spark://` URLs name an address; of several masters (those of
a standby) one is enough. Whatever else is given as a master is left to Spark.
"""

from __future__ import annotations

import socket

from dissectors.endpoint import split_endpoint

from ..errors import ReportError

_SCHEME = "spark://"
_PATIENCE = 2.0
"""Seconds for a connection to one master."""
_HINT = "check --master; without it, the report runs on this machine"


def check_master(master: str) -> None:
    """Raise ReportError where none of the masters that a URL names can be reached."""
    if not master.startswith(_SCHEME):
        return
    reasons = []
    for address in master.removeprefix(_SCHEME).split(","):
        host, port = _address_of(address, master)
        try:
            socket.create_connection((host, port), timeout=_PATIENCE).close()
        except (OSError, UnicodeError) as error:  # UnicodeError: no name that can be looked up
            reasons.append(_reason_of(error))
        else:
            return
    said = ", ".join(dict.fromkeys(reasons))
    raise ReportError(f"the Spark master {master} cannot be reached: {said}", _HINT)


def _address_of(text: str, master: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[host]:port`."""
    parts = split_endpoint(text)
    if parts is None:
        raise ReportError(
            f"{master} is not an address of a Spark master",
            "it is spark://HOST:PORT, the port is 7077",
        )
    return parts


def _reason_of(error: Exception) -> str:
    """Return what the system says, in small letters and without numbers."""
    if isinstance(error, TimeoutError):
        return f"no answer in {_PATIENCE:g} s"
    text = getattr(error, "strerror", None) or "no such host"
    return str(text)[:1].lower() + str(text)[1:]
