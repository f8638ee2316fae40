"""A log that a program writes is the one that the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest

import rmqtool
from tests.rmqtool.command import rmqtool as command

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "consumer-lag-5x.pcap"
FILES = ("exchanges", "messages", "conversations.parquet", "findings.parquet")


def manifest(log: Path) -> dict[str, object]:
    return {**json.loads((log / "manifest.json").read_text()), "created": None}


@pytest.mark.parametrize("where", ["", "topic = LagTopic"])
def test_it_is_that_of_the_command(where: str, tmp_path: Path) -> None:
    options = ("--where", where) if where else ()
    theirs = tmp_path / "theirs"
    assert command("decode", "pcap", SAMPLE, "-T", "parquet", "-o", theirs, *options).status == 0
    ours = rmqtool.read(SAMPLE).to_parquet(tmp_path / "ours", where)
    assert ours == tmp_path / "ours"
    for name in FILES:
        tables = [pyarrow.parquet.read_table(log / name) for log in (ours, theirs)]
        assert tables[0].equals(tables[1]), name
    assert manifest(ours) == manifest(theirs)


def test_a_limit_is_said_in_the_manifest(tmp_path: Path) -> None:
    log = rmqtool.read(SAMPLE).to_parquet(tmp_path / "log", limit=3, messages=False)
    assert pyarrow.parquet.read_table(log / "exchanges").num_rows == 3
    assert manifest(log)["options"] == {"limit": 3}
    assert not (log / "messages").exists()


def test_a_log_is_replaced_only_where_that_is_said(tmp_path: Path) -> None:
    capture = rmqtool.read(SAMPLE)
    log = capture.to_parquet(tmp_path / "log")
    with pytest.raises(rmqtool.WriteError, match="is a decoded log already\n  use replace=True"):
        capture.to_parquet(log)
    capture.to_parquet(log, limit=1, replace=True)
    assert pyarrow.parquet.read_table(log / "exchanges").num_rows == 1


def test_what_is_no_log_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("x")
    with pytest.raises(rmqtool.WriteError):
        rmqtool.read(SAMPLE).to_parquet(tmp_path / "mine", replace=True)
    assert (tmp_path / "mine" / "file").read_text() == "x"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(rmqtool.WriteError) as caught:
        rmqtool.read(SAMPLE).to_parquet(tmp_path / "none" / "log")
    assert str(tmp_path / "none") in str(caught.value)


def test_a_capture_that_cannot_be_read_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(b"PAR1" * 9)
    with pytest.raises(rmqtool.ReadError):
        rmqtool.read(path).to_parquet(tmp_path / "log")
    assert [one.name for one in tmp_path.iterdir()] == ["x.pcap"]
