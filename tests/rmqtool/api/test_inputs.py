"""What can be read: names, folders, bytes, lists of them, standard input once."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import rmqtool

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
SAMPLE = SAMPLES / "send-sync-5x.pcap"


def keys(capture: rmqtool.Capture) -> list[str | None]:
    return [row.unique_key for row in capture.exchanges("has unique_key")]


EXPECTED = keys(rmqtool.read(str(SAMPLE)))


def test_a_path_and_its_name_are_the_same() -> None:
    assert EXPECTED
    assert keys(rmqtool.read(SAMPLE)) == EXPECTED


def test_a_folder_stands_for_its_captures(tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path / "a.pcap")
    assert keys(rmqtool.read(tmp_path)) == EXPECTED


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_bytes_are_a_capture_as_often_as_wanted(form: type) -> None:
    capture = rmqtool.read(form(SAMPLE.read_bytes()))
    assert keys(capture) == EXPECTED
    assert keys(capture) == EXPECTED
    assert {row.capture for row in capture.exchanges()} == {"bytes"}


def test_several_inputs_are_one_capture() -> None:
    both = rmqtool.read([SAMPLE], (SAMPLES / "consumer-lag-5x.pcap").read_bytes())
    assert {row.capture for row in both.exchanges()} == {str(SAMPLE), "bytes"}


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BytesIO(SAMPLE.read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(stream)))  # type: ignore[arg-type]
    capture = rmqtool.read("-")
    assert keys(capture) == EXPECTED
    with pytest.raises(rmqtool.ReadError, match="standard input: can be read only once"):
        keys(capture)


def test_a_name_that_does_not_exist_is_said_at_once() -> None:
    with pytest.raises(rmqtool.ReadError, match=r"none\.pcap: no such file"):
        rmqtool.read("none.pcap")


def test_a_folder_without_captures_is_said_with_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(rmqtool.ReadError, match="no capture in this folder") as caught:
        rmqtool.read(tmp_path)
    assert ".pcapng" in str(caught.value)


@pytest.mark.parametrize("wrong", [(), (17,), ([],), (None,)])
def test_what_is_no_input_is_said(wrong: tuple[object, ...]) -> None:
    with pytest.raises(rmqtool.ArgumentError, match="read"):
        rmqtool.read(*wrong)  # type: ignore[arg-type]
