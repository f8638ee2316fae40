"""Lives are those of the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rmqtool
from analytics.life.life import lives_as_json
from tests.rmqtool.command import rmqtool as command

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "consumer-lag-5x.pcap"
CAPTURE = rmqtool.read(SAMPLE)


def test_lives_of_a_key_are_those_of_the_command() -> None:
    key = next(row.unique_key for row in CAPTURE.messages("event = stored") if row.unique_key)
    lines = command("trace", SAMPLE, key, "-T", "jsonl").out.splitlines()
    assert list(lives_as_json(CAPTURE.trace(key))) == [json.loads(line) for line in lines]
    assert CAPTURE.trace("no such key") == []


def test_lives_of_a_filter_are_those_of_the_command() -> None:
    where = "event = delivered and queue_offset < 3"
    lines = command("trace", SAMPLE, "--where", where, "-T", "jsonl").out.splitlines()
    assert list(lives_as_json(CAPTURE.trace(where=where))) == [json.loads(line) for line in lines]
    assert lines


def test_a_key_or_a_filter_must_be_given() -> None:
    with pytest.raises(rmqtool.ArgumentError, match="no message selected"):
        CAPTURE.trace(" ")
    with pytest.raises(rmqtool.FilterError, match="unknown column"):
        CAPTURE.trace(where="nothing = 1")
