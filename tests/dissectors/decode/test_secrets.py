"""Which key log a run takes, and what commands and programs make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import rmqtool as library
from dissectors.decode.secrets import key_log_named
from tests.rmqtool.command import rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.encrypted import Secured


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture of a send over TLS, and keys.log beside it."""
    one = Secured().say(0, send(1).frame).say(1, sent(1).frame)
    (tmp_path / "keys.log").write_bytes(one.key_log)
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(one.talk().close().segments))
    return path


def test_what_the_user_names_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = tmp_path / "usual.log"
    monkeypatch.setenv("SSLKEYLOGFILE", str(usual))
    assert key_log_named(None) == ""  # it is not there
    usual.touch()
    assert key_log_named(None) == ""  # nothing is in it yet
    usual.write_text("x")
    assert key_log_named(None) == str(usual)
    assert key_log_named("own.log") == "own.log"
    monkeypatch.delenv("SSLKEYLOGFILE")
    assert key_log_named(None) == ""


@pytest.mark.parametrize(
    ("command", "after"), [("decode pcap", []), ("diagnose", []), ("trace", ["nothing"])]
)
def test_commands(command: str, after: list[str], capture: Path) -> None:
    words = [*command.split(), str(capture), *after]
    with_keys = rmqtool(*words, "--tls-keylog", capture.with_name("keys.log"))
    assert with_keys[1:] != rmqtool(*words)[1:]
    assert "should not have happened" not in with_keys.err


def test_the_variable(capture: Path) -> None:
    keys = str(capture.with_name("keys.log"))
    assert "SEND_MESSAGE" in rmqtool("decode", "pcap", capture, SSLKEYLOGFILE=keys).out


def test_a_key_log_that_is_none(capture: Path) -> None:
    found = rmqtool("decode", "pcap", capture, "--tls-keylog", capture)
    assert found.status != 0
    assert "not a TLS key log" in found.err


def test_programs(capture: Path) -> None:
    keys = capture.with_name("keys.log")
    (one,) = library.read(capture, tls_keylog=keys).exchanges()
    assert one.request_name == "SEND_MESSAGE_V2"
    (row,) = library.read(capture, tls_keylog=keys).connections()
    assert row.protocol == "ROCKETMQ"
    assert "tls_chosen=1.3" in row.facts
    secret = keys.read_text().split()[2]
    assert secret not in repr(row)
