"""`decode pcap --messages`: bodies as files, and the index that says what each is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.replay.captured_sends import captured_sends
from tests.rmqtool.command import ROOT, rmqtool

SAMPLES = ROOT / "samples"


def _index(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", ["send-compressed-5x", "send-batch-4x", "send-binary-header-4x"])
def test_sent_messages_are_what_was_sent(tmp_path: Path, name: str) -> None:
    sample = SAMPLES / f"{name}.pcap"
    only = ("-w", "kind == request")
    ended = rmqtool("decode", "pcap", sample, "--messages", "-o", tmp_path / "out", *only)
    assert ended.status == 0, ended
    wanted = captured_sends(sample)
    rows = {row["unique_key"]: row for row in _index(tmp_path / "out")}
    assert rows.keys() == wanted.keys()
    for key, sent in wanted.items():
        row = rows[key]
        assert (tmp_path / "out" / str(row["file"])).read_bytes() == sent.body
        assert (row["bytes"], row["topic"], row["kind"]) == (len(sent.body), sent.topic, "request")
        assert row["problem"] is None


def test_delivered_messages_and_filters(tmp_path: Path) -> None:
    sample = SAMPLES / "push-consumer-5x.pcap"
    arguments = ("--messages", "-o", tmp_path / "out", "-w", "kind == response")
    assert rmqtool("decode", "pcap", sample, *arguments).status == 0
    rows = _index(tmp_path / "out")
    assert {row["command"] for row in rows} == {"PULL_MESSAGE"}
    offsets = {(row["queue_id"], row["queue_offset"]) for row in rows}
    assert len(offsets) == len({row["unique_key"] for row in rows}) > 5


def test_a_limit_is_said(tmp_path: Path) -> None:
    sample = SAMPLES / "send-batch-5x.pcap"
    arguments = ("--messages", "-o", tmp_path / "out", "--limit", "5")
    ended = rmqtool("decode", "pcap", sample, *arguments)
    assert len(_index(tmp_path / "out")) == 5
    assert "5 messages" in ended.err


def test_nothing_else_is_replaced(tmp_path: Path) -> None:
    sample = SAMPLES / "send-sync-5x.pcap"
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    ended = rmqtool("decode", "pcap", sample, "--messages", "-o", folder, "--force")
    assert ended.status == 1
    assert (folder / "thesis.txt").read_text() == "years of work"
    out = tmp_path / "out"
    assert rmqtool("decode", "pcap", sample, "--messages", "-o", out).status == 0
    assert rmqtool("decode", "pcap", sample, "--messages", "-o", out).status == 1
    assert rmqtool("decode", "pcap", sample, "--messages", "-o", out, "--force").status == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_folder_is_needed() -> None:
    ended = rmqtool("decode", "pcap", SAMPLES / "send-sync-5x.pcap", "--messages")
    assert ended.status == 2
    assert "-o" in ended.err
