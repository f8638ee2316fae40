"""Events to a webhook and to syslog: delivered, retried, given up, bounded; nowhere else."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from analytics.diagnosis.problem import ProblemSeverity
from rmqtool.watch import deliveries
from rmqtool.watch.deliveries import Courier, Target, webhook
from rmqtool.watch.notices import WatchEvent
from tests.patience import wait_for

from .test_replayed import SAMPLE, watched

pytestmark = pytest.mark.slow


class Hook:
    """A server that takes events."""

    def __init__(self, statuses: list[int], location: str = "") -> None:
        self.bodies: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.bodies.append(json.loads(body))
                hook.headers.append(dict(self.headers))
                hook.paths.append(self.path)
                self.send_response(statuses.pop(0) if statuses else 200)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@contextmanager
def hook(statuses: list[int] | None = None, location: str = "") -> Iterator[Hook]:
    one = Hook(statuses or [], location)
    try:
        yield one
    finally:
        one.server.shutdown()
        one.server.server_close()


def event(number: int) -> WatchEvent:
    return WatchEvent(ProblemSeverity.ERROR, [f"line {number}"], {"event": "x", "n": number})


def test_a_watch_posts_its_events() -> None:
    with hook() as one:
        status, events, err = watched(SAMPLE.read_bytes(), "--webhook", one.url)
    assert (status, err) == (0, "")
    assert [body["event"] for body in one.bodies] == [given["event"] for given in events]
    assert one.headers[0]["Content-Type"] == "application/json"
    assert "send-queue-timeout" in {body.get("rule") for body in one.bodies}


def test_what_fails_is_tried_again_and_counted() -> None:
    with hook([500, 503]) as one:
        courier = webhook(one.url.replace("http://", "http://me:secret@"), pause=0.01)
        courier.put(event(1))
        wait_for("delivered", lambda: courier.delivered == 1)
        courier.close()
    assert (courier.retries, courier.lost, len(one.bodies)) == (2, 0, 3)
    assert one.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0"


@pytest.mark.parametrize(("url", "port"), [("http://[::1]/x", 80), ("http://[::1]:8080/x", 8080)])
def test_an_ipv6_address_needs_no_port(
    url: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = []

    def refuse(connection: http.client.HTTPConnection) -> None:
        places.append((connection.host, connection.port))
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(http.client.HTTPConnection, "connect", refuse)
    courier = webhook(url, pause=0.001)
    courier.put(event(1))
    courier.close()
    assert set(places) == {("::1", port)}


def test_a_redirect_is_a_failure_and_not_followed() -> None:
    with hook() as elsewhere, hook([302] * 9, elsewhere.url) as one:
        courier = webhook(one.url, pause=0.01)
        courier.put(event(1))
        wait_for("given up", lambda: courier.lost == 1)
        courier.close()
        assert elsewhere.bodies == []
        assert len(one.bodies) == deliveries.TRIES
    assert courier.problem == "HTTP status 302"


def test_nobody_there_loses_the_oldest_and_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MOST_WAITING", 10)
    closed = threading.Event()

    def deliver(_: WatchEvent) -> None:
        closed.wait()
        raise ConnectionRefusedError("refused")

    courier = Courier("test", deliver, pause=0.001)
    for number in range(100):
        courier.put(event(number))
    assert courier.waiting <= 10
    assert courier.lost >= 89
    closed.set()
    courier.close()
    assert courier.delivered == 0
    wait_for("all given up", lambda: courier.lost == 100)


def test_a_path_of_any_characters_is_encoded() -> None:
    with hook() as one:
        courier = webhook(f"{one.url}/ä b?of=%C3%BC&to=ö")
        courier.put(event(1))
        courier.close()
    assert (courier.delivered, courier.problem) == (1, "")
    assert one.paths == ["/alerts/%C3%A4%20b?of=%C3%BC&to=%C3%B6"]


def test_an_unexpected_error_ends_no_later_delivery() -> None:
    def deliver(given: WatchEvent) -> None:
        if given.value["n"] == 1:
            raise UnicodeEncodeError("ascii", "ä", 0, 1, "no")

    courier = Courier("test", deliver, pause=0.001)
    courier.put(event(1))
    courier.put(event(2))
    courier.close()
    assert (courier.lost, courier.delivered) == (1, 1)


@pytest.mark.parametrize(
    "url",
    ["ftp://x/", "http://", "http://x:99999/", "x", "http://x/\n", f"http://{'a' * 64}.b/"],
)
def test_what_is_no_url_is_none(url: str) -> None:
    assert Target.of(url) is None


def test_what_may_be_secret_is_not_shown() -> None:
    target = Target.of("https://me:secret@host:8443/hook?token=secret")
    assert target is not None
    assert target.shown == "https://host:8443"


@pytest.mark.parametrize("kind", ["socket", "udp"])
def test_a_watch_sends_lines_to_syslog(tmp_path: Path, kind: str) -> None:
    if kind == "socket":
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        address = str(tmp_path / "log")
        server.bind(address)
    else:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with server:
        status, _, err = watched(SAMPLE.read_bytes(), "--syslog", address)
        server.setblocking(False)
        lines = [server.recv(4096).decode() for _ in range(3)]
    assert (status, err) == (0, "")
    assert lines[0].startswith("<30>rmqtool[")  # daemon, info
    (problem,) = [line for line in lines if "send-queue-timeout" in line]
    assert problem.startswith("<27>rmqtool[")  # daemon, error
