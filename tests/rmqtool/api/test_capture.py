"""What programs ask of a capture: the same rows as the command line has, by the same names."""

from __future__ import annotations

import gc
import json
import tracemalloc
import warnings
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

import rmqtool
from rmqtool.api.tables.named import TABLES, table_named
from tests.rmqtool.command import rmqtool as command

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
SAMPLE = SAMPLES / "consumer-lag-5x.pcap"


def printed(*arguments: str | Path) -> list[dict[str, object]]:
    result = command("decode", "pcap", SAMPLE, "-T", "jsonl", *arguments)
    assert result.status == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_exchanges_are_those_of_the_command() -> None:
    found = list(rmqtool.read(SAMPLE).exchanges("latency > 50ms"))
    lines = printed("--where", "latency > 50ms")
    assert len(found) == len(lines) > 3
    assert [row.request_packet for row in found] == [line["request_packet"] for line in lines]
    assert [row.latency_us for row in found] == [line["latency_us"] for line in lines]


def test_commands_are_those_of_the_command() -> None:
    found = list(rmqtool.read(SAMPLE).commands("name = HEART_BEAT"))
    lines = printed("--commands", "--where", "name = HEART_BEAT")
    assert [json.loads(msgspec.json.encode(row)) for row in found] == lines
    assert len(lines) > 3


def test_messages_are_those_of_the_command() -> None:
    found = list(rmqtool.read(SAMPLE).messages("event = delivered"))
    lines = printed("--list-messages", "--where", "event = delivered")
    assert [row.unique_key for row in found] == [line["unique_key"] for line in lines]
    assert len(lines) > 3


@pytest.mark.parametrize("order", ["time", "latency"])
def test_sorted_rows_are_those_of_the_command(order: str, tmp_path: Path) -> None:
    capture = rmqtool.read(SAMPLE)
    log = rmqtool.read(capture.to_parquet(tmp_path / "log"))
    lines = printed("--sort", order, "--limit", "20")
    wanted = [(line["request_packet"], line["latency_us"]) for line in lines]
    for rows in (capture, log):
        found = rows.exchanges(sort=order, limit=20)
        assert [(row.request_packet, row.latency_us) for row in found] == wanted
    frame = capture.to_pandas(sort=order, limit=20)
    assert frame["request_packet"].tolist() == [packet for packet, _ in wanted]
    messages = printed("--list-messages", "--sort", order, "--limit", "20")
    found = capture.messages(sort=order, limit=20)
    assert [row.unique_key for row in found] == [line["unique_key"] for line in messages]


def test_an_order_that_there_is_not_is_an_error() -> None:
    capture = rmqtool.read(SAMPLE)
    with pytest.raises(rmqtool.Error, match="'size' is not an order"):
        capture.exchanges(sort="size")
    with pytest.raises(rmqtool.Error, match="only exchanges and messages can be sorted"):
        capture.to_arrow("connections", sort="time")


def test_bodies_come_where_they_are_asked_for() -> None:
    capture = rmqtool.read(SAMPLES / "send-sync-5x.pcap")
    assert {row.body for row in capture.messages()} == {None}
    assert {row.body for row in capture.messages(body_limit=5)} == {"messa"}
    with_body = [row for row in capture.commands() if row.messages]
    assert with_body
    assert all(row.messages for row in with_body)


def test_connections_and_findings_are_those_of_the_log(tmp_path: Path) -> None:
    capture = SAMPLES / "cut-short-5x.pcap"
    log = tmp_path / "log"
    assert command("decode", "pcap", capture, "-T", "jsonl", "-o", f"{log}/").status == 0
    read = rmqtool.read(capture)
    lines = [json.loads(line) for line in (log / "conversations.jsonl").read_text().splitlines()]
    assert [row.conversation for row in read.connections()] == [
        line["conversation"] for line in lines
    ]
    found = [json.loads(line) for line in (log / "findings.jsonl").read_text().splitlines()]
    assert [(row.kind, row.packet) for row in read.findings()] == [
        (line["kind"], line["packet"]) for line in found
    ]
    assert found


def test_a_question_reads_anew_and_a_limit_ends_it() -> None:
    capture = rmqtool.read(SAMPLE)
    first = [row.request_packet for row in capture.exchanges(limit=3)]
    assert len(first) == 3
    assert [row.request_packet for row in capture.exchanges()][:3] == first
    assert list(capture.exchanges(limit=0)) == []


@pytest.mark.parametrize("name", TABLES)
def test_a_window_leaves_out_what_was_before_and_after(name: str) -> None:
    capture = rmqtool.read(SAMPLE)
    table = table_named(name)
    method = getattr(capture, name)
    first = min(
        time for row in capture.exchanges() if (time := row.request_time or row.response_time)
    )
    middle = datetime.fromtimestamp(first / 1e9, UTC) + timedelta(seconds=2)
    every = list(method())
    before, after = list(method(until=middle)), list(method(since=middle))
    assert len(before) + len(after) == len(every) or name in ("findings", "commands")
    assert len(before) < len(every) or not every or name == "findings"
    assert table.columns


def test_times_are_text_or_datetimes_of_any_zone() -> None:
    capture = rmqtool.read(SAMPLE)
    ns = [row.request_time for row in capture.exchanges() if row.request_time][20]
    utc = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    expected = [row.request_packet for row in capture.exchanges(since=utc)]
    assert expected
    for same in (
        utc.replace(tzinfo=None),
        utc.astimezone(timezone(timedelta(hours=8))),
        utc.isoformat(),
        f"{utc:%Y-%m-%d %H:%M:%S}",
    ):
        assert [row.request_packet for row in capture.exchanges(since=same)] == expected


@pytest.mark.slow
def test_several_processes_give_the_same() -> None:
    one = [row.request_packet for row in rmqtool.read(SAMPLE).exchanges()]
    assert [row.request_packet for row in rmqtool.read(SAMPLE, jobs=2).exchanges()] == one


def test_ports_are_taken_to_be_rocketmq() -> None:
    assert list(rmqtool.read(SAMPLE, decode_as=[10911]).exchanges())


def test_a_capture_shows_what_it_reads() -> None:
    assert repr(rmqtool.read(SAMPLE)) == f"Capture({str(SAMPLE)!r})"


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_memory_does_not_depend_on_the_size_of_the_input(name: str) -> None:
    def peak(times: int) -> int:
        rows = getattr(rmqtool.read([SAMPLE] * times), name)()
        tracemalloc.start()
        try:
            for _ in rows:
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)  # what is imported and cached once
    few, many = peak(3), peak(15)
    assert many < few * 1.3


def test_a_program_that_stops_early_leaves_nothing_open() -> None:
    capture = rmqtool.read(SAMPLE)
    for _ in capture.exchanges():
        break
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.collect()


# -- errors -------------------------------------------------------------------------------------


def test_a_wrong_filter_is_said_before_anything_is_read() -> None:
    capture = rmqtool.read(SAMPLE)
    with pytest.raises(rmqtool.FilterError) as caught:
        capture.exchanges("laten > 50ms")
    assert str(caught.value).splitlines() == [
        "unknown column: 'laten'; did you mean latency or latency_us?",
        "  laten > 50ms",
        "  ^^^^^",
    ]
    assert isinstance(caught.value, rmqtool.Error)
    assert isinstance(caught.value, ValueError)


def test_what_is_no_capture_is_said_with_file_offset_and_way_out(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(b"PAR1 and more that is not a capture")
    with pytest.raises(rmqtool.ReadError) as caught:
        list(rmqtool.read(path).exchanges())
    error = caught.value
    assert (error.source, error.offset) == (str(path), 0)
    assert error.hint
    assert str(error).startswith(f"{path}, offset 0: not a capture but Parquet\n  a decoded log?")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"since": "10:00"}, "since: '10:00' is not a time with a date"),
        ({"until": "yesterday"}, "until: 'yesterday' is not a time"),
        ({"limit": -1}, "limit: -1"),
    ],
)
def test_wrong_arguments_are_said(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(rmqtool.ArgumentError, match=text):
        rmqtool.read(SAMPLE).exchanges(**arguments)  # type: ignore[arg-type]


def test_an_unknown_table_is_said_with_the_known_ones() -> None:
    with pytest.raises(rmqtool.ArgumentError, match="did you mean messages"):
        rmqtool.read(SAMPLE).to_batches("mesages")
