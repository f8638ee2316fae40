"""Packets of a flow are passed over unless they may change what it is."""

from __future__ import annotations

import pytest

from dissectors.tcp.passed_flows import MOST_ALIKE, Followed, PassedFlows
from tests.traffic.network import address, ethernet, fragments, ip, ipv4, tcp
from tests.traffic.talk import BROKER, CLIENT, FIN, RST, SYN, End, Tcp

VLAN = (0x8100, 7)


def segment(flags: int = 0x10, payload: bytes = b"some bytes") -> Tcp:
    return Tcp(CLIENT, BROKER, 1, 1, flags, payload, 0)


def key(src: End, dst: End) -> bytes:
    hosts = address(src.address) + address(dst.address)
    return hosts + src.port.to_bytes(2) + dst.port.to_bytes(2)


def passed(flows: PassedFlows, frame: bytes, ts: int = 5) -> bool:
    return flows.passes(b"abc" + frame, 3, 3 + len(frame), ts)


@pytest.fixture
def connection() -> Followed:
    return Followed()


@pytest.fixture
def flows(connection: Followed) -> PassedFlows:
    made = PassedFlows()
    for one in (key(CLIENT, BROKER), key(BROKER, CLIENT)):
        made.add(one, connection)
    return made


def test_payload_is_noted_and_an_acknowledgement_is_not(
    flows: PassedFlows, connection: Followed
) -> None:
    assert passed(flows, ethernet(ip(segment())), 7)
    assert passed(flows, ethernet(ip(segment(payload=b""))), 8)
    assert connection.last_ts == 7


@pytest.mark.parametrize("flag", [SYN, FIN, RST])
def test_both_directions_come_behind_a_beginning_or_an_end(flows: PassedFlows, flag: int) -> None:
    back = Tcp(BROKER, CLIENT, 1, 1, 0x10, b"answer", 0)
    assert passed(flows, ethernet(ip(back)))
    assert not passed(flows, ethernet(ip(segment(flag))))
    assert not passed(flows, ethernet(ip(segment())))
    assert not passed(flows, ethernet(ip(back)))


@pytest.mark.parametrize("form", ["tag", "options", "fragment"])
def test_nothing_is_passed_over_behind_what_may_be_of_any_flow(
    flows: PassedFlows, form: str
) -> None:
    one = segment()
    unusual = {
        "tag": ethernet(ip(one), VLAN),
        "options": ethernet(ipv4(CLIENT.address, BROKER.address, 6, tcp(one), options=b"\1" * 4)),
        "fragment": ethernet(fragments(segment(payload=bytes(100)), 64, 1)[0]),
    }
    assert not passed(flows, unusual[form])
    assert not passed(flows, ethernet(ip(one)))
    flows.begin()
    assert passed(flows, ethernet(ip(one)))


def test_what_is_cut_off_or_of_another_flow_comes(flows: PassedFlows) -> None:
    whole = ethernet(ip(segment(payload=bytes(100))))
    assert not passed(flows, whole[:-1])
    assert not passed(flows, ethernet(ip(Tcp(CLIENT, End("10.0.0.9", 1), 1, 1, 0x10, b"x", 0))))
    flows.crowded = True
    assert not passed(flows, whole)


def test_flows_of_one_bucket_are_bounded(connection: Followed) -> None:
    """A bucket is told by a mix of addresses and ports, which somebody may choose to be alike."""
    flows = PassedFlows()
    ends = [End(f"10.0.{number >> 8}.{number & 255}", 0) for number in range(2000)]
    frames = [ethernet(ip(Tcp(end, end, 1, 1, 0x10, b"some bytes", 0))) for end in ends]
    for end in ends:
        flows.add(key(end, end), connection)
    assert 0 < sum(passed(flows, frame) for frame in frames) <= MOST_ALIKE
    for end in ends:
        flows.remove(key(end, end))
    assert not any(passed(flows, frame) for frame in frames)
