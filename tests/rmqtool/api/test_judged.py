"""Problems are those of the command; rules are asked by their ids."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import rmqtool
from analytics.diagnosis.problem import as_json
from tests.rmqtool.command import rmqtool as command

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "busy-send-queue-5x.pcap"


def test_problems_are_those_of_the_command() -> None:
    lines = command("diagnose", SAMPLE, "-T", "jsonl").out.splitlines()
    found = rmqtool.read(SAMPLE).problems()
    assert [as_json(one) for one in found] == [json.loads(line) for line in lines]
    assert found[0].rule == "send-queue-timeout"


def test_only_the_rules_that_are_named_are_asked() -> None:
    capture = rmqtool.read(SAMPLE)
    assert [one.rule for one in capture.problems(rules=["send-retried"])] == ["send-retried"]
    with pytest.raises(rmqtool.ArgumentError, match="did you mean send-retried"):
        capture.problems(rules=["send-retrid"])


def test_problems_of_another_time_are_not_seen() -> None:
    assert rmqtool.read(SAMPLE).problems(until=datetime(2020, 1, 1, tzinfo=UTC)) == []
