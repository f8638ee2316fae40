"""Parts in the rows and trees of real traffic, against what else the same traffic says of them.

An id has in it what the connection, the header or another command says too: the broker's address,
the commit log offset, the time of the message. Where nothing else says it, the bytes are cut by
hand.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from dissectors.decode.command_row import CommandLineWriter
from dissectors.decode.pipeline import Decode
from tests.rmqtool.command import rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send
from tests.traffic.talk import Talk

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
Row = dict[str, object]


@cache
def rows(name: str) -> list[Row]:
    path = SAMPLES / f"{name}.pcap"
    if not path.is_file():
        pytest.skip("no samples here")
    return rows_of(path)


def rows_of(path: Path) -> list[Row]:
    decode = Decode([str(path)])
    return [
        json.loads(CommandLineWriter(decode.sources).line_of(seen))
        for batch in decode.commands()
        for seen in batch
    ]


def fields(row: Row) -> Row:
    header = row["header"]
    assert isinstance(header, dict)
    return header


def parts(row: Row, field: str) -> Row:
    found = row["header_parts"]
    assert isinstance(found, dict)
    assert isinstance(found[field], dict)
    return dict(found[field])


def with_field(name: str, field: str, *, code: str | None = None) -> list[Row]:
    found = [
        row
        for row in rows(name)
        if fields(row).get(field) and code in (None, row["name"], row["request_name"])
    ]
    assert found
    return found


def messages(name: str) -> list[Row]:
    return [message for row in rows(name) for message in row["messages"] or ()]  # type: ignore[attr-defined]


def cut_by_hand(text: str) -> Row:
    """An id of a client with an IPv4 address, less its time."""
    assert len(text) == 32
    return {
        "address": ".".join(str(int(text[at : at + 2], 16)) for at in (0, 2, 4, 6)),
        "pid": int(text[8:12], 16),
        "loaderHash": text[12:20].lower(),
        "counter": int(text[28:], 16),
    }


def time_by_hand(text: str) -> int:
    """Its time: all samples were recorded in one month, by clients in UTC."""
    month = datetime(2026, 11, 1, tzinfo=UTC)
    return int(month.timestamp()) * 1000 + int(text[20:28], 16)


@pytest.mark.parametrize(
    "name", ["pop-calls-5x", "send-sync-5x", "transaction-5x", "send-timer-5x"]
)
def test_ids_in_messages(name: str) -> None:
    found = messages(name)
    assert found
    for message in found:
        text = message["properties"]["UNIQ_KEY"]  # type: ignore[index]
        key = message["parts"]["UNIQ_KEY"]  # type: ignore[index]
        assert key == cut_by_hand(text) | {"bornTime": time_by_hand(text)}
        assert 0 <= message["bornTimestamp"] - key["bornTime"] < 100


@pytest.mark.parametrize("name", ["send-sync-5x", "transaction-5x", "send-timer-5x"])
def test_ids_in_send_responses(name: str) -> None:
    offsets = []
    for row in with_field(name, "msgId", code="SEND_MESSAGE_V2"):
        found = parts(row, "msgId")
        assert (
            found["storeHost"] == row["server_address"]
        )  # the broker that answers is the one that stored
        assert f"{found['commitLogOffset']:016X}" == str(fields(row)["msgId"])[-16:]
        offsets.append(found["commitLogOffset"])
        text = str(fields(row)["transactionId"])
        key = parts(row, "transactionId")
        assert key == cut_by_hand(text) | {"bornTime": time_by_hand(text)}
    assert offsets == sorted(offsets)  # type: ignore[type-var]
    assert len(set(offsets)) == len(offsets)


def test_ids_of_transactions() -> None:
    stored = {
        parts(row, "transactionId")["counter"]: parts(row, "msgId")["commitLogOffset"]
        for row in with_field("transaction-5x", "msgId", code="SEND_MESSAGE_V2")
    }
    ends = with_field("transaction-5x", "msgId", code="END_TRANSACTION")
    ends = [row for row in ends if row["kind"] != "response"]
    checks = with_field("transaction-5x", "offsetMsgId", code="CHECK_TRANSACTION_STATE")
    for row in ends + checks:
        text = str(fields(row)["msgId"])
        assert parts(row, "msgId") == cut_by_hand(text) | {"bornTime": time_by_hand(text)}
        assert parts(row, "transactionId") == parts(row, "msgId")
    first = [row for row in ends if not fields(row).get("fromTransactionCheck")]
    assert first
    for row in first:
        assert fields(row)["commitLogOffset"] == stored[parts(row, "msgId")["counter"]]
    for row in checks:
        found = parts(row, "offsetMsgId")
        assert found["commitLogOffset"] == fields(row)["commitLogOffset"]
        assert found["storeHost"] == row["client_address"]  # a broker asks


def test_receipts_and_lists_of_pop() -> None:
    popped = [
        row
        for row in with_field("pop-calls-5x", "popTime", code="POP_MESSAGE")
        if row["kind"] == "response" and row["messages"]
    ]
    times = {fields(row)["popTime"] for row in popped}
    for row in popped:
        stored = row["messages"]
        assert isinstance(stored, list)
        given = row["header_parts"]
        assert isinstance(given, dict)
        listed = [
            (entry["queueId"], offset)
            for entry in given["msgOffsetInfo"]
            for offset in entry["offsets"]
        ]
        assert sorted(listed) == sorted((one["queueId"], one["queueOffset"]) for one in stored)
        for entry in given["startOffsetInfo"]:
            least = min(offset for queue, offset in listed if queue == entry["queueId"])
            assert (entry["startOffset"], entry["topicKind"]) == (least, "normal")
    for row in with_field("pop-calls-5x", "extraInfo"):
        receipt, header = parts(row, "extraInfo"), fields(row)
        assert receipt["queueId"] == header["queueId"]
        assert receipt["queueOffset"] == header["offset"]
        assert receipt["brokerName"] == header["bname"]
        assert receipt["invisibleTime"] == 10_000
        words = str(header["extraInfo"]).split(" ")
        assert [receipt["startOffset"], receipt["popTime"]] == [int(words[0]), int(words[1])]
        assert receipt["popTime"] in times


def test_recall_handles() -> None:
    given = {
        fields(row)["recallHandle"]
        for row in with_field("send-timer-5x", "recallHandle", code="SEND_MESSAGE_V2")
    }
    recalls = {
        row["opaque"]: row
        for row in rows("send-timer-5x")
        if row["name"] == "RECALL_MESSAGE" and row["kind"] == "request"
    }
    assert len(recalls) == 2
    for request in recalls.values():
        text = str(fields(request)["recallHandle"])
        assert text in given
        handle = parts(request, "recallHandle")
        words = base64.urlsafe_b64decode(text).decode().split(" ")
        own = [handle[name] for name in ("version", "topic", "brokerName", "messageId")]
        assert [*own[:3], str(handle["timestamp"]), own[3]] == words
        assert handle["topic"] == fields(request)["topic"]
        assert handle["parts"]["messageId"]["pid"] == int(words[4][8:12], 16)  # type: ignore[index]
    answers = [row for row in rows("send-timer-5x") if row["request_name"] == "RECALL_MESSAGE"]
    for answer in answers:
        handle = parts(recalls[answer["opaque"]], "recallHandle")
        assert handle["messageId"] == fields(answer)["msgId"]
        assert parts(answer, "msgId") == handle["parts"]["messageId"]  # type: ignore[index]


def test_what_does_not_parse_has_no_parts(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    ext = send(1).ext | {"i": "UNIQ_KEY\x01my own id\x02traceparent\x0100-0-0-00\x02"}
    talk = Talk().open().say(0, Command(310, 1, ext=ext, body=b"x").frame)
    talk.say(0, Command(200051, 2, ext={"extraInfo": "0 1 x", "topic": "T"}).frame)
    path.write_bytes(pcap_of(talk.segments))
    sent, ack = rows_of(path)
    assert (sent["header_parts"], ack["header_parts"]) == (None, None)
    assert "parts" not in sent["messages"][0]  # type: ignore[index]
    out = rmqtool("decode", "pcap", path, "-V").out
    assert "          UNIQ_KEY: my own id\n          traceparent: 00-0-0-00\n" in out
    assert "      extraInfo: 0 1 x\n" in out


def test_the_tree_shows_parts_below_their_text() -> None:
    if not SAMPLES.is_dir():
        pytest.skip("no samples here")
    out = rmqtool("decode", "pcap", SAMPLES / "pop-calls-5x.pcap", "-V").out
    lines = out.splitlines()
    at = lines.index("          UNIQ_KEY: C000020A07494E0E2F2A67872EEA0003")
    assert lines[at + 1 : at + 6] == [
        "            address: 192.0.2.10",
        "            pid: 1865",
        "            loaderHash: 4e0e2f2a",
        "            bornTime: 1795228112618 (2026-11-21T02:28:32.618Z)",
        "            counter: 3",
    ]
    at = lines.index("      extraInfo: 0 1795228121168 10000 0 0 broker-a 2 0")
    assert lines[at + 1 : at + 9] == [
        "        startOffset: 0",
        "        popTime: 1795228121168 (2026-11-21T02:28:41.168Z)",
        "        invisibleTime: 10000 (10s)",
        "        reviveQid: 0",
        "        topicKind: normal",
        "        brokerName: broker-a",
        "        queueId: 2",
        "        queueOffset: 0",
    ]
    out = rmqtool("decode", "pcap", SAMPLES / "send-timer-5x.pcap", "-V").out
    for line in (
        "        timestamp: 1795227814001 (2026-11-21T02:23:34.001Z)",
        "        messageId: C000020A02404E0E2F2A6782981C0003",
        "          pid: 576",
    ):
        assert line in out.splitlines()
    out = rmqtool("decode", "pcap", SAMPLES / "transaction-5x.pcap", "-V").out
    assert "        storeHost: 127.77.0.11:10911\n        commitLogOffset: 37691\n" in out


@pytest.mark.parametrize(("version", "zone"), [(212, None), (401, -240)])
def test_the_zone_of_a_client_that_may_count_from_noon(
    version: int, zone: int | None, tmp_path: Path
) -> None:
    """4.0.0 in Shanghai, started in the afternoon: its ids are 12 hours early."""
    month = datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000
    born = round(datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp() * 1000)
    offset = born - round(month) + (8 - 12) * 3_600_000
    key = f"0A000005{1234:04X}{0x1B2A3C4D:08X}{offset:08X}0001"
    request = send(1)
    fields = {**request.ext, "g": str(born), "i": f"UNIQ_KEY\x01{key}\x02"}
    talk = Talk().open().say(0, replace(request, version=version, ext=fields).frame)
    path = tmp_path / "noon.pcap"
    path.write_bytes(pcap_of(talk.segments))
    for messages in [row["messages"] for row in rows_of(path)]:
        assert isinstance(messages, list)
        found = messages[0]["parts"]["UNIQ_KEY"]
        assert found.get("utcOffsetMinutes") == zone
        assert found["bornTime"] == born
