"""Outputs: a file has its name when it is whole, and an input is never overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rmqtool.ui.output import Output, refuse_inputs
from rmqtool.ui.status import CommandError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_text("former")
    output = Output(str(target))
    output.write(b"new")
    output.flush()
    assert target.read_text() == "former"
    output.finish()
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["x"]


def test_a_discarded_file_leaves_no_trace(tmp_path: Path) -> None:
    output = Output(str(tmp_path / "x"))
    output.write(b"half")
    output.discard()
    assert os.listdir(tmp_path) == []


def test_a_direct_file_can_be_read_meanwhile(tmp_path: Path) -> None:
    output = Output(str(tmp_path / "x"), direct=True)
    output.write(b"a\n")
    output.flush()
    assert (tmp_path / "x").read_bytes() == b"a\n"
    output.finish()


def test_a_device_is_written_directly() -> None:
    output = Output("/dev/null")
    output.write(b"x")
    output.finish()
    assert not [name for name in os.listdir("/dev") if name.startswith(".null")]


def test_an_input_is_no_output(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    capture.write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to(capture)
    for target in (capture, link):
        with pytest.raises(CommandError, match="is an input"):
            refuse_inputs(str(target), [str(capture)])
    refuse_inputs("-", ["-"])
    refuse_inputs(str(tmp_path / "new"), [str(capture), "-"])
