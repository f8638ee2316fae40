"""What a peer wrote cannot become more rows or bytes than it earned."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors import budget
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.findings import Finding, FindingKind
from dissectors.message_rows.decisions import MAX_ACKNOWLEDGED, MAX_POPPED
from dissectors.message_rows.message_table import MessageTable
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.sysflag import UNWRAP_BITS
from dissectors.rows.message_record import MessageRecord
from tests.traffic.calls import OK, Calls, part
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send
from tests.traffic.talk import Talk


def rows_of(talk: Talk, path: Path, body_limit: int = 0) -> list[MessageRecord]:
    path.write_bytes(pcap_of(talk.segments))
    decode = Decode([str(path)], DecodeOptions(messages=True, body_limit=body_limit))
    rows: list[MessageRecord] = []
    for _ in decode.records():
        rows += [row for carried in decode.take_messages() for row in carried.messages]
    return rows


def said_in(path: Path, body_limit: int) -> int:
    decode = Decode([str(path)], DecodeOptions(messages=True, body_limit=body_limit))
    for _ in decode.records():
        decode.take_messages()
    return decode.stats.finding_counts.get(FindingKind.BAD_MESSAGE, 0)


@pytest.mark.slow
def test_an_acknowledgement_of_everything(tmp_path: Path) -> None:
    bits = base64.b64encode(b"\xff" * 8000).decode()
    entry = {"c": "g", "t": "T", "so": 0, "q": 0, "r": "0", "b": bits}
    for entries, wanted in ((1, MAX_POPPED), (300, MAX_ACKNOWLEDGED)):
        body = json.dumps({"acks": [entry | {"q": n} for n in range(entries)]}).encode()
        asked = Command(200151, 7, body=body)
        talk = Talk().open().say(0, asked.frame).say(1, asked.answer().frame)
        assert len(rows_of(talk, tmp_path / "acks.pcap")) == wanted


def test_numbers_beyond_64_bits_are_unknown(tmp_path: Path) -> None:
    most = (1 << 63) - 1
    entry = {"c": "g", "t": "T", "so": most, "q": 10**30, "r": "0", "b": "Aw=="}
    acks = Command(200151, 1, body=json.dumps({"acks": [entry]}).encode())
    item = bytes.fromhex("00000017") + bytes(12) + bytes.fromhex("00000001") + b"x" + bytes(2)
    batch = replace(send(2, item * 2), code=320)
    stored = batch.answer(ext={"msgId": "A,B", "queueId": "0", "queueOffset": str(most)})
    talk = Talk().open()
    for asked, answer in ((acks, acks.answer()), (batch, stored)):
        talk = talk.say(0, asked.frame).say(1, answer.frame)
    calls = Calls()
    receipt = f"1 {10**17} {10**17} 1 0 broker-a 0 1 2"
    stream = calls.begin("ChangeInvisibleDuration")
    calls.data(0, stream, part(1, part(2, "g")) + part(2, part(2, "T")), ends=True)
    calls.headers(1, stream, [(":status", "200")])
    calls.data(1, stream, OK + part(2, receipt))
    calls.headers(1, stream, [("grpc-status", "0")], ends=True)
    rows = rows_of(talk, tmp_path / "numbers.pcap") + rows_of(calls.talk(), tmp_path / "calls.pcap")
    assert [(row.queue_id, row.queue_offset) for row in rows[:4]] == [
        (None, most),
        (None, None),
        (0, most),
        (0, None),
    ]
    assert rows[4].deliver_time is None


def test_bodies_that_decompress_to_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FREE_BYTES", 1 << 20)
    bomb = zlib.compress(bytes(4 << 20), 9)
    talk = Talk().open()
    for number in range(20):
        asked = replace(send(number, bomb), ext=send(number).ext | {"f": "1"})
        talk = talk.say(0, asked.frame).say(1, asked.answer().frame)
    rows = rows_of(talk, tmp_path / "bombs.pcap", body_limit=4 << 20)
    assert said_in(tmp_path / "bombs.pcap", 4 << 20) == 1
    made = sum(len(row.body or "") for row in rows)
    assert len(rows) == 20
    earned = budget.MOST_TIMES * 20 * len(bomb) + 20 * budget.EACH
    assert made <= 4 / 3 * ((1 << 20) + earned) + 20 * 4


def test_a_compressed_batch_makes_no_more_rows_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "FREE_BYTES", 1 << 20)
    item = bytes.fromhex("00000017") + bytes(12) + bytes.fromhex("00000001") + b"x" + bytes(2)
    packed = zlib.compress(item * 5000, 9)
    whole = StoredMessage("T", packed, {}, sys_flag=UNWRAP_BITS | 0x301, born_timestamp=1)
    talk = Talk(mss=60_000).open()
    for number in range(4):
        asked = Command(11, number, ext={"topic": "T", "consumerGroup": "g"})
        answer = asked.answer(body=encode_message(whole))
        talk = talk.say(0, asked.frame).say(1, answer.frame)
    rows = rows_of(talk, tmp_path / "batches.pcap")
    assert 1000 < len(rows) < 1500
    assert said_in(tmp_path / "batches.pcap", 0) == 1


LONG = "g" * 20_000


def pull_of(record: StoredMessage, times: int, group: str) -> Talk:
    ext = {"consumerGroup": group, "topic": "T", "queueId": "0", "queueOffset": "0"}
    asked = Command(11, 5, ext=ext)
    answer = asked.answer(body=encode_message(record) * times)
    return Talk(mss=60_000).open().say(0, asked.frame).say(1, answer.frame).close()


def acks_of(entries: int, topic: str) -> Talk:
    bits = base64.b64encode(b"\xff" * 4).decode()
    entry = {"c": "g", "t": topic, "so": 0, "q": 0, "r": "0", "b": bits}
    asked = Command(200151, 7, body=json.dumps({"acks": [entry] * entries}).encode())
    return Talk(mss=60_000).open().say(0, asked.frame).say(1, asked.answer().frame).close()


def inner_batch(topic: str) -> Talk:
    item = bytes.fromhex("00000017") + bytes(12) + bytes.fromhex("00000001") + b"x" + bytes(2)
    whole = StoredMessage(topic, item * 20_000, {}, sys_flag=UNWRAP_BITS, born_timestamp=1)
    return pull_of(whole.sealed(), 1, "g")


@pytest.mark.parametrize(
    "talk",
    [
        pull_of(StoredMessage("T", b"", {}, born_timestamp=1), 20_000, LONG),
        acks_of(100, LONG),
        inner_batch(LONG),
    ],
    ids=("pull", "acknowledgements", "inner-batch"),
)
@pytest.mark.parametrize("form", ["rows", "lines", "columns"])
def test_names_that_many_rows_repeat_take_of_the_room(
    talk: Talk, form: str, tmp_path: Path
) -> None:
    """The product of a long name and many rows is bounded, however small its factors are."""
    most = 64 * 1024 * 1024
    path = tmp_path / "long.pcap"
    path.write_bytes(pcap_of(talk.segments))
    decode = Decode([str(path)], DecodeOptions(messages=True))
    table = MessageTable()
    forms = {"rows": lambda: None, "lines": table.as_lines, "columns": table.as_columns}
    waits = forms[form]()
    findings: list[Finding] = []
    rows: list[MessageRecord] = []
    for batch in decode.exchanges():
        for one, row in zip(batch, decode.rows_of(batch), strict=True):
            rows += table.rows_of(one.request, one.response, row, findings)
    count = len(rows) if waits is None else waits.waiting
    assert 1 < count <= 2 + most // (len(LONG) - 1024) // 6
    assert [one.kind for one in findings] == [FindingKind.BAD_MESSAGE]
    assert table.take_most_spent() == budget.FREE_BYTES


def test_a_long_client_id_is_not_repeated_whole(tmp_path: Path) -> None:
    beat = Command(34, 1, body=json.dumps({"clientID": LONG}).encode())
    talk = Talk().open().say(0, beat.frame).say(1, beat.answer().frame)
    for number in range(2, 5):
        talk = talk.say(0, send(number).frame).say(1, send(number).answer().frame)
    rows = rows_of(talk.close(), tmp_path / "client.pcap")
    assert [row.client_id for row in rows] == [LONG[:400]] * 3
