"""Errors: what is wrong, the way out, what was tried; and no secret in any of them."""

from __future__ import annotations

import pickle

import pytest

from dissectors.endpoint import split_endpoint
from replay import Attempt, MessageQueue
from replay.acl import Credentials
from replay.config import ProducerConfig, TlsSettings, addresses_of
from replay.errors import (
    BrokerError,
    ClientError,
    ConnectError,
    InvalidMessageError,
    NameServerError,
    RouteError,
    SendFailed,
    SendTimeoutError,
    TooManyRequestsError,
    TransportError,
    UnknownBrokerError,
)


def attempt(number: int, broker: str) -> Attempt:
    return Attempt(number, MessageQueue("T", broker, 0), "10.0.0.1:10911", 0)


def test_a_failed_send_says_how_often_where_how_long_and_why() -> None:
    cause = ConnectError("no connection to 10.0.0.1:10911: connection refused", "is it running?")
    attempts = (attempt(1, "broker-a"), attempt(2, "broker-b"))
    error = SendFailed("Orders", attempts, 812, cause)
    assert str(error) == (
        "sending to Orders failed after 2 attempts, 812 ms; brokers: broker-a, broker-b; "
        "last: no connection to 10.0.0.1:10911: connection refused\nis it running?"
    )
    assert (error.attempts, error.brokers) == (attempts, ("broker-a", "broker-b"))
    assert (error.cause, error.code, error.elapsed_ms) == (cause, 10001, 812)
    late = SendFailed("T", attempts[:1], 3000, SendTimeoutError("no answer"), out_of_time=True)
    assert "1 attempt," in str(late)
    assert "the timeout passed" in str(late)


def test_a_broker_error_has_its_name_and_remark() -> None:
    error = BrokerError(14, "disk full")
    assert str(error) == "SERVICE_NOT_AVAILABLE (14): disk full"
    assert (error.code, error.remark) == (14, "disk full")
    assert "9999" in str(BrokerError(9999))


@pytest.mark.parametrize(
    ("kind", "retriable"),
    [
        (ConnectError, True),
        (SendTimeoutError, True),
        (TooManyRequestsError, True),
        (UnknownBrokerError, True),
        (RouteError, False),
        (NameServerError, False),
        (InvalidMessageError, False),
    ],
)
def test_what_a_send_may_go_on_after(kind: type[ClientError], retriable: bool) -> None:
    assert kind("x").retriable is retriable
    assert issubclass(kind, ClientError)
    assert issubclass(UnknownBrokerError, TransportError) is False


def test_no_secret_is_shown() -> None:
    config = ProducerConfig(
        group="g",
        credentials=Credentials("who", "the secret key", "the token"),
        tls=TlsSettings(key_password="the password"),
    )
    shown = repr(config) + str(config)
    assert "who" in shown
    for secret in ("the secret key", "the token", "the password"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("host:1", ("host", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("::1:80", ("::1", 80)),
        ("host:65536", None),
        ("host:0", None),
        ("host", None),
        (":1", None),
        ("host:1a", None),
        ("host:99999999999999", None),
        ("[::1:80", None),
    ],
)
def test_addresses(text: str, parts: tuple[str, int] | None) -> None:
    assert split_endpoint(text) == parts


def test_lists_of_addresses_are_without_repeats() -> None:
    assert addresses_of(" a:1 ;;b:2; a:1") == ("a:1", "b:2")


def test_results_and_attempts_can_be_given_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(attempt(1, "broker-a"))) == attempt(1, "broker-a")
