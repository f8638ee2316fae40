"""`--list-messages` and the table of messages of a decoded log: the same rows in all forms."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.decode.decoded_log import FORMS, PARQUET, read_manifest
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.rows.message_record import MESSAGE_COLUMNS
from tests.replay.captured_sends import captured_sends
from tests.rmqtool.command import EVIL, ROOT, rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send
from tests.traffic.talk import Talk

SAMPLE = ROOT / "samples" / "push-retry-dlq-5x.pcap"
NAMES = [column.name for column in MESSAGE_COLUMNS]


def listed(*arguments: str | Path) -> list[dict[str, object]]:
    ended = rmqtool("decode", "pcap", *arguments, "--list-messages", "-T", "jsonl")
    assert ended.status == 0, ended
    return [json.loads(line) for line in ended.out.splitlines()]


def _in_log(folder: Path, form: str) -> list[dict[str, object]]:
    files = sorted((folder / "messages").iterdir())
    if form == PARQUET:
        parquet = pytest.importorskip("pyarrow.parquet")
        return [row for file in files for row in parquet.read_table(file).to_pylist()]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_a_log_has_the_listed_messages(tmp_path: Path, form: str) -> None:
    wanted = listed(SAMPLE)
    assert [*wanted[0]] == NAMES
    ended = rmqtool("decode", "pcap", SAMPLE, "-T", form, "-o", f"{tmp_path / 'log'}/")
    assert ended.status == 0, ended
    found = _in_log(tmp_path / "log", form)
    times = {column.name for column in MESSAGE_COLUMNS if column.type == "time"}
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert {n: v for n, v in one.items() if n not in times} == {
            n: v for n, v in other.items() if n not in times
        }
        if form != PARQUET:
            assert one == other
    manifest = read_manifest(tmp_path / "log")
    assert manifest.messages == sum(part.rows for part in manifest.message_parts) == len(wanted)


def test_a_window_selects_by_the_time_of_the_message() -> None:
    every = listed(SAMPLE)
    # of a message whose poll began long before
    times = [str(row["time"]) for row in every if int(str(row["latency_us"] or 0)) > 100_000]
    since, until = min(times), max(times)
    wanted = [row for row in every if since <= str(row["time"]) < until]
    assert 0 < len(wanted) < len(every)
    for window in ((since, until), (since[11:-1], until[11:-1])):
        assert listed(SAMPLE, "--since", window[0], "--until", window[1]) == wanted
    assert listed(SAMPLE, "--since", since, "--until", until, "--jobs", "2") == wanted


def test_a_log_without_messages_says_so(tmp_path: Path) -> None:
    options = ("-T", "jsonl", "-o", f"{tmp_path / 'log'}/", "--no-message-rows")
    assert rmqtool("decode", "pcap", SAMPLE, *options).status == 0
    assert not (tmp_path / "log" / "messages").exists()
    assert read_manifest(tmp_path / "log").messages is None


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.slow
def test_a_filtered_log_has_the_messages_of_its_exchanges(tmp_path: Path, jobs: str) -> None:
    only = ("-Y", "request_name == CONSUMER_SEND_MSG_BACK", "-j", jobs)
    options = ("-T", "jsonl", "-o", f"{tmp_path / 'log'}/", *only)
    assert rmqtool("decode", "pcap", SAMPLE, *options).status == 0
    found = _in_log(tmp_path / "log", "jsonl")
    assert found == [row for row in listed(SAMPLE) if row["event"] == "returned"]


def test_filters_test_the_columns_of_messages() -> None:
    rows = listed(SAMPLE)
    key = next(row["unique_key"] for row in rows if row["keys"] == "key-3")
    assert listed(SAMPLE, "-Y", "id == key-3 and event == delivered") == [
        row for row in rows if row["unique_key"] == key and row["event"] == "delivered"
    ]
    assert listed(SAMPLE, "-Y", "client == 127.0.0.1@consumer and reconsume_times >= 2") == [
        row for row in rows if row["reconsume_times"] == 2
    ]
    wrong = rmqtool("decode", "pcap", SAMPLE, "--list-messages", "-Y", "event == eaten")
    assert wrong.status == 2
    assert "never" in wrong.err
    nowhere = rmqtool("decode", "pcap", SAMPLE, "--list-messages", "-Y", "opaque == 1")
    assert "exchanges have it" in nowhere.err


@pytest.mark.parametrize("name", ["send-compressed-5x", "send-batch-4x"])
def test_bodies_that_are_asked_for_are_those_that_were_sent(name: str) -> None:
    sample = ROOT / "samples" / f"{name}.pcap"
    wanted = captured_sends(sample)
    rows = {
        row["unique_key"]: row
        for row in listed(sample, "--body-limit", "1MiB")
        if row["event"] == "stored"
    }
    assert rows.keys() == wanted.keys()
    for key, sent in wanted.items():
        assert rows[key]["body_form"] == "text"
        assert str(rows[key]["body"]).encode() == sent.body
    short = listed(sample, "--body-limit", "5")
    assert {len(str(row["body"])) for row in short if row["event"] == "stored"} == {5}
    assert all(row["body"] is None for row in listed(sample))


def test_what_the_wire_says_is_inert(tmp_path: Path) -> None:
    properties = f"KEYS\x01{EVIL}\x02TAGS\x01=cmd|calc\x02UNIQ_KEY\x01-2+3\x1b[2J"
    asked = replace(send(7), ext=send(7).ext | {"b": EVIL, "i": properties})
    talk = Talk().open().say(0, asked.frame).say(1, asked.answer(1, remark=EVIL).frame).close()
    path = tmp_path / "evil.pcap"
    path.write_bytes(pcap_of(talk.segments))
    shown = rmqtool("decode", "pcap", path, "--list-messages")
    assert shown.status == 0, shown
    assert not any(char in shown.out for char in "\x1b\x9b\u202e")
    as_csv = rmqtool("decode", "pcap", path, "--list-messages", "-T", "csv")
    (row,) = csv.DictReader(io.StringIO(as_csv.out))
    assert [*row] == NAMES
    assert row["tags"] == "'=cmd|calc"
    assert row["unique_key"].startswith("'-2+3")
    assert not any(char in as_csv.out for char in "\x1b\x9b\u202e")
    (exact,) = listed(path)
    assert exact["keys"] == EVIL


def test_a_parquet_file_of_messages(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "messages.parquet"
    ended = rmqtool("decode", "pcap", SAMPLE, "--list-messages", "-o", path)
    assert ended.status == 0, ended
    assert "messages →" in ended.err
    table = parquet.read_table(path)
    assert table.schema.names == NAMES
    assert table.num_rows == len(listed(SAMPLE))


def test_it_is_said_where_findings_about_messages_are(tmp_path: Path) -> None:
    """A summary makes no rows of messages, so it is not named as what says more."""
    ext = {"consumerGroup": "g" * 20_000, "topic": "T", "queueId": "0", "queueOffset": "0"}
    asked = Command(11, 5, ext=ext)
    answer = asked.answer(body=encode_message(StoredMessage("T", b"", {}, born_timestamp=1)) * 700)
    talk = Talk(mss=60_000).open().say(0, asked.frame).say(1, answer.frame).close()
    path = tmp_path / "long.pcap"
    path.write_bytes(pcap_of(talk.segments))
    folder = f"{tmp_path / 'log'}/"
    for options in (["--list-messages", "-T", "jsonl"], ["-T", "jsonl", "-o", folder]):
        said = rmqtool("decode", "pcap", path, *options).err
        assert "BAD_MESSAGE 1; for details" in said
        assert "--summary" not in said
    lines = (tmp_path / "log" / "findings.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [one["kind"] for one in found] == ["BAD_MESSAGE"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "no message in 1 RocketMQ conversation"),
        (["--since", "2000-01-01"], "no message was seen between --since and --until"),
    ],
)
def test_commands_without_a_message(tmp_path: Path, options: list[str], said: str) -> None:
    asked = Command(105, 5, ext={"topic": "T"})
    talk = Talk().open().say(0, asked.frame).say(1, asked.answer().frame).close()
    path = tmp_path / "routes.pcap"
    path.write_bytes(pcap_of(talk.segments))
    ended = rmqtool("decode", "pcap", path, "--list-messages", *options)
    assert ended.status == 0
    assert f"rmqtool: {said}\n" in ended.err
