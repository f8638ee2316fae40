"""Where messages may go."""

from __future__ import annotations

import pytest

from replay.safety import Guard, TargetRefused, host_and_port, is_loopback


def test_a_captured_address_is_never_a_target_whatever_was_agreed_to() -> None:
    guard = Guard(consent=True)
    guard.learn(["10.0.0.1:10911", "127.0.0.1:9876", "[fd00::1]:10911"])
    for address in ("10.0.0.1:10911", "127.0.0.1:9876", "localhost:9876", "[fd00:0::1]:10911"):
        with pytest.raises(TargetRefused, match="address of the capture"):
            guard.check(address)


def test_outside_of_loopback_the_whole_host_is_refused() -> None:
    guard = Guard(consent=True)
    guard.learn(["10.0.0.1:10911", "127.0.0.1:9876"])
    with pytest.raises(TargetRefused):
        guard.check("10.0.0.1:20911")
    guard.check("127.0.0.1:19876")
    guard.check("10.0.0.2:10911")


def test_an_address_that_is_learned_later_is_refused_from_then_on() -> None:
    guard = Guard(consent=True)
    guard.check("10.0.0.1:10911")
    guard.learn(["10.0.0.1:10911"])
    with pytest.raises(TargetRefused):
        guard.check("10.0.0.1:10911")


def test_ipv4_in_ipv6_clothes_is_the_same_address() -> None:
    guard = Guard(consent=True)
    guard.learn(["10.0.0.1:10911"])
    with pytest.raises(TargetRefused):
        guard.check("[::ffff:10.0.0.1]:10911")


def test_what_is_not_loopback_needs_consent() -> None:
    with pytest.raises(TargetRefused, match="--yes"):
        Guard(consent=False).check("192.0.2.1:9876")
    Guard(consent=True).check("192.0.2.1:9876")
    Guard(consent=False).check("127.0.0.1:9876")


def test_why_not_says_the_same() -> None:
    guard = Guard(consent=False)
    assert guard.why_not("127.0.0.1:1") is None
    assert "--yes" in str(guard.why_not("192.0.2.1:1"))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.77.0.11", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("localhost.example", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_addresses_are_split() -> None:
    assert host_and_port("[::1]:9876") == ("::1", 9876)
    assert host_and_port("broker:10911") == ("broker", 10911)
    assert host_and_port("broker") == ("broker", 0)
