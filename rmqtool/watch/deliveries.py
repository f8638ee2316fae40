"""Deliver events to webhooks and syslog without delaying the capture.

Rules: a thread delivers from a bounded queue, which drops its oldest events. Failed deliveries are
retried, then dropped and counted. Only the host that the user named is contacted.
"""

from __future__ import annotations

import base64
import http.client
import logging
import logging.handlers
import os
import string
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Self
from urllib.parse import quote, unquote, urlsplit

import msgspec

from dissectors.rows.tables import encodable_value

from ..version import VERSION
from .notices import WatchEvent

MOST_WAITING: Final = 1000
"""events that wait for delivery"""
TRIES: Final = 5
FIRST_PAUSE: Final = 1.0
"""seconds before the first retry; doubled for each further retry"""
TIMEOUT: Final = 5.0
"""timeout in seconds for connect, send, and response"""
FLUSH: Final = 10.0
"""seconds that `close` waits for pending deliveries"""
MOST_READ: Final = 65536
"""bytes read of a response"""
MOST_SYSLOG: Final = 1000
"""characters of a message for syslog: all of them take 1,024 bytes"""


class Target(NamedTuple):
    """A parsed URL."""

    is_tls: bool
    host: str
    port: int | None
    path: str
    headers: dict[str, str]
    """Authorization header from the user and password in the URL"""

    @classmethod
    def of(cls, url: str) -> Self | None:
        """Return the parts of a URL, or None if it is not an HTTP URL."""
        try:
            parts = urlsplit(url)
            port = parts.port
            (parts.hostname or "").encode("idna")  # as the socket does: it fails for a long label
        except ValueError:
            return None
        # A line end in the URL would end the line of the request.
        if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable():
            return None
        headers = {}
        if parts.username is not None:
            account = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(account.encode()).decode()}"
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        path = quote(path, string.punctuation)  # a request line is ASCII without blanks
        return cls(parts.scheme == "https", parts.hostname, port, path, headers)

    @property
    def shown(self) -> str:
        """The host, without credentials, path, or query."""
        port = f":{self.port}" if self.port is not None else ""
        return f"{'https' if self.is_tls else 'http'}://{self.host}{port}"


class Courier:
    """Delivers events in a separate thread."""

    def __init__(
        self, name: str, deliver: Callable[[WatchEvent], None], pause: float = FIRST_PAUSE
    ):
        """`deliver` raises an exception on failure; `pause` in seconds."""
        self.name = name
        """name of the destination in metrics"""
        self.delivered = 0
        self.retries = 0
        self.lost = 0
        """events dropped after retries or because the queue was full"""
        self.problem = ""
        """reason why the last attempt failed; empty: it succeeded"""
        self._deliver = deliver
        self._pause = pause
        self._waiting: deque[WatchEvent] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of queued events."""
        return len(self._waiting)

    def put(self, event: WatchEvent) -> None:
        """Queue an event for delivery."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(event)
            self._changed.notify()

    def close(self, patience: float = FLUSH) -> None:
        """Deliver the queued events within a time limit in seconds; drop the rest."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(patience)
        with self._changed:
            self.lost += len(self._waiting)
            self._waiting.clear()

    def _run(self) -> None:
        while (event := self._next()) is not None:
            self._try(event)

    def _next(self) -> WatchEvent | None:
        with self._changed:
            while not self._waiting:
                if self._stopping:
                    return None
                self._changed.wait()
            return self._waiting.popleft()

    def _try(self, event: WatchEvent) -> None:
        for number in range(TRIES):
            if number:
                self.retries += 1
                with self._changed:
                    if not self._stopping:  # at the end there is no time for pauses
                        self._changed.wait_for(
                            lambda: self._stopping, self._pause * 2 ** (number - 1)
                        )
            try:
                self._deliver(event)
            except Exception as error:  # also of a library: the thread goes on with the next event
                self.problem = str(error) or type(error).__name__
                continue
            self.delivered += 1
            self.problem = ""
            return
        self.lost += 1


def webhook(url: str, pause: float = FIRST_PAUSE) -> Courier:
    """Return a courier that POSTs events to a valid URL; TLS is verified."""
    target = Target.of(url)
    assert target is not None
    headers = {"Content-Type": "application/json", "User-Agent": f"rmqtool/{VERSION}"}

    # Named, because http.client takes the end of an IPv6 address for a missing port.
    port = target.port or (443 if target.is_tls else 80)

    def post(event: WatchEvent) -> None:
        # http.client follows no redirects and knows no proxies.
        connect = http.client.HTTPSConnection if target.is_tls else http.client.HTTPConnection
        connection = connect(target.host, port, timeout=TIMEOUT)
        try:
            body = msgspec.json.encode(encodable_value(dict(event.value)))
            connection.request("POST", target.path, body, headers | target.headers)
            response = connection.getresponse()
            response.read(MOST_READ)
        finally:
            connection.close()
        if not 200 <= response.status < 300:
            raise OSError(f"HTTP status {response.status}")

    return Courier("webhook", post, pause)


class _Syslog(logging.handlers.SysLogHandler):
    """A syslog handler that raises errors instead of printing them."""

    def handleError(self, _record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            raise error

    def mapPriority(self, levelName: str) -> str:
        # The base class maps every name that is not a Python level to `warning`.
        return levelName


def syslog(address: str | tuple[str, int]) -> Courier:
    """Return a courier that sends lines to a syslog socket, or to `host:port` over UDP."""
    handlers: list[_Syslog] = []

    def send(event: WatchEvent) -> None:
        if not handlers:  # here, so that a missing socket is a failed delivery, to be retried
            handlers.append(_Syslog(address, logging.handlers.SysLogHandler.LOG_DAEMON))
        for line in event.lines:
            text = f"rmqtool[{os.getpid()}]: {line[:MOST_SYSLOG]}"
            # severities are named like the levels of syslog
            record = logging.makeLogRecord({"msg": text, "levelname": str(event.severity)})
            handlers[0].emit(record)

    return Courier("syslog", send)
