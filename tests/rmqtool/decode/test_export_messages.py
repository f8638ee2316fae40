"""`decode pcap --messages`: bodies as files, and the index that says what each is."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from rmqtool.cli import app
from tests.replay.captured_sends import captured_sends
from tests.rmqtool.command import ROOT, rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send
from tests.traffic.talk import Talk

SAMPLES = ROOT / "samples"


def _index(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", ["send-compressed-5x", "send-batch-4x", "send-binary-header-4x"])
def test_sent_messages_are_what_was_sent(tmp_path: Path, name: str) -> None:
    sample = SAMPLES / f"{name}.pcap"
    only = ("--where", "kind == request")
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
    arguments = ("--messages", "-o", tmp_path / "out", "--where", "kind == response")
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
    assert ended.status == 2
    assert (folder / "thesis.txt").read_text() == "years of work"
    out = tmp_path / "out"
    assert rmqtool("decode", "pcap", sample, "--messages", "-o", out).status == 0
    assert rmqtool("decode", "pcap", sample, "--messages", "-o", out).status == 2
    assert rmqtool("decode", "pcap", sample, "--messages", "-o", out, "--force").status == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_project_with_an_index_is_not_emptied(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "index.jsonl").write_text("{}\n")
    (project / "thesis.txt").write_text("years of work")
    sample = SAMPLES / "send-sync-5x.pcap"
    ended = rmqtool("decode", "pcap", sample, "--messages", "-o", project, "--force")
    assert ended.status == 2
    assert "that rmqtool wrote" in ended.err
    assert sorted(path.name for path in project.iterdir()) == ["index.jsonl", "thesis.txt"]


@pytest.mark.parametrize(
    "output", [("--messages",), ("--format", "jsonl"), ("--format", "parquet")]
)
def test_a_capture_inside_of_what_is_replaced_is_kept(
    tmp_path: Path, output: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    sample = SAMPLES / "send-sync-5x.pcap"
    assert rmqtool("decode", "pcap", sample, *output, "-o", f"{out}/").status == 0
    inside = out / "mine.pcap"
    inside.write_bytes(sample.read_bytes())
    ended = rmqtool("decode", "pcap", inside, *output, "-o", f"{out}/", "--force")
    assert ended.status == 2
    assert "mine.pcap was not written by rmqtool" in ended.err
    assert inside.read_bytes() == sample.read_bytes()
    inside.unlink()
    assert rmqtool("decode", "pcap", sample, *output, "-o", f"{out}/", "--force").status == 0


def test_a_folder_is_needed() -> None:
    ended = rmqtool("decode", "pcap", SAMPLES / "send-sync-5x.pcap", "--messages")
    assert ended.status == 2
    assert "-o" in ended.err


def test_compressed_bodies_are_bounded_together(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = zlib.compress(bytes(1 << 20), 9)
    talk = Talk().open()
    for number in range(20):
        one = send(number, body)
        talk.say(0, replace(one, ext={**one.ext, "f": "1"}).frame)
    path = tmp_path / "bomb.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    app(
        [
            "decode",
            "pcap",
            str(path),
            "--messages",
            "-o",
            str(tmp_path / "out"),
            "--max-output",
            "4MiB",
        ],
        standalone_mode=False,
    )
    rows = _index(tmp_path / "out")
    written = sum(file.stat().st_size for file in (tmp_path / "out").rglob("*.body"))
    assert written == sum(int(str(row["bytes"])) for row in rows)
    assert written == 4 << 20
    assert [row["problem"] is None for row in rows[:4]] == [True] * 4
    assert "limit" in str(rows[-1]["problem"])
    assert "16 compressed messages cut, first in packet" in capfd.readouterr().err
