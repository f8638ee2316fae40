"""Five captures of real clients and brokers, filtered: no SYN, holes between the packets.

Times, numbers and holes were read off with tshark (`frame.time_epoch`, `tcp.seq_raw`, `tcp.len`).
They are not part of the project; where they are absent these tests say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dissectors.findings import FindingKind, Severity
from dissectors.rows.record import ExchangeRecord
from tests.traffic.decoded import Outcome, decode, records

CAPTURES = Path(__file__).resolve().parents[3].parent / "shared" / "captures"
GROUP = "please_rename_unique_group_name_4"
Row = tuple[int, int | None, str, str | None, int | None, int]
"""packets of request and response, their codes' names, latency in µs, opaque"""


@dataclass(frozen=True)
class Expected:
    """What one capture holds."""

    client_address: str
    server_address: str
    first_time: int
    """of the first request, nanoseconds since the epoch"""
    rows: list[Row]
    topics: list[str | None]
    gaps: list[int] = field(default_factory=list)
    """bytes that are missing between the packets, in any order"""
    languages: tuple[str, str] = ("JAVA", "V4_4_0")


EXPECTED = {
    "rocketmq-get-routeinfo-by-topic": Expected(
        "192.169.0.5:54674",
        "192.169.0.3:9876",
        1733712840_908027000,
        [
            (1, 2, "GET_ROUTEINFO_BY_TOPIC", "SUCCESS", 1162, 5727),
            (3, 4, "GET_ROUTEINFO_BY_TOPIC", "SUCCESS", 1065, 5729),
            (5, 6, "GET_ROUTEINFO_BY_TOPIC", "SUCCESS", 827, 5731),
        ],
        [f"%RETRY%{GROUP}", "TopicTest", "TBW102"],
    ),
    "rocketmq-heartbeat": Expected(
        "192.169.0.5:50738",
        "192.169.0.4:10911",
        1733815852_166549000,
        [(1, 2, "HEART_BEAT", "SUCCESS", 876, 267)],
        [None],
    ),
    "rocketmq-producer-otel": Expected(
        "10.0.0.45:55728",
        "10.96.56.216:10911",
        1741316915_991162000,
        [
            (1, 2, "SEND_MESSAGE_V2", "SUCCESS", 504, 338),
            (3, 4, "SEND_MESSAGE_V2", "SUCCESS", 501, 348),
            (5, 6, "SEND_MESSAGE_V2", "SUCCESS", 484, 360),
        ],
        ["otel-demo-topic"] * 3,
        [916, 2095, 484, 1073],
        ("JAVA", "V4_9_4"),
    ),
    "rocketmq-pull-message": Expected(
        "192.169.0.5:50738",
        "192.169.0.4:10911",
        1733815831_153083000,
        [
            (1, 3, "PULL_MESSAGE", "PULL_NOT_FOUND", 19_999_130, 212),
            (2, 4, "PULL_MESSAGE", "PULL_NOT_FOUND", 19_999_063, 214),
            (7, 8, "PULL_MESSAGE", "SUCCESS", 12_533_315, 250),
            (6, 9, "PULL_MESSAGE", "SUCCESS", 12_534_766, 248),
            (5, None, "PULL_MESSAGE", None, None, 247),
        ],
        [f"%RETRY%{GROUP}", "TopicTest", "TopicTest", "TopicTest", f"%RETRY%{GROUP}"],
        [1092, 364, 819],
    ),
    "rocketmq-send-message-v2": Expected(
        "10.0.0.217:60738",
        "10.0.0.180:10909",
        1736132550_672088000,
        [
            (1, 2, "SEND_MESSAGE_V2", "SUCCESS", 4147, 6),
            (3, 4, "SEND_MESSAGE_V2", "SUCCESS", 400, 8),
        ],
        ["TopicTest"] * 2,
    ),
}
every_capture = pytest.mark.parametrize("name", sorted(EXPECTED))


def _path(name: str) -> Path:
    path = CAPTURES / f"{name}.pcap"
    if not path.exists():
        pytest.skip(f"{path} is not there: it is not part of the project")
    return path


@pytest.fixture
def decoded(name: str) -> tuple[list[ExchangeRecord], Outcome]:
    """Rows, and exchanges with their bodies."""
    path = _path(name)
    return records([path]).records, decode([path])


Decoded = tuple[list[ExchangeRecord], Outcome]


@every_capture
def test_every_command_is_found(name: str, decoded: Decoded) -> None:
    rows, outcome = decoded
    expected = EXPECTED[name]
    assert [
        (
            row.request_packet,
            row.response_packet,
            row.request_name,
            row.response_name,
            row.latency_us,
            row.opaque,
        )
        for row in rows
    ] == expected.rows
    assert [row.topic for row in rows] == expected.topics
    assert outcome.stats.captures[0].packets == len(outcome.pdus)  # a command in every packet


@every_capture
def test_who_speaks_and_when(name: str, decoded: Decoded) -> None:
    rows, outcome = decoded
    expected = EXPECTED[name]
    assert {(row.client_address, row.server_address) for row in rows} == {
        (expected.client_address, expected.server_address)
    }
    assert min(row.request_time or 0 for row in rows) == expected.first_time
    assert {(row.language, row.version_name) for row in rows} == {expected.languages}
    assert {row.serialize_type for row in rows} == {"JSON"}
    assert outcome.stats.conversations == outcome.stats.rocketmq_conversations == 1


@every_capture
def test_holes_are_gaps_and_nothing_is_an_error(name: str, decoded: Decoded) -> None:
    _, outcome = decoded
    expected = EXPECTED[name]
    gaps = [int(i.detail.split()[0]) for i in outcome.findings if i.kind is FindingKind.GAP]
    assert sorted(gaps) == sorted(expected.gaps)
    assert outcome.stats.gaps == len(gaps)
    assert outcome.stats.gap_bytes == sum(gaps)
    assert outcome.kinds[FindingKind.MIDSTREAM] == 1
    assert {info.kind for info in outcome.findings} <= {
        FindingKind.GAP,
        FindingKind.MIDSTREAM,
        FindingKind.RESYNCHRONIZED,
    }
    assert max(info.kind.severity for info in outcome.findings) < Severity.ERROR
    assert all(pdu.missing == 0 for pdu in outcome.pdus)


@every_capture
def test_every_byte_is_a_frame(name: str, decoded: Decoded) -> None:
    """The frames of each packet, prefix included, are as long as its payload."""
    _, outcome = decoded
    sizes: dict[int, int] = {}
    for pdu in outcome.pdus:
        sizes[pdu.packet] = sizes.get(pdu.packet, 0) + pdu.frame_bytes
    file = _path(name).stat().st_size
    headers = file - 24 - sum(sizes.values())
    assert headers % len(sizes) == 0
    assert headers // len(sizes) in (16 + 54, 16 + 66)  # record, Ethernet, IPv4, TCP with options


@pytest.mark.parametrize("name", ["rocketmq-pull-message"])
def test_pulls(decoded: Decoded) -> None:
    rows, outcome = decoded
    assert [row.message_count for row in rows] == [None, None, 1, 1, None]
    assert {row.group for row in rows} == {GROUP}
    assert [row.queue_id for row in rows] == [0, 2, 1, 2, 0]
    found = [one.response for one in outcome.exchanges if one.response and one.response.body]
    assert [len(pdu.body) for pdu in found] == [178, 178]
    for pdu in found:
        assert pdu.body[4:8] == bytes.fromhex("daa320a7")
        assert int.from_bytes(pdu.body[:4], "big") == 178


@pytest.mark.parametrize("name", ["rocketmq-send-message-v2"])
def test_sends(decoded: Decoded) -> None:
    rows, outcome = decoded
    assert [row.unique_key for row in rows] == [
        "0A0000D900086E0BE8581A66E40A0000",
        "0A0000D900086E0BE8581A66E4160001",
    ]
    assert [row.queue_offset for row in rows] == [4249, 4250]
    assert [row.queue_id for row in rows] == [0, 1]
    assert [row.message_count for row in rows] == [1, 1]
    bodies = [one.request.body for one in outcome.exchanges if one.request]
    assert bodies == [b"Hello RocketMQ 0", b"Hello RocketMQ 1"]


@pytest.mark.parametrize("name", ["rocketmq-producer-otel"])
def test_sends_with_a_trace_context(decoded: Decoded) -> None:
    rows, outcome = decoded
    assert [row.unique_key for row in rows] == [
        "7F000001000155D9B8F01F92D316006F",
        "7F000001000155D9B8F01F930DB50072",
        "7F000001000155D9B8F01F936F6A0077",
    ]
    properties = [one.request.command.ext_fields["i"] for one in outcome.exchanges if one.request]
    assert all("traceparent\x0100-" in one for one in properties)


@pytest.mark.parametrize("name", ["rocketmq-get-routeinfo-by-topic"])
def test_routes(decoded: Decoded) -> None:
    _, outcome = decoded
    bodies = [one.response.body for one in outcome.exchanges if one.response]
    assert all(b"brokerAddrs" in body and b"{0:" in body for body in bodies)
