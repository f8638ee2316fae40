"""Names are looked up by threads that neither a deadline nor the end of the program waits for."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading

import pytest

from replay.transport import names
from replay.transport.names import MOST_AT_ONCE, addresses_of
from tests.patience import Stopwatch, wait_for

from ..responder import answer, responding


def test_an_address_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
        found = asyncio.run(addresses_of(host, 9876))
        assert [(one[0], one[4][:2]) for one in found] == [(family, (host, 9876))]


def test_a_name_of_this_machine() -> None:
    found = asyncio.run(addresses_of("localhost", 9876))
    assert {one[4][1] for one in found} == {9876}


def test_what_is_no_name() -> None:
    for host in ("a..b", "x" * 300, "\u0130.\u0130" * 80):
        with pytest.raises(OSError, match=r"(?i)name"):
            asyncio.run(addresses_of(host, 1))


def test_many_names_at_once_are_refused_and_those_given_up_hold_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A resolver that is silent: so many threads wait for it, and no loop."""
    answered = threading.Event()

    def silent(host: str, port: int) -> names.Found:
        answered.wait()
        return []

    monkeypatch.setattr(names, "_look_up", silent)

    async def run() -> list[object]:
        asked = [asyncio.create_task(addresses_of(f"b{n}.test", 1)) for n in range(200)]
        _, waiting = await asyncio.wait(asked, timeout=0.05)
        for one in waiting:
            one.cancel()
        return list(await asyncio.gather(*asked, return_exceptions=True))

    ended = asyncio.run(run())
    refused = [one for one in ended if isinstance(one, OSError)]
    assert len(refused) == 200 - MOST_AT_ONCE
    assert "64 names are being looked up already" in str(refused[0])
    answered.set()
    wait_for("the threads", lambda: not any(t.name == "names" for t in threading.enumerate()))
    monkeypatch.undo()
    assert asyncio.run(addresses_of("localhost", 1))


_SLOW = """
import socket, time
def slow(host, *rest, real=socket.getaddrinfo, **more):
    if str(host).endswith(".test"):
        time.sleep(120)
    return real(host, *rest, **more)
socket.getaddrinfo = slow
from rmqtool.cli import main
main()
"""


@pytest.mark.slow
def test_a_route_of_200_names_holds_a_send_no_longer_than_its_timeout() -> None:
    """The resolver takes two minutes a name."""
    brokers = [f"b{n}" for n in range(200)]
    route = {
        "brokerDatas": [
            {"brokerName": name, "brokerAddrs": {"0": f"{name}.test:10911"}} for name in brokers
        ],
        "queueDatas": [
            {"brokerName": name, "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}
            for name in brokers
        ],
    }
    body = json.dumps(route).encode()
    with responding() as peer:
        peer.serve_route = lambda connection, command, _: answer(connection, command, 0, {}, body)
        arguments = ("send", "-n", peer.address, "-t", "T", "--body", "x", "--timeout", "1s")
        watch = Stopwatch()
        ended = subprocess.run(
            [sys.executable, "-c", _SLOW, *arguments, "--yes"],
            capture_output=True,
            check=False,
            timeout=110,
        )
    assert ended.returncode == 1
    assert b"no response in time" in ended.stderr
    assert watch.own < 100
