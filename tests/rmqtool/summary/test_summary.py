"""The summary: right counts, and bounded memory for any capture."""

from __future__ import annotations

import json

from dissectors.decode.pipeline import CaptureStats, DecodeStats
from dissectors.findings import Finding, FindingKind
from rmqtool.summary.summary import MAX_KEYS, MAX_PEERS, OTHERS, ClientKey, Summary
from rmqtool.summary.summary_json import summary_json
from rmqtool.summary.summary_text import summary_lines
from rmqtool.ui.console import UNLIMITED, Terminal, cells
from tests.dissectors.made_rows import START, record, unanswered

FILE = Terminal(False, UNLIMITED, False)


def summary() -> Summary:
    found = Summary()
    found.add([record(latency_us=1000 + number) for number in range(100)])
    refused = {"response_code": 2, "response_name": "SYSTEM_BUSY", "remark": "busy\x1b[2J"}
    found.add([record(latency_us=3_000_000, response_packet=77, **refused)])
    found.add([unanswered(), record(status="oneway", response_code=None, latency_us=None)])
    pull = {"request_name": "PULL_MESSAGE", "response_code": 19, "response_name": "PULL_NOT_FOUND"}
    found.add([record(latency_us=20_000_000, **pull)])
    return found


def stats() -> DecodeStats:
    return DecodeStats(
        captures=[CaptureStats("a.pcap", "pcap", "gzip", 9, 999, START, START + 5 * 10**9)],
        conversations=3,
        rocketmq_conversations=1,
        not_decoded={"TLS": 2},
        frames=205,
        commands=205,
        gaps=1,
        gap_bytes=1448,
        finding_counts={FindingKind.MIDSTREAM: 1, FindingKind.BAD_HEADER: 2},
    )


def test_operations_answers_and_peers() -> None:
    found = summary()
    send = found.operations.rows["SEND_MESSAGE_V2"]
    assert (send.count, send.failed, send.unanswered, send.oneway) == (103, 1, 1, 1)
    assert abs((send.latency.percentile(50) or 0) - 1050) < 15
    assert found.operations.rows["PULL_MESSAGE"].failed == 0
    assert found.responses.rows[(2, "SYSTEM_BUSY")].failed == 1
    assert found.responses.rows[(19, "PULL_NOT_FOUND")].failed == 0
    client = found.clients.rows[ClientKey("10.0.0.5", "JAVA", "V4_9_4")]
    assert (client.count, client.failed, len(client.conversations)) == (104, 1, 1)
    assert found.servers.rows["10.0.0.1:10911"].count == 102  # neither oneway nor long poll
    assert max(latency for latency, _, _ in found.slowest) == 3_000_000
    assert found.exchanges == 104


def test_the_text_has_it_all() -> None:
    found = summary()
    info = Finding(FindingKind.BAD_HEADER, "no JSON\x1b", START, 8, 0, 12)
    found.add_findings([info, info._replace(detail="second")])
    text = "\n".join(summary_lines(found, stats(), ["a.pcap"], FILE))
    assert "a.pcap: pcap gzip, 9 packets, 999 B, 2026-11-20 10:00:00.000 to 10:00:05.000" in text
    assert "3 conversations: 1 RocketMQ, 2 not decoded (TLS 2)" in text
    assert "1 gap, 1,448 bytes not captured" in text
    assert "104 exchanges: 102 answered, 1 unanswered, 1 oneway" in text
    assert r"packet 77: busy\x1b[2J" in text
    assert r"packet 8: no JSON\x1b" in text
    assert text.index("BAD_HEADER") < text.index("MIDSTREAM")
    assert "\x1b" not in text


def test_the_text_fits_a_terminal() -> None:
    for width in (60, 80, 120):
        lines = summary_lines(summary(), stats(), ["a.pcap"], Terminal(True, width, False))
        assert max(map(cells, lines)) <= width


def test_nothing_at_all() -> None:
    lines = summary_lines(Summary(), DecodeStats(), [], FILE)
    assert lines[-3:] == [
        "  0 conversations: 0 RocketMQ",
        "  0 commands in 0 frames; no gaps",
        "  0 exchanges",
    ]


def test_the_asking_end_of_a_conversation_is_the_requester() -> None:
    found = Summary()
    back = record(client_address="10.0.0.1:10911", server_address="10.0.0.5:51234")
    found.add([back, record(), record()])
    lines = summary_lines(found, stats(), ["a.pcap"], FILE)
    start = lines.index("Conversations")
    assert lines[start + 2].split()[1:3] == ["10.0.0.5:51234", "10.0.0.1:10911"]


def test_the_json_has_the_same_numbers() -> None:
    found = summary()
    found.add_findings([Finding(FindingKind.BAD_HEADER, "half \ud800", START, 8, 0, 12)])
    decoded = json.loads(summary_json(found, stats()))
    assert decoded["exchanges"] == 104
    assert decoded["captures"][0]["first_time"] == "2026-11-20T10:00:00.000000Z"
    send = next(row for row in decoded["operations"] if row["request_name"] == "SEND_MESSAGE_V2")
    assert (send["count"], send["failed"], send["max_us"]) == (103, 1, 3_000_000)
    assert decoded["responses"][-1]["example"]["response_packet"] == 77
    assert decoded["clients"][0]["connections"] == 1
    assert decoded["slowest"][0]["latency_us"] == 3_000_000
    first = {row["kind"]: row["first"] for row in decoded["findings"]}
    assert first["BAD_HEADER"] == {"packet": 8, "conversation": 0, "detail": "half ?"}


def test_memory_is_bounded() -> None:
    found = Summary()
    found.add(
        [
            record(
                request_name=f"UNKNOWN({number})",
                response_name=f"UNKNOWN({number})",
                response_code=number,
                client_address=f"10.{number >> 8}.{number & 255}.1:1",
                server_address=f"10.{number >> 8}.{number & 255}.2:1",
                conversation=number,
            )
            for number in range(5000)
        ]
    )
    assert len(found.operations.rows) == MAX_KEYS + 1
    assert found.operations.rows[OTHERS].count == 5000 - MAX_KEYS
    assert len(found.servers.rows) == MAX_KEYS + 1
    assert len(found.responses.rows) == MAX_KEYS + 1
    assert len(found.clients.rows) == MAX_PEERS + 1
    assert len(found.conversations.rows) == MAX_PEERS + 1
