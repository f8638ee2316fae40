"""Secrets of a capture: no view shows them, however their names are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rmqtool.command import rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send
from tests.traffic.talk import Talk

NAMES = ("accesskey", "SIGNATURE", "securitytoken", "SecretKey", "password", "userPassword")
SECRETS = {name: f"hidden-{at}-hidden" for at, name in enumerate(NAMES)}


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    """Requests and a response with secrets in ext fields and in bodies of several forms."""
    lines = "".join(f"{name} = {value}\n" for name, value in SECRETS.items())
    talk = Talk().open().say(0, Command(310, 1, ext=send(1).ext | SECRETS, body=b"x").frame)
    talk.say(0, Command(9999, 2, ext=SECRETS).frame).say(1, Command(0, 2, 1, ext=SECRETS).frame)
    talk.say(0, Command(25, 3, ext=SECRETS, body=lines.encode()).frame)
    talk.say(0, Command(3001, 4, body=json.dumps(SECRETS).encode()).frame)
    talk.say(0, Command(3001, 5, body=json.dumps(SECRETS, indent=1).encode()).frame)
    path = tmp_path / "masked.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    return path


@pytest.mark.parametrize(
    "view",
    [
        ("-V",),
        ("--commands",),
        ("--commands", "-T", "jsonl"),
        ("--follow-conversation", "0"),
        ("-T", "jsonl"),
        ("--summary",),
    ],
)
def test_no_view_shows_a_secret(masked: Path, view: tuple[str, ...]) -> None:
    shown = rmqtool("decode", "pcap", masked, *view)
    assert shown.status == 0, shown.err
    assert "-hidden" not in shown.out
