"""Texts of the command line as values."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dissectors.times import Moment
from rmqtool.decode.options import DecodeRequest, Order, RowFormat, View, format_of, view_of
from rmqtool.ui.status import CommandError
from tests.rmqtool.command import ROOT, rmqtool


@pytest.mark.parametrize(
    ("wanted", "output", "found"),
    [
        (None, "-", RowFormat.table),
        (None, "x.jsonl", RowFormat.jsonl),
        (None, "x.NDJSON", RowFormat.jsonl),
        (None, "x.csv", RowFormat.csv),
        (None, "x.parquet", RowFormat.parquet),
        (None, "x.txt", RowFormat.table),
        (RowFormat.csv, "x.jsonl", RowFormat.csv),
    ],
)
def test_the_format(wanted: RowFormat | None, output: str, found: RowFormat) -> None:
    assert format_of("--format", wanted, output, View.exchanges) is found


def test_views_exclude_each_other() -> None:
    assert view_of(False, False, False) is View.exchanges
    assert view_of(False, True, False) is View.tree
    with pytest.raises(CommandError):
        view_of(True, True, False)


def test_what_becomes_a_folder() -> None:
    def to_folder(form: RowFormat, output: str) -> bool:
        return DecodeRequest(sources=["a"], format=form, output=output).to_folder

    assert to_folder(RowFormat.parquet, "log")
    assert to_folder(RowFormat.parquet, "log/")
    assert not to_folder(RowFormat.parquet, "x.parquet")
    assert not to_folder(RowFormat.parquet, "-")
    assert not to_folder(RowFormat.csv, "log")
    assert to_folder(RowFormat.jsonl, "log/")
    assert not to_folder(RowFormat.jsonl, "log")
    assert not to_folder(RowFormat.jsonl, "-")


def test_restrictions_are_what_was_given() -> None:
    assert DecodeRequest(sources=["a"]).restrictions() == {}
    request = DecodeRequest(
        sources=["a"], where="has topic", since=Moment(36_000 * 10**9, False), limit=0
    )
    assert request.restrictions() == {
        "where": "has topic",
        "since": "10:00:00.000000Z",
        "limit": 0,
    }


JSONL = DecodeRequest(sources=["a"], format=RowFormat.jsonl, jobs=None)
MESSAGES = replace(JSONL, view=View.list_messages)
COMMANDS = replace(JSONL, view=View.commands)


@pytest.mark.parametrize(
    ("request_", "processes"),
    [
        (JSONL, None),
        (replace(JSONL, format=RowFormat.table), 1),
        (replace(JSONL, format=RowFormat.parquet, output="x.parquet"), 1),
        (replace(JSONL, format=RowFormat.parquet, output="log"), 1),
        (replace(JSONL, format=RowFormat.parquet, output="log", body_limit=5), None),
        (replace(JSONL, format=RowFormat.parquet, output="log", where="has topic"), None),
        (replace(JSONL, view=View.summary, format=RowFormat.table), 1),
        (replace(JSONL, view=View.summary, jobs=2), 1),
        (replace(JSONL, format=RowFormat.table, jobs=2), 1),
        (replace(JSONL, format=RowFormat.parquet, output="log", jobs=2), 1),
        (replace(JSONL, format=RowFormat.csv, jobs=2), 2),
        (replace(JSONL, sort=Order.time, jobs=2), 1),
        (replace(JSONL, limit=5, jobs=2), 1),
        (replace(JSONL, since=Moment(36_000 * 10**9, False), jobs=2), 1),
        (replace(JSONL, since=Moment(36_000 * 10**9, True), jobs=2), 2),
        (MESSAGES, None),
        (replace(MESSAGES, jobs=3), 3),
        (replace(MESSAGES, format=RowFormat.csv), 1),
        (replace(MESSAGES, where="has topic"), 1),
        (replace(MESSAGES, limit=5), 1),
        (replace(MESSAGES, body_limit=5), 1),
        (replace(MESSAGES, sort=Order.time), 1),
        (replace(MESSAGES, where="has topic", jobs=2), 1),
        (COMMANDS, None),
        (replace(COMMANDS, body_limit=5), None),
        (replace(COMMANDS, format=RowFormat.table, jobs=2), 1),
        (replace(COMMANDS, where="has topic", jobs=2), 1),
        (replace(COMMANDS, max_output=5, jobs=2), 1),
    ],
)
def test_processes_where_they_pay(request_: DecodeRequest, processes: int | None) -> None:
    """None: as many as there are cores."""
    assert request_.processes == processes


def test_rows_are_sorted_slowest_first() -> None:
    capture = ROOT / "samples" / "fault-slow-5x.pcap"
    lines = rmqtool("decode", capture, "-T", "jsonl", "--sort", "latency").out.splitlines()
    found = [json.loads(line).get("latency_us") for line in lines]
    known = [one for one in found if one is not None]
    assert known == sorted(known, reverse=True)
    assert found[: len(known)] == known
    assert len(lines) == len(rmqtool("decode", capture, "-T", "jsonl").out.splitlines()) > 50
