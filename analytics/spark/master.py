"""Check that the master's address responds before anything is started.

Rules: Spark itself retries for a minute or more and then fails in the middle of something else; a
TCP connection gives the same result at once. An invalid master is refused first, by the rules of
spark-submit. `spark://` URLs name one standalone master or several (with standby), of which one is
enough; `sc://` URLs name a Spark Connect server. All other values are left to Spark.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import Final

from dissectors.endpoint import split_endpoint

from ..errors import ReportError

_STANDALONE: Final = "spark://"
CONNECT: Final = "sc://"
"""URL prefix of a Spark Connect server."""
CONNECT_PORT: Final = 15002
"""Default port of a Spark Connect server."""
_COUNT = "(?:[1-9][0-9]*|[*])"
_FORMS: Final = re.compile(
    rf"yarn|local(?:\[{_COUNT}(?:\s*,\s*[0-9]+)?\])?"
    r"|local-cluster\[(?:\s*[0-9]+\s*,){2}\s*[0-9]+\s*\]|(?:spark|sc|k8s)://.*"
)
"""Valid masters, for us and for `org.apache.spark.deploy.SparkSubmit`."""
_PATIENCE = 2.0
"""Timeout in seconds of a connection to one master."""
_HINT = "check --master, or omit it to run on this machine"


def why_no_master(master: str) -> str:
    """Return the error of an invalid master, or an empty text if it may be valid."""
    if _FORMS.fullmatch(master):
        return ""
    return (
        f"{shown_master(master)!r} is not a Spark master; use local[*], local[N],"
        f" spark://HOST:PORT, yarn, k8s://HOST:PORT, or sc://HOST:PORT"
    )


def check_master(master: str) -> None:
    """Raise ReportError if none of a URL's masters can be reached."""
    if wrong := why_no_master(master):
        raise ReportError(wrong, _HINT)
    reasons = []
    for host, port in _addresses_of(master):
        try:
            socket.create_connection((host, port), timeout=_PATIENCE).close()
        except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name
            reasons.append(_reason_of(error))
        else:
            return
    if reasons:
        kind = "Spark Connect server" if master.startswith(CONNECT) else "Spark master"
        errors = ", ".join(dict.fromkeys(reasons))
        raise ReportError(f"the {kind} {shown_master(master)} cannot be reached: {errors}", _HINT)


def shown_master(master: str) -> str:
    """Return a printable master, without the tokens and headers after a server's address."""
    if not master.startswith(CONNECT):
        return master
    return CONNECT + _server_of(master)


def _server_of(url: str) -> str:
    """Return the `host:port` of a server's URL."""
    # What precedes an @ may be a password, so it must not appear in a message.
    return re.split("[/;?#]", url.removeprefix(CONNECT))[0].rpartition("@")[2]


def _addresses_of(master: str) -> Iterator[tuple[str, int]]:
    """Yield the addresses in a URL; raise ReportError if one is invalid."""
    if master.startswith(CONNECT):
        server = _server_of(master)
        named = split_endpoint(server) or split_endpoint(f"{server}:{CONNECT_PORT}")
        if named is None or (":" in named[0] and not server.startswith("[")):
            raise ReportError(
                f"{shown_master(master)} is not an address of a Spark Connect server",
                f"use sc://HOST:PORT (default port: {CONNECT_PORT})",
            )
        yield named
    elif master.startswith(_STANDALONE):
        for address in master.removeprefix(_STANDALONE).split(","):
            parts = split_endpoint(address)
            if parts is None:
                raise ReportError(
                    f"{master} is not an address of a Spark master",
                    "use spark://HOST:PORT (usual port: 7077)",
                )
            yield parts


def _reason_of(error: Exception) -> str:
    """Return the system's error text in lower case, without numbers."""
    if isinstance(error, TimeoutError):
        return f"no response in {_PATIENCE:g} s"
    text = getattr(error, "strerror", None) or "no such host"
    return str(text)[:1].lower() + str(text)[1:]
