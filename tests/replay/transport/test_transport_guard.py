"""A guard of both drivers: what it is asked before and after a connect, against real sockets."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from replay import TlsSettings
from replay.errors import (
    NameServerError,
)
from replay.message import SendResult

from ..responder import Responder
from .drivers import (
    SYNC,
    Driver,
    config_of,
    every_driver,
)


@every_driver
def test_a_guard_keeps_everything_from_an_address(driver: Driver, responder: Responder) -> None:
    def guard(address: str, _named: str) -> str | None:
        return "it was captured" if address == responder.address else None

    (error,) = driver(config_of(responder, guard=guard), [SYNC])
    assert isinstance(error, NameServerError)
    assert "it was captured" in str(error)
    assert responder.accepted == 0


@every_driver
@pytest.mark.parametrize("tls", [None, TlsSettings(verify=False)])
def test_a_guard_is_asked_again_for_what_the_system_has_connected_to(
    driver: Driver, responder: Responder, tls: TlsSettings | None
) -> None:
    """The system takes 0.0.0.0 for 127.0.0.1; not one byte may be sent, of TLS neither."""
    asked: list[str] = []
    named = responder.address.replace("127.0.0.1", "0.0.0.0")

    def guard(address: str, _named: str) -> str | None:
        asked.append(address)
        return "it was captured" if address == responder.address else None

    (error,) = driver(config_of(responder, namesrv=named, guard=guard, tls=tls), [SYNC])
    assert isinstance(error, NameServerError)
    assert "it was captured" in str(error)
    assert asked[:2] == [named, responder.address]
    assert responder.received == []
    assert responder.bytes_received == 0


@every_driver
def test_a_guard_lets_a_name_be_reached(driver: Driver, responder: Responder) -> None:
    asked: list[str] = []
    named = responder.address.replace("127.0.0.1", "localhost")

    def guard(address: str, _named: str) -> str | None:
        asked.append(address)
        return None

    (found,) = driver(config_of(responder, namesrv=named, guard=guard), [SYNC])
    assert isinstance(found, SendResult), found
    assert asked[0] == named
    assert responder.address in asked[1:]


@every_driver
def test_a_name_that_is_refused_is_not_looked_up(
    driver: Driver, responder: Responder, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[object] = []
    system = socket.getaddrinfo

    def noted(host: object, *rest: object, **more: object) -> object:
        looked_up.append(host)
        return system(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", noted)
    config = config_of(responder, guard=lambda *_: "nobody agreed to it")
    config = replace(config, namesrv="never.example:9876", client_ip="127.0.0.1")
    (error,) = driver(config, [SYNC])
    assert "nobody agreed to it" in str(error)
    assert looked_up == []
