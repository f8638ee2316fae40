"""Commands as rows: nothing left out, nothing secret in, whatever the bodies hold."""

from __future__ import annotations

import base64
import gc
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.decode.command_row import (
    CommandLineWriter,
    shown_bytes,
    taken_apart,
    write_command,
)
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.rows.command_record import COMMAND_COLUMNS, CommandRow
from tests.dissectors.rows.named_sink import NamedSink
from tests.pure import implementation
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, route_query, send, sent
from tests.traffic.talk import Talk

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def seen_in(talk: Talk, folder: Path) -> list[CommandSeen]:
    path = folder / "a.pcap"
    path.write_bytes(pcap_of(talk.segments))
    return [seen for batch in Decode([str(path)]).commands() for seen in batch]


def rows_of(talk: Talk, folder: Path, **options: int) -> list[dict[str, object]]:
    return [
        json.loads(CommandLineWriter(["a.pcap"], **options).line_of(seen))
        for seen in seen_in(talk, folder)
    ]


def test_columns_are_those_of_the_row() -> None:
    assert tuple(column.name for column in COMMAND_COLUMNS) == CommandRow.__struct_fields__


def test_request_and_response(tmp_path: Path) -> None:
    talk = Talk().open().say(0, send(7).frame).say(1, sent(7, 12).frame)
    request, response = rows_of(talk, tmp_path)
    assert request["kind"] == "request"
    assert (request["name"], request["code"], request["opaque"]) == ("SEND_MESSAGE_V2", 310, 7)
    assert (request["capture"], request["packet"]) == ("a.pcap", 4)
    assert request["time"] == "2026-11-20T10:00:00.000300Z"
    assert (request["client_address"], request["server_address"]) == (
        "10.0.0.5:51234",
        "10.0.0.1:10911",
    )
    assert request["header_name"] == "SendMessageRequestHeaderV2"
    assert request["ext_fields"]["e"] == "2"  # type: ignore[index]
    assert request["header"]["queueId"] == 2  # type: ignore[index]
    assert request["header"]["producerGroup"] == "producers"  # type: ignore[index]
    assert request["body"]["kind"] == "raw-message"  # type: ignore[index]
    (message,) = request["messages"]  # type: ignore[misc]
    assert (message["body"], message["bodyForm"]) == ("hello", "text")
    assert request["latency_us"] is None
    assert response["kind"] == "response"
    assert (response["request_packet"], response["request_code"]) == (4, 310)
    assert response["request_name"] == "SEND_MESSAGE_V2"
    assert response["latency_us"] == 100
    assert response["header"]["queueOffset"] == 12  # type: ignore[index]
    assert response["body"] is None


def test_credentials_are_masked_in_both_headers(tmp_path: Path) -> None:
    secrets = {
        "AccessKey": "RocketMQKey",
        "Signature": "c2lnbmF0dXJl",
        "SecurityToken": "token-of-mine",
    }
    signed = send(1)
    talk = Talk().open().say(0, Command(310, 1, ext=signed.ext | secrets, body=b"x").frame)
    admin = Command(50, 2, ext={"accessKey": "RocketMQKey", "secretKey": "12345678"})
    talk.say(0, admin.frame)
    text = json.dumps(rows_of(talk, tmp_path))
    for secret in (*secrets.values(), "12345678"):
        assert secret not in text
    assert "Rock***" in text or "Roc***" in text


def test_credentials_are_masked_in_whatever_case_they_are_written(tmp_path: Path) -> None:
    names = ("accesskey", "SIGNATURE", "securitytoken", "SecretKey", "password", "userPassword")
    secrets = {name: f"hidden-{at}-hidden" for at, name in enumerate(names)}
    config = "".join(f"{name}={value}\n" for name, value in secrets.items()).encode()
    talk = Talk().open().say(0, Command(310, 1, ext=send(1).ext | secrets, body=b"x").frame)
    talk.say(0, Command(9999, 2, ext=secrets).frame).say(1, Command(0, 2, 1, ext=secrets).frame)
    talk.say(0, Command(25, 3, body=config).frame)
    text = json.dumps(rows_of(talk, tmp_path))
    assert "-hidden" not in text
    assert text.count("***") >= 3 * len(names)


@pytest.mark.parametrize(
    ("body", "form", "shown"),
    [
        (b"plain \xc3\xa4", "text", "plain ä"),
        (b"\xff\xfe\x00", "base64", base64.b64encode(b"\xff\xfe\x00").decode()),
        (b"a\x00b", "base64", base64.b64encode(b"a\x00b").decode()),
    ],
)
def test_a_body_that_nobody_understands(tmp_path: Path, body: bytes, form: str, shown: str) -> None:
    talk = Talk().open().say(0, Command(9999, 1, body=body).frame)
    (row,) = rows_of(talk, tmp_path)
    given_body = row["body"]
    assert isinstance(given_body, dict)
    assert given_body["kind"] == "raw"
    assert (given_body["bodyForm"], given_body["body"]) == (form, shown)
    assert given_body["bodySize"] == len(body)
    assert given_body["bodyTruncated"] is False
    assert [info["kind"] for info in row["findings"]] == ["UNKNOWN_CODE"]  # type: ignore[attr-defined]


def test_body_limit(tmp_path: Path) -> None:
    talk = Talk().open().say(0, Command(9999, 1, body=b"abcdef").frame).say(0, send(2).frame)
    raw, sent_row = rows_of(talk, tmp_path, limit=3)
    assert raw["body"]["body"] == "abc"  # type: ignore[index]
    assert raw["body"]["bodyTruncated"] is True  # type: ignore[index]
    assert sent_row["messages"][0]["body"] == "hel"  # type: ignore[index]
    (nothing, _) = rows_of(talk, tmp_path, limit=0)
    assert nothing["body"]["body"] == ""  # type: ignore[index]
    assert nothing["body"]["bodySize"] == 6  # type: ignore[index]


@given(st.text(min_size=1, max_size=40), st.integers(0, 200))
def test_a_cut_text_stays_a_text(text: str, limit: int) -> None:
    data = text.encode()
    shown = shown_bytes(data, limit)
    if "\0" in text and limit > text.index("\0"):
        return
    assert shown["bodyForm"] == "text"
    assert text.startswith(str(shown["body"]))
    assert len(data[:limit]) - len(str(shown["body"]).encode()) <= 3


def test_a_body_that_decompresses_to_much_is_bounded(tmp_path: Path) -> None:
    bomb = zlib.compress(b"\0" * 60_000_000)
    ext = send(1).ext | {"f": "1"}
    talk = Talk().open().say(0, Command(310, 1, ext=ext, body=bomb).frame)
    (row,) = rows_of(talk, tmp_path)
    (message,) = row["messages"]  # type: ignore[misc]
    assert message["bodyTruncated"] is True
    assert len(message["body"]) < 6_000_000


def test_a_response_without_its_request(tmp_path: Path) -> None:
    talk = Talk().say(1, sent(1).frame).say(1, Command(0, 2, 1, body=b"{}").frame)
    first, second = rows_of(talk, tmp_path)
    assert first["request_name"] is None
    assert first["header"]["queueId"] == "2"  # type: ignore[index]
    assert second["body"]["problem"] == "its request was not captured"  # type: ignore[index]


def test_findings_that_only_the_row_shows(tmp_path: Path) -> None:
    ext = send(1).ext | {"e": "many"}
    talk = Talk().open().say(0, Command(310, 1, ext=ext, body=b"x").frame)
    query = route_query(2)
    talk.say(0, query.frame).say(1, query.answer(0, body=b'{"brokerDatas":[{').frame)
    rows = rows_of(talk, tmp_path)
    kinds = [[info["kind"] for info in row["findings"]] for row in rows]  # type: ignore[attr-defined]
    assert kinds == [["BAD_FIELD"], [], ["BAD_BODY"]]
    assert rows[0]["findings"][0]["severity"] == "warning"  # type: ignore[index]


def test_lines_leave_nothing_behind(tmp_path: Path) -> None:
    """A line of a tuple would leave its iterator, so that memory grew with the capture."""
    talk = Talk().open().say(0, send(1).frame).close()
    seen, writer = seen_in(talk, tmp_path)[0], CommandLineWriter(["a.pcap"])
    writer.line_of(seen)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        writer.line_of(seen)
    assert len(gc.get_objects()) - before < 100


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    header = b'{"code":9999,"opaque":1,"flag":0,"version":1,"language":"JAVA","remark":"x"}'
    talk = Talk().open().say(0, Command(9999, 1, body=b'{"a":"\\ud800"}').frame)
    assert header
    (row,) = rows_of(talk, tmp_path)
    assert row["body"]["kind"] in ("json", "raw")  # type: ignore[index]


@pytest.mark.skipif(implementation() == "compiled", reason="compiled: no sinks of others")
def test_values_are_named_as_the_columns_in_their_order(tmp_path: Path) -> None:
    talk = Talk().open().say(0, send(1).frame).say(1, sent(1).frame).close()
    sink = NamedSink(COMMAND_COLUMNS)
    for seen in seen_in(talk, tmp_path):
        write_command(sink, seen, ["a.pcap"], taken_apart(seen, 64), None)
    assert len(sink.rows) == 2


@pytest.mark.slow
def test_every_sample_becomes_rows() -> None:
    if not SAMPLES.is_dir():
        pytest.skip("no samples here")
    decode = Decode([str(SAMPLES)])
    count = 0
    for batch in decode.commands():
        for seen in batch:
            row = json.loads(CommandLineWriter(decode.sources, 64).line_of(seen))
            assert list(row) == list(CommandRow.__struct_fields__)
            count += 1
    assert count == decode.stats.commands
