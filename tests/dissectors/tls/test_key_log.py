"""Key logs: what is taken of them, what is not, and that they may grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.tls import key_log
from dissectors.tls.key_log import (
    CLIENT_TRAFFIC,
    MASTER,
    MASTER_OF_SESSION,
    PREMASTER,
    PREMASTER_BY_RSA,
    KeyLog,
)
from tests.patience import Stopwatch

RANDOM = bytes(range(32))
SECRET = bytes(range(48))
LINE = b"CLIENT_RANDOM %s %s\n" % (RANDOM.hex().encode(), SECRET.hex().encode())


def test_labels_are_kept_apart() -> None:
    log = KeyLog()
    log.add(LINE + LINE.replace(b"CLIENT_RANDOM", b"CLIENT_TRAFFIC_SECRET_0").replace(b"2f", b"30"))
    assert log.find(MASTER, RANDOM) == SECRET
    assert log.find(CLIENT_TRAFFIC, RANDOM) == SECRET[:-1] + b"\x30"
    assert log.find(MASTER, RANDOM[::-1]) is None
    assert len(log) == 2


def test_master_secrets_by_session() -> None:
    log = KeyLog()
    log.add(b"RSA Session-ID:0a0b Master-Key:" + SECRET.hex().encode() + b"\r\n")
    assert log.find(MASTER_OF_SESSION, b"\x0a\x0b") == SECRET
    assert log.find(MASTER_OF_SESSION, b"") is None


def test_pre_master_secrets() -> None:
    log = KeyLog()
    assert not log.has_premasters
    log.add(b"RSA 0011223344556677 " + SECRET.hex().encode())
    log.add(LINE.replace(b"CLIENT_RANDOM", b"PMS_CLIENT_RANDOM"))
    assert log.find(PREMASTER_BY_RSA, bytes.fromhex("0011223344556677")) == SECRET
    assert log.find(PREMASTER, RANDOM) == SECRET
    assert log.find(MASTER, RANDOM) is None
    assert log.has_premasters


def test_sessions_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_log, "MAX_SESSIONS", 2)
    log = KeyLog()
    for name in (b"a", b"b", b"c"):
        log.remember(name, SECRET)
    assert [log.remembered(name) for name in (b"a", b"b", b"c")] == [None, SECRET, SECRET]
    assert not log.wanted


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"# a remark\n\n",
        LINE[:-3],
        LINE.replace(b"CLIENT_RANDOM", b"EXPORTER_SECRET"),
        LINE.replace(b"0001", b"00"),
        LINE.replace(b"0001", b"xx01"),
        LINE.replace(b"0001", "\u0663".encode()),
        b"CLIENT_RANDOM " + b"0" * 64 + b" " + b"0" * 400 + b"\n",
        b"RSA 00112233445566 " + SECRET.hex().encode(),
        b"RSA Session-ID: Master-Key:00\n",
        bytes(range(256)) * 40,
        b"\0" * 100_000,
    ],
)
def test_what_is_no_secret_is_passed_over(text: bytes) -> None:
    log = KeyLog()
    log.add(text)
    assert len(log) == 0
    assert not log.wanted


def test_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    log = KeyLog(str(path), growing=True)
    assert log.wanted
    assert log.find(MASTER, RANDOM) is None
    path.write_bytes(LINE[:50])
    assert log.find(MASTER, RANDOM) is None
    with path.open("ab") as file:
        file.write(LINE[50:])
    assert log.find(MASTER, RANDOM) == SECRET
    path.write_bytes(b"#\n")  # begun anew
    assert log.find(MASTER, b"\xfe" + RANDOM[1:]) is None
    with path.open("ab") as file:
        file.write(LINE.replace(b" 0001", b" fe01", 1))
    assert log.find(MASTER, b"\xfe" + RANDOM[1:]) == SECRET
    assert log.find(MASTER, RANDOM) == SECRET  # what was known stays known


def test_a_file_without_an_end_of_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_bytes(LINE[:-1])
    assert KeyLog(str(path)).find(MASTER, RANDOM) == SECRET


def test_no_more_than_may_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_log, "MAX_SECRETS", 2)
    log = KeyLog()
    for number in range(4):
        log.add(LINE.replace(b" 0001", b" %02d01" % number, 1))
    assert (len(log), log.left_out) == (2, 2)


def test_secrets_are_not_shown() -> None:
    log = KeyLog()
    log.add(LINE)
    assert SECRET.hex() not in repr(log) + str(vars(log).get("_path"))


def test_work_is_linear(tmp_path: Path) -> None:
    """A line without an end, and very many: no time nor memory out of proportion."""
    path = tmp_path / "keys.log"
    path.write_bytes(b"x" * 20_000_000 + b"\n" + LINE)
    watch = Stopwatch()
    assert KeyLog(str(path)).find(MASTER, RANDOM) == SECRET
    assert watch.own < 5
