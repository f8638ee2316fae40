"""Whether what was given as a master answers at its address, asked before anything is started.

Rules: Spark itself tries for a minute or more, and then ends in the middle of something else; a TCP
connection says the same at once. What is no master at all is refused before that, by the rules of
spark-submit. `spark://` URLs name a standalone master or several (those of a standby), of which one
is enough; `sc://` URLs name a Spark Connect server. Whatever else is given is left to Spark.
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
"""Begins the URL of a Spark Connect server."""
CONNECT_PORT: Final = 15002
"""Port of a Spark Connect server whose URL has none."""
_COUNT = "(?:[1-9][0-9]*|[*])"
_FORMS: Final = re.compile(
    rf"yarn|local(?:\[{_COUNT}(?:\s*,\s*[0-9]+)?\])?"
    r"|local-cluster\[(?:\s*[0-9]+\s*,){2}\s*[0-9]+\s*\]|(?:spark|sc|k8s)://.*"
)
"""All that is a master, for us and for `org.apache.spark.deploy.SparkSubmit`."""
_PATIENCE = 2.0
"""Seconds for a connection to one master."""
_HINT = "check --master; without it, the report runs on this machine"


def why_no_master(master: str) -> str:
    """Return what is wrong with a text that is no master; empty: it may be one."""
    if _FORMS.fullmatch(master):
        return ""
    return (
        f"{shown_master(master)!r} is no Spark master; there are local[*], local[N],"
        f" spark://HOST:PORT, yarn, k8s://HOST:PORT and sc://HOST:PORT"
    )


def check_master(master: str) -> None:
    """Raise ReportError where none of the masters that a URL names can be reached."""
    if wrong := why_no_master(master):
        raise ReportError(wrong, _HINT)
    reasons = []
    for host, port in _addresses_of(master):
        try:
            socket.create_connection((host, port), timeout=_PATIENCE).close()
        except (OSError, UnicodeError) as error:  # UnicodeError: no name that can be looked up
            reasons.append(_reason_of(error))
        else:
            return
    if reasons:
        what = "Spark Connect server" if master.startswith(CONNECT) else "Spark master"
        said = ", ".join(dict.fromkeys(reasons))
        raise ReportError(f"the {what} {shown_master(master)} cannot be reached: {said}", _HINT)


def shown_master(master: str) -> str:
    """Return a master as it may be shown: tokens and headers follow the address of a server."""
    if not master.startswith(CONNECT):
        return master
    return CONNECT + _server_of(master)


def _server_of(url: str) -> str:
    """Return the `host:port` of the URL of a server, without what stands before and after it."""
    return re.split("[/;?#]", url.removeprefix(CONNECT))[0].rpartition("@")[2]


def _addresses_of(master: str) -> Iterator[tuple[str, int]]:
    """Yield the addresses that a URL names; raise ReportError where one is none."""
    if master.startswith(CONNECT):
        server = _server_of(master)
        named = split_endpoint(server) or split_endpoint(f"{server}:{CONNECT_PORT}")
        if named is None or (":" in named[0] and not server.startswith("[")):
            raise ReportError(
                f"{shown_master(master)} is not an address of a Spark Connect server",
                f"it is sc://HOST:PORT, the port is {CONNECT_PORT} where there is none",
            )
        yield named
    elif master.startswith(_STANDALONE):
        for address in master.removeprefix(_STANDALONE).split(","):
            parts = split_endpoint(address)
            if parts is None:
                raise ReportError(
                    f"{master} is not an address of a Spark master",
                    "it is spark://HOST:PORT, the port is 7077",
                )
            yield parts


def _reason_of(error: Exception) -> str:
    """Return what the system says, in small letters and without numbers."""
    if isinstance(error, TimeoutError):
        return f"no answer in {_PATIENCE:g} s"
    text = getattr(error, "strerror", None) or "no such host"
    return str(text)[:1].lower() + str(text)[1:]
