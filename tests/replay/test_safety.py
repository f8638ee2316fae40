"""Where messages may go."""

from __future__ import annotations

import pytest

from replay.captured import source as captured_source
from replay.captured.source import SourceError, note_server
from replay.safety import Agreement, Guard, TargetRefused, host_and_port, is_loopback
from replay.transport.problems import is_own_address


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


def test_ipv4_mapped_ipv6_is_the_same_address() -> None:
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


THIS_MACHINE = [
    *("127.0.0.1", "127.255.0.9", "localhost", "0.0.0.0", "::", "::1", "0:0:0:0:0:0:0:1"),
    *("::1%1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:0.0.0.0", "::ffff:127.9.9.9"),
    *("::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b:1::127.0.0.1", "64:ff9b:1:7f00:0:100::", "2002:7f00:1::", "2002:7f00:1::9"),
    *("2001:0:4136:e378:8000:63bf:80ff:fffe", "fe80::5efe:127.0.0.1", "192.0.2.77"),
]
"""notations of this machine; 192.0.2.77 is its own address in these tests"""


def _is_own(host: str) -> bool:
    return host in ("192.0.2.77", "192.0.2.78", "fd00::77")


@pytest.mark.parametrize("captured", THIS_MACHINE)
def test_every_notation_of_this_machine_is_one_host(captured: str) -> None:
    guard = Guard(consent=True, is_own=_is_own)
    guard.learn([_joined(captured, 10911)])
    for host in THIS_MACHINE:
        with pytest.raises(TargetRefused, match="address of the capture"):
            guard.check(_joined(host, 10911))
    guard.check("127.0.0.1:10912")


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@pytest.mark.parametrize(
    "host",
    [
        *("10.1.2.3", "::ffff:10.1.2.3", "::ffff:a01:203", "::10.1.2.3", "::ffff:0:10.1.2.3"),
        *("64:ff9b::10.1.2.3", "64:ff9b:1::a01:203", "64:ff9b:1:a01:2:300::", "2002:a01:203::1"),
        *("2001:0:4136:e378:8000:63bf:f5fe:fdfc", "fd00::5efe:10.1.2.3", "fd00::200:5efe:a01:203"),
    ],
)
def test_an_ipv4_address_inside_of_an_ipv6_one_is_that_host(host: str) -> None:
    for captured, target in (("10.1.2.3", host), (host, "10.1.2.3")):
        guard = Guard(consent=True)
        guard.learn([_joined(captured, 10911)])
        with pytest.raises(TargetRefused, match="address of the capture"):
            guard.check(_joined(target, 20911))
        guard.check("10.1.2.4:10911")


def test_a_scope_does_not_make_another_address() -> None:
    guard = Guard(consent=True)
    guard.learn(["[fe80::1]:10911", "[fe80::2%eth0]:10911"])
    for address in ("[fe80::1%eth0]:1", "[fe80::1%2]:1", "[fe80::2]:1", "[fe80::2%lo]:1"):
        with pytest.raises(TargetRefused, match="address of the capture"):
            guard.check(address)


TEN = ("10.0.0.1", "::ffff:10.0.0.1", "::ffff:a00:1")
"""notations of one host"""
ALLOWED = {
    "10.0.0.0/8": (*TEN, "10.255.255.255"),
    "10.9.8.7/8": (*TEN, "10.255.255.255"),
    "10.0.0.1": TEN,
    "::ffff:10.0.0.1": TEN,
    "::ffff:10.0.0.0/104": (*TEN, "10.255.255.255"),
    "0.0.0.0/0": (*TEN, "10.255.255.255", "192.0.2.1"),
    "[2001:db8::1]": ("2001:db8::1",),
    "2001:DB8:0::/48": ("2001:db8::1",),
    "fe80::1%eth0": ("fe80::1%eth0",),
    "fe80::1": ("fe80::1", "fe80::1%eth0", "fe80::1%eth1"),
    "Host.Example.": ("host.example", "HOST.example."),
    "b\u00fccher.example": ("B\u00dcCHER.example",),
    "10.example": ("10.example",),
}
"""what is allowed → what it covers"""
HOSTS = {host for hosts in ALLOWED.values() for host in hosts} | {
    *("10.0.0.1.", "167772161", "0x0a000001", "012.0.0.1", "10.1", "\uff11\uff10.0.0.1"),
    *("64:ff9b::a00:1", "2002:a00:1::", "::10.0.0.1", "example", "host.example.evil"),
}


@pytest.mark.parametrize("text", ALLOWED)
def test_consent_covers_what_was_written_and_nothing_else(text: str) -> None:
    agreement = Agreement(False, [text])
    assert {one for one in HOSTS if agreement.covers(_joined(one, 1))} == set(ALLOWED[text])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            ".",
            "..",
            "[",
            "[]",
            "*",
            "a b",
            "a,b",
            "10.0.0.1;10.0.0.2",
            "10.0.0.1 ",
            "-/8",
        ),
        *("10.0.0.1:9876", "[::1]:9876", "::1:9876:x", "127.0.0.1\n", "10.0.0.1\0", "a\u202eb"),
        *("10/8", "0/0", "10.0.0.0/8 ", "host/8"),
        *(
            "fe80::1%eth0/64",
            "fe80::%eth0/64",
            "10.0.0.0/8%eth0",
            "010.0.0.0/8",
            "\u0661\u0660.0.0.0/8",
        ),
        *(
            "167772161",
            "0x0a000001",
            "0xA000001",
            "012.0.0.1",
            "10.1",
            "0",
            "10.0.0.1.",
            "10.0.0.256",
        ),
        *("\uff11\uff10.0.0.1", "\u0661\u0660.0.0.\u0661", "10.0.0.\u00b9", "host.0x7f"),
    ],
)
def test_what_may_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^'"):
        Agreement(False, [text])


def test_consent_for_an_address_is_none_for_a_name_that_looks_like_it() -> None:
    """The system asks the DNS for `10.0.0.1.`, which may answer with any address."""
    guard = Guard(Agreement(False, ["10.0.0.1"]))
    with pytest.raises(TargetRefused, match="not a loopback address"):
        guard.check("10.0.0.1.:10911", "10.0.0.1.:10911")
    with pytest.raises(TargetRefused, match="not a loopback address"):
        guard.check("192.0.2.9:10911", "10.0.0.1.:10911")
    guard = Guard(consent=True)
    guard.learn(["10.0.0.1:10911"])
    with pytest.raises(TargetRefused, match="address of the capture"):
        guard.check("10.0.0.1.:10911")


def test_consent_for_one_link_is_none_for_another() -> None:
    guard = Guard(Agreement(False))
    guard.agreement.add(["[fe80::1%eth0]:10911"])
    guard.check("[fe80::1%eth0]:10911")
    for address in ("[fe80::1%eth1]:10911", "[fe80::1]:10911"):
        with pytest.raises(TargetRefused, match="not a loopback address"):
            guard.check(address)


def test_another_own_address_is_the_same_host() -> None:
    guard = Guard(consent=True, is_own=_is_own)
    guard.learn(["192.0.2.77:10911"])
    for address in ("192.0.2.78:20911", "[fd00::77]:1", "127.0.0.1:10911"):
        with pytest.raises(TargetRefused, match=r"reaches the host of 192\.0\.2\.77:10911"):
            guard.check(address)
    guard.check("127.0.0.1:20911")
    guard.check("192.0.2.79:10911")


def test_what_this_process_listens_on_is_exempt() -> None:
    guard = Guard(consent=False)
    guard.learn(["127.0.0.1:10911"])
    guard.exempt(["127.0.0.1:10911"])
    guard.check("127.0.0.1:10911")
    with pytest.raises(TargetRefused):
        guard.check("127.0.0.2:10911")


def test_hosts_without_a_port_are_refused_at_every_port() -> None:
    guard = Guard(consent=True)
    guard.learn(["127.0.0.1:0", "10.0.0.1:0"])
    for address in ("127.0.0.1:10911", "[::1]:1", "10.0.0.1:9876"):
        with pytest.raises(TargetRefused):
            guard.check(address)


def test_own_addresses_are_told_by_the_system() -> None:
    assert is_own_address("127.0.0.1")
    assert is_own_address("127.8.8.8")
    assert not is_own_address("203.0.113.9")
    assert not is_own_address("64:ff9b::1")


def test_no_address_of_a_capture_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_source, "MAX_ADDRESSES", 3)
    monkeypatch.setattr(captured_source, "MAX_HOSTS", 2)
    responders: set[str] = set()
    for number in range(1, 6):
        note_server(responders, f"10.0.0.{number}:10911")
        note_server(responders, f"10.0.0.{number}:10911")
    guard = Guard(consent=True)
    guard.learn(responders)
    for number in range(1, 6):
        with pytest.raises(TargetRefused):
            guard.check(f"10.0.0.{number}:10911")
    note_server(responders, "10.0.0.5:20911")
    with pytest.raises(SourceError, match="hosts"):
        note_server(responders, "10.0.0.6:10911")


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
    assert host_and_port("broker:" + "9" * 5000)[1] == 0
    assert host_and_port("broker:²") == ("broker:²", 0)


@pytest.mark.parametrize("scope", ["%lo", "%" + "l" * 60, "%" + "l" * 10_000])
def test_the_length_of_a_scope_changes_nothing(scope: str) -> None:
    """Addresses of short texts are remembered, those of long ones are not."""
    for _ in range(2):
        assert is_loopback("::1" + scope)
        assert not is_loopback("fe80::1" + scope)
        assert not Agreement(allowed=["fe80::1"]).covers(f"[fe80::2{scope}]:10911")
