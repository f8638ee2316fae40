"""The same traffic, captured otherwise: in a VLAN, over IPv6, with other addresses, among others.

What frames the packets changes nothing. Where the heads have other addresses than the bodies less
is said, and nothing else.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from analytics.diagnosis.problem import Problem

from .test_robustness import INCIDENTS, packets_of, problems_of

HEALTHY = ("send-sync-4x", "send-sync-5x", "push-orderly-5x", "pop-calls-5x")
NAMES = (*INCIDENTS, *HEALTHY, "address-refused-5x", "slave-read-5x", "admin-5x")
PCAP_HEAD, ETHERNET_HEAD, IPV4_HEAD = 16, 14, 20
SAID_OTHERWISE = {
    "broker-gone": "connection-cut",
    "wrong-broker-address": "nobody-listens",
}
"""where routes and registrations have other addresses: what is left of a verdict"""
Packet = bytes


def packet(old: Packet, data: bytes) -> Packet:
    """A packet with other bytes at its time."""
    return old[:8] + struct.pack("<II", len(data), len(data)) + data


def in_a_vlan(old: Packet) -> Packet:
    data = old[PCAP_HEAD:]
    return packet(old, data[:12] + b"\x81\x00\x00\x07" + data[12:])


def over_ipv6(old: Packet) -> Packet:
    data = old[PCAP_HEAD:]
    head = data[ETHERNET_HEAD : ETHERNET_HEAD + IPV4_HEAD]
    (length,) = struct.unpack_from(">H", head, 2)
    assert head[0] == 0x45, "no options"
    ends = b"".join(
        bytes.fromhex("fd000000000000000000ffff") + one for one in (head[12:16], head[16:])
    )
    new = struct.pack(">IHBB", 6 << 28, length - IPV4_HEAD, head[9], 64) + ends
    payload = data[ETHERNET_HEAD + IPV4_HEAD : ETHERNET_HEAD + length]
    return packet(old, data[:12] + b"\x86\xdd" + new + payload)


def with_other_addresses(old: Packet, first: int = 10) -> Packet:
    data = old[PCAP_HEAD:]
    ends = bytearray(data[26:34])
    for at in (0, 4):
        ends[at], ends[at + 1] = first, ends[at + 1] ^ 0x55
    return packet(old, data[:26] + bytes(ends) + data[34:])


def causes(found: Sequence[Problem]) -> Counter[str]:
    return Counter(one.rule for one in found)


@pytest.mark.parametrize("name", NAMES)
def test_a_vlan_changes_nothing(name: str) -> None:
    head, packets = packets_of(name)
    plain = [(one.title, one.count) for one in problems_of(head, packets)]
    found = problems_of(head, [in_a_vlan(one) for one in packets])
    assert [(one.title, one.count) for one in found] == plain


@pytest.mark.parametrize("change", [over_ipv6, with_other_addresses])
@pytest.mark.parametrize("name", NAMES)
def test_other_addresses_than_in_the_bodies(name: str, change: Callable[[Packet], Packet]) -> None:
    head, packets = packets_of(name)
    known = causes(problems_of(head, packets))
    found = causes(problems_of(head, [change(one) for one in packets]))
    for rule in found - known:
        before = [old for old, new in SAID_OTHERWISE.items() if new == rule]
        assert any(known[old] for old in before), f"{name}: {rule}"


@pytest.mark.parametrize("seed", range(6))
def test_traffic_of_two_clusters_in_one_capture(seed: int) -> None:
    """Their brokers have the same names, other addresses, and the same times."""
    chance = random.Random(seed)
    one, other = chance.sample(NAMES, 2)
    head, packets = packets_of(one)
    start, later = (struct.unpack_from("<I", of[0])[0] for of in (packets, packets_of(other)[1]))
    moved = []
    for each in packets_of(other)[1]:
        (second,) = struct.unpack_from("<I", each)
        at = struct.pack("<I", second - later + start + seed)
        moved.append(with_other_addresses(at + each[4:], 172))
    alone = causes(problems_of(head, packets)) + causes(problems_of(head, moved))
    both = sorted([*packets, *moved], key=lambda each: struct.unpack_from("<II", each))
    assert causes(problems_of(head, both)) <= alone
