"""TLS with both drivers: certificates, names, servers without it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from replay import AsyncProducer, Message, Producer, ProducerConfig, TlsSettings
from replay.errors import ConfigError, NameServerError
from replay.message import SendResult
from replay.transport.aio import AioLink, AioNetwork
from tests.patience import Stopwatch

from ..certificates import make_certificate, other_host, server_context
from ..responder import Responder, responding
from .drivers import ASYNC, ONEWAY, SLACK_MS, SYNC, Driver, blocking, config_of, every_driver


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cert.pem and key.pem, self-signed for 127.0.0.1."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture
def secure(certificate: Path) -> Iterator[Responder]:
    with responding(tls=server_context(certificate)) as one:
        yield one


@every_driver
@pytest.mark.parametrize("check_hostname", [False, True])
@pytest.mark.slow
def test_tls(driver: Driver, secure: Responder, certificate: Path, check_hostname: bool) -> None:
    tls = TlsSettings(str(certificate / "cert.pem"), check_hostname=check_hostname)
    found = driver(config_of(secure, tls=tls), [SYNC, ASYNC, ONEWAY])
    assert all(isinstance(one, SendResult) for one in found), found


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[tuple[Responder, str]]:
    """A server at 127.0.0.1 with a trusted certificate for another host, and that certificate."""
    with other_host(tmp_path) as found:
        yield found


@every_driver
@pytest.mark.slow
def test_a_certificate_for_another_host(driver: Driver, elsewhere: tuple[Responder, str]) -> None:
    server, trusted = elsewhere
    for settings in (TlsSettings(trusted), TlsSettings(trusted, server_name="else.example")):
        (error,) = driver(config_of(server, tls=settings), [SYNC])
        assert isinstance(error, NameServerError)
        assert "for another name" in str(error)
        assert "server_name" in error.hint
    assert server.received == []
    for settings in (
        TlsSettings(trusted, server_name="broker.example"),
        TlsSettings(trusted, check_hostname=False),
    ):
        (sent,) = driver(config_of(server, tls=settings), [SYNC])
        assert isinstance(sent, SendResult), sent


@every_driver
@pytest.mark.parametrize("tls", [None, TlsSettings(verify=False)])
@pytest.mark.parametrize("host", ["a" * 64, ".x", "x..y", "a\0b", "\ud800", "xn--\xff", "a b", "%"])
def test_a_route_to_what_is_no_host_name(
    driver: Driver, responder: Responder, tls: TlsSettings | None, host: str
) -> None:
    config = config_of(responder, namesrv=f"{host}:9876", tls=tls, send_timeout_ms=60_000)
    for one in (config, replace(config, guard=lambda *_: None)):
        (error,) = driver(one, [SYNC])
        assert isinstance(error, NameServerError), error
        assert "name" in str(error)


@every_driver
def test_tls_without_verification(driver: Driver, secure: Responder) -> None:
    found = driver(config_of(secure, tls=TlsSettings(verify=False)), [SYNC])
    assert isinstance(found[0], SendResult)


@every_driver
def test_tls_with_large_bodies(driver: Driver, secure: Responder) -> None:
    config = config_of(secure, tls=TlsSettings(verify=False), compress_over=1 << 30)
    big = Message("T", os.urandom(3 << 20))
    if driver is blocking:
        with Producer(config) as producer:
            assert producer.send(big).queue_offset == 7
    else:

        async def run() -> None:
            async with AsyncProducer(config) as producer:
                assert (await producer.send(big)).queue_offset == 7

        asyncio.run(run())
    assert secure.received[-1][1] == big.body or secure.received[-2][1] == big.body


class _Closing:
    """Closes its connection twice, as a proxy does whose both sides end at once."""

    def __init__(self) -> None:
        self.unsent: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def opened(self, link: AioLink) -> None:
        link.close()
        link.close()
        self.unsent.set_result(link.unsent)

    def refused(self, problem: str, hint: str) -> None:
        raise AssertionError(problem)

    def received(self, data: bytes) -> None: ...

    def resumed(self) -> None: ...

    def ended(self, problem: str) -> None: ...


def test_a_connection_may_be_closed_twice(secure: Responder) -> None:
    async def run() -> int:
        network, user = AioNetwork(TlsSettings(verify=False)), _Closing()
        network.open(secure.address, 10_000_000_000, user)
        return await asyncio.wait_for(user.unsent, 10)

    assert asyncio.run(run()) == 0


@every_driver
def test_a_certificate_that_is_not_trusted(driver: Driver, secure: Responder) -> None:
    (error,) = driver(config_of(secure, tls=TlsSettings()), [SYNC])
    assert isinstance(error, NameServerError)
    assert "not trusted" in str(error)
    assert "ca_file" in error.hint


@pytest.mark.slow
@every_driver
def test_tls_to_a_port_without(driver: Driver, responder: Responder) -> None:
    config = config_of(responder, tls=TlsSettings(verify=False), send_timeout_ms=800)
    watch = Stopwatch()
    (error,) = driver(config, [SYNC])
    assert watch.own * 1000 < 800 + SLACK_MS
    assert isinstance(error, NameServerError)


@every_driver
def test_no_tls_to_a_port_with(driver: Driver, secure: Responder) -> None:
    watch = Stopwatch()
    (error,) = driver(config_of(secure, send_timeout_ms=800), [SYNC])
    assert watch.own * 1000 < 800 + SLACK_MS
    assert isinstance(error, NameServerError)


def test_tls_files_that_cannot_be_used(tmp_path: Path) -> None:
    config = ProducerConfig(
        group="g", namesrv="127.0.0.1:1", tls=TlsSettings(str(tmp_path / "none.pem"))
    )
    with pytest.raises(ConfigError, match=r"none\.pem"):
        Producer(config)
    assert "hush" not in repr(TlsSettings(key_password="hush"))
