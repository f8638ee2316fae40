"""Chosen columns in all forms, and tables in the order of time."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

import rmqtool as api
from rmqtool.decode.options import DecodeRequest
from rmqtool.errors import ArgumentError
from tests.rmqtool.command import ROOT, rmqtool

SAMPLE = ROOT / "samples" / "push-orderly-5x.pcap"
NAMES = "time,latency,request,client_address,topic"


def decoded(*options: str | Path) -> str:
    ended = rmqtool("decode", SAMPLE, *options)
    assert ended.status == 0, ended
    return ended.out


def test_chosen_columns_are_the_same_in_all_forms(tmp_path: Path) -> None:
    rows = list(api.read(str(SAMPLE)).exchanges())
    lines = [json.loads(line) for line in decoded("--columns", NAMES, "-T", "jsonl").splitlines()]
    assert [list(line) for line in lines] == [NAMES.split(",")] * len(rows)
    assert [line["latency"] for line in lines] == [row.latency_us for row in rows]
    assert [line["client_address"] for line in lines] == [row.client_address for row in rows]
    assert [line["request"] for line in lines] == [row.request_name for row in rows]
    assert json.loads(decoded("--columns", NAMES, "-T", "json")) == lines
    twice = decoded("--columns", f"{NAMES},{NAMES}", "-T", "csv")
    assert twice == decoded("--columns", NAMES, "-T", "csv")
    table = list(csv.DictReader(io.StringIO(decoded("--columns", NAMES, "-T", "csv"))))
    assert [row["time"] for row in table] == [line["time"] for line in lines]
    assert [row["topic"] or None for row in table] == [line["topic"] for line in lines]
    parquet = pytest.importorskip("pyarrow.parquet")
    decoded("--columns", NAMES, "-o", tmp_path / "rows.parquet")
    found = parquet.read_table(tmp_path / "rows.parquet")
    assert found.column_names == NAMES.split(",")
    assert found.column("latency").to_pylist() == [row.latency_us for row in rows]
    arrow = api.read(str(SAMPLE)).to_arrow(columns=NAMES.split(","))
    assert arrow.to_pylist() == found.to_pylist()


@pytest.mark.parametrize("view", [(), ("--list-messages",), ("--commands",)])
def test_an_end_without_a_name_has_its_port(view: tuple[str, ...]) -> None:
    lines = decoded(*view, "--columns", "client,broker", "-T", "jsonl").splitlines()
    clients = {json.loads(line)["client"] for line in lines}
    assert clients
    assert all(re.search("[@:]", client) for client in clients), "a client id, or an address"
    brokers = {json.loads(line)["broker"] for line in lines} - {None}
    assert all(name == "broker-a" or ":" in name for name in brokers)


@pytest.mark.parametrize(
    ("view", "names"),
    [
        ((), "request,latency_us,rtt_us,note"),
        (("--list-messages",), "event,client,broker,unique_key"),
        (("--commands",), "time,name,opaque"),
    ],
)
def test_a_table_has_the_chosen_columns_in_order(view: tuple[str, ...], names: str) -> None:
    head, *lines = decoded(*view, "--columns", names).splitlines()
    assert head.split() == names.upper().split(",")
    assert len(lines) > 10


def test_nested_columns_of_commands_are_those_of_whole_rows() -> None:
    names = ["packet", "body", "messages", "header", "header_parts", "ext_fields", "body_bytes"]
    chosen = ("--commands", "--columns", ",".join(names))
    for limit in ((), ("--body-limit", "3")):
        whole = decoded("--commands", "-T", "jsonl", *limit).splitlines()
        rows = [{name: row[name] for name in names} for row in map(json.loads, whole)]
        lines = decoded(*chosen, "-T", "jsonl", *limit).splitlines()
        assert [json.loads(line) for line in lines] == rows
        assert any(row["messages"] for row in rows)
    head, *shown = decoded("--commands", "--columns", "body,packet").splitlines()
    assert head.split() == ["BODY", "PACKET"]
    assert any(line.startswith('{"kind":"stored-messages"') for line in shown)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--columns", "time,latencies"), "'latencies'; did you mean latency or latency_us?"),
        (("--columns", "time", "--summary"), "works only with exchanges"),
        (("--columns", "time", "-T", "parquet", "-o", "log"), "do not apply to a decoded log"),
        (("--columns", "topic", "--commands"), "'topic'; only exchanges have it"),
    ],
)
def test_columns_that_there_are_not(options: tuple[str, ...], text: str, tmp_path: Path) -> None:
    options = tuple(str(tmp_path / one) if one == "log" else one for one in options)
    ended = rmqtool("decode", SAMPLE, *options)
    assert ended.status == 2
    assert text in ended.err
    assert list(tmp_path.iterdir()) == []


def test_columns_of_programs_that_there_are_not() -> None:
    for table in ("exchanges", "commands"):
        with pytest.raises(ArgumentError, match="unknown column 'nope'"):
            api.read(str(SAMPLE)).to_arrow(table, columns=["nope"])


def test_tables_of_files_are_in_the_order_of_time() -> None:
    def times(*options: str | Path) -> list[str]:
        return [line.split()[0] for line in decoded("--columns", "time", *options).splitlines()[1:]]

    as_completed = times("--sort", "completion")
    assert as_completed != sorted(as_completed)
    assert times() == sorted(as_completed)
    assert times("-c", "20") == sorted(as_completed[:20])
    assert times("-c", "20", "--sort", "time") == sorted(as_completed)[:20]
    assert "-" not in times("--list-messages")
    assert not DecodeRequest(["-"]).sorts_shown_rows
    assert not DecodeRequest(["a.pcap"], follow=True).sorts_shown_rows


def test_each_capture_has_its_rows_together() -> None:
    other = ROOT / "samples" / "fault-freeze-5x.pcap"
    ended = rmqtool("decode", SAMPLE, other, "--columns", "capture,time")
    rows = [line.split() for line in ended.out.splitlines()[1:]]
    names = [name for name, _ in rows]
    assert names == sorted(names, key=names.index)
    for name in set(names):
        times = [time for one, time in rows if one == name]
        assert times == sorted(times)
