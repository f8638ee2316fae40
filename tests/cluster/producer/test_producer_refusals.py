"""What real servers refuse: the right error with the way out, within the time of the send."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from replay.acl import Credentials
from replay.async_producer import AsyncProducer
from replay.config import ProducerConfig, TlsSettings
from replay.errors import BrokerError, ClientError, InvalidMessageError, RouteError, SendFailed
from replay.message import Message, SendMode, SendStatus
from replay.producer import Producer
from tests.cluster.fixtures import running
from tests.cluster.producer.producing import read_by_java
from tests.cluster.scenarios import security
from tests.cluster.servers import faults
from tests.cluster.servers.cluster import Cluster
from tests.patience import Stopwatch

pytestmark = pytest.mark.cluster

TIMEOUT_MS = 4000
SLACK_MS = 6000
"""a broker on a busy machine is late; still less than the times of all attempts together"""


def _running(cluster: Cluster) -> Iterator[Cluster]:
    cluster.network = "127.77.16"  # the scenarios' own is that of other tests
    with running(cluster):
        yield cluster


@pytest.fixture(scope="module", params=["5x", "4x"])
def guarded(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A broker that wants signatures."""
    yield from _running(security.acl_5x() if request.param == "5x" else security.acl_4x())


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Cluster]:
    """Servers that speak TLS, with a certificate that nobody trusts."""
    yield from _running(security.tls_5x())


def _config(cluster: Cluster, **options: object) -> ProducerConfig:
    settings: dict[str, object] = {"send_timeout_ms": TIMEOUT_MS, **options}
    return ProducerConfig("refused_group", cluster.namesrv_text, **settings)  # type: ignore[arg-type]


def _error(config: ProducerConfig, message: Message, mode: SendMode = SendMode.SYNC) -> ClientError:
    """How the send of a message fails, with either driver alike."""
    watch = Stopwatch()
    with Producer(config) as producer, pytest.raises(ClientError) as raised:
        producer.send(message, mode=mode)
    _in_time(watch)

    async def send() -> ClientError:
        async with AsyncProducer(config) as producer:
            with pytest.raises(ClientError) as caught:
                await producer.send(message, mode=mode)
            return caught.value

    watch = Stopwatch()
    other = asyncio.run(send())
    _in_time(watch)
    assert type(other) is type(raised.value)
    return raised.value


def _in_time(watch: Stopwatch) -> None:
    assert watch.own * 1000 < TIMEOUT_MS + SLACK_MS


def _cause(error: ClientError) -> ClientError:
    assert isinstance(error, SendFailed), error
    assert error.cause is not None
    return error.cause


@pytest.mark.parametrize("mode", [SendMode.SYNC, SendMode.ASYNC])
def test_a_body_that_the_broker_finds_too_large(rocketmq: Cluster, mode: SendMode) -> None:
    rocketmq.make_topic("Large")
    body = bytes(range(256)) * 600
    config = _config(rocketmq, compress_over=1 << 30)
    error = _error(config, Message("Large", body), mode)
    cause = _cause(error)
    assert isinstance(cause, BrokerError)
    assert cause.code == 13
    assert len(error.attempts) == 1, "what no broker takes is not tried with others"


def test_a_body_that_is_too_large_for_us_is_not_sent(rocketmq: Cluster) -> None:
    error = _error(_config(rocketmq), Message("Large", bytes(4 * 1024 * 1024 + 1)))
    assert isinstance(error, InvalidMessageError)
    assert error.attempts == ()
    assert "4194304" in str(error)


def test_a_topic_that_nobody_may_make(rocketmq: Cluster) -> None:
    with faults.no_auto_create(rocketmq.brokers[0]), faults.no_auto_create(rocketmq.brokers[1]):
        error = _error(_config(rocketmq), Message("NobodysTopic", b"b"))
        cause = error.cause if isinstance(error, SendFailed) else error
        assert isinstance(cause, (BrokerError, RouteError))
        assert cause.code in (17, 10005)
        assert cause.hint
        if isinstance(cause, BrokerError):
            assert len(error.attempts) == 3, "code 17 is tried with another broker"


def test_a_topic_that_cannot_be_written_to(rocketmq: Cluster) -> None:
    rocketmq.make_topic("ReadOnly", perm=4)
    error = _error(_config(rocketmq), Message("ReadOnly", b"b"))
    cause = error.cause if isinstance(error, SendFailed) else error
    assert isinstance(cause, RouteError)
    assert "ReadOnly" in str(cause)


def test_a_full_disk_sends_to_the_other_broker(rocketmq: Cluster) -> None:
    rocketmq.make_topic("Full", queues=1)
    with (
        faults.disk_full(rocketmq.broker("broker-a")),
        Producer(_config(rocketmq)) as producer,
    ):
        results = [producer.send(Message("Full", b"%d" % number)) for number in range(20)]
    assert {result.queue.broker_name for result in results} == {"broker-b"}
    retried = [result for result in results if len(result.attempts) > 1]
    assert retried
    assert {result.attempts[0].code for result in retried} == {14}
    assert len(read_by_java(rocketmq, "Full", 20)) == 20


def test_right_and_wrong_signatures(guarded: Cluster) -> None:
    right = Credentials(security.ACCESS, security.SECRET)
    for header in ("JSON", "ROCKETMQ"):
        with Producer(_config(guarded, credentials=right, serialize_type=header)) as producer:
            result = producer.send(Message("Signed", b"signed"))
            assert result.status is SendStatus.SEND_OK
            result = producer.send_batch([Message("Signed", b"1"), Message("Signed", b"2")])
            assert result.status is SendStatus.SEND_OK
    for credentials in (
        Credentials(security.ACCESS, "another-dummy"),
        Credentials("nobody", security.SECRET),
        None,
    ):
        error = _error(_config(guarded, credentials=credentials), Message("Signed", b"b"))
        cause = error.cause if isinstance(error, SendFailed) else error
        assert cause is not None
        assert cause.code in (1, 16), error
        text = f"{error} {cause!r} {error.attempts}"
        assert security.SECRET not in text
        assert "another-dummy" not in text


def test_tls(encrypted: Cluster) -> None:
    with Producer(_config(encrypted, tls=TlsSettings(verify=False))) as producer:
        result = producer.send(Message("Encrypted", b"within TLS"))
        assert result.status is SendStatus.SEND_OK
    options = {"properties": ["tls.enable=true"], "tls": True}
    (read,) = read_by_java(encrypted, "Encrypted", 1, **options)
    assert read.body == b"within TLS"


def test_a_certificate_that_nobody_trusts(encrypted: Cluster) -> None:
    error = _error(_config(encrypted, tls=TlsSettings()), Message("Encrypted", b"b"))
    assert "certificate" in str(error)
    assert error.hint


def test_tls_where_the_server_has_none(rocketmq: Cluster) -> None:
    error = _error(_config(rocketmq, tls=TlsSettings(verify=False)), Message("T", b"b"))
    assert "TLS" in str(error), error
    assert error.hint
