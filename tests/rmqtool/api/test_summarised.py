"""The summary is that of the command; in a notebook nothing from the wire is markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import rmqtool
from tests.rmqtool.command import EVIL, capture_in
from tests.rmqtool.command import rmqtool as command
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send
from tests.traffic.talk import Talk

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "busy-send-queue-5x.pcap"


def test_its_data_are_those_of_the_command() -> None:
    line = command("decode", "pcap", SAMPLE, "--summary", "-T", "jsonl").out
    assert rmqtool.read(SAMPLE).summary().to_dict() == json.loads(line)


def test_its_text_is_that_of_the_command() -> None:
    text = command("decode", "pcap", SAMPLE, "--summary", COLUMNS="100").out
    assert str(rmqtool.read(SAMPLE).summary()).split() == text.split()


def test_it_says_what_is_wrong() -> None:
    summary = rmqtool.read(SAMPLE).summary()
    assert [one.rule for one in summary.problems] == ["send-queue-timeout", "send-retried"]
    assert repr(summary) == "CaptureSummary(41 exchanges, 2 problems)"


def test_a_notebook_shows_tables() -> None:
    page = rmqtool.read(SAMPLE).summary()._repr_html_()
    assert "<th>request_name</th>" in page
    assert "<td>SEND_MESSAGE_V2</td>" in page
    assert "send-queue-timeout" in page
    assert page.count("<table>") == page.count("</table>") >= 4


def test_what_the_network_sent_is_no_markup(tmp_path: Path) -> None:
    evil = f"<script>alert(1)</script>{EVIL}"
    talk = Talk().open()
    for number in range(3):
        talk.say(0, replace(send(number), language=evil).frame)
        talk.say(1, Command(2, number, 1, remark=evil).frame)
    path = tmp_path / "evil<b>.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    page = rmqtool.read(path).summary()._repr_html_()
    assert "&lt;script" in page
    assert "<script" not in page
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)


def test_a_capture_of_all_kinds_is_shown(tmp_path: Path) -> None:
    assert "<table>" in rmqtool.read(capture_in(tmp_path)).summary()._repr_html_()
