"""Packets of chosen exchanges: what is written decodes to these exchanges again."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.record import ExchangeRecord
from rmqtool.api.tables.named import EXCHANGES
from rmqtool.browse.model.export import _Direction, new_file, packets_in, write_packets, write_rows
from rmqtool.browse.model.frames import KeptFrame
from rmqtool.browse.model.session import BackgroundReading, BrowseSession, decoding
from tests.rmqtool.browse.browsing import sample
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.talk import CLIENT, Talk


def session_of(*names: str) -> BrowseSession:
    """Return a session that has read captures."""
    session = BrowseSession(names[0])
    decode = Decode(names, DecodeOptions(conversations=True, messages=True))
    BackgroundReading(session, decoding(decode), None).wait()
    assert session.problem is None
    return session


def told(row: ExchangeRecord) -> tuple[object, ...]:
    """Return what an exchange says, wherever it lies."""
    return (
        row.request_name, row.response_name, row.request_time, row.response_time, row.opaque,
        row.missing_bytes, row.body_bytes,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["acl-5x.pcap", "big-bodies-5x.pcap"])
def test_what_is_written_has_the_chosen_exchanges_and_no_others(name: str, tmp_path: Path) -> None:
    session = session_of(sample(name))
    store, frames = session.exchanges, session.frames
    assert frames is not None
    numbers = [n for n in range(store.count) if n % 3 == 1]
    kept = [one for n in numbers if (one := frames.exchange(n)) is not None]
    path = tmp_path / "some.pcapng"
    written = write_packets([sample(name)], kept, path)
    decoded = [row for batch in Decode([str(path)]).records() for row in batch]
    rows = [row for n in numbers if (row := store.row(n)) is not None]
    assert sorted(map(str, map(told, decoded))) == sorted(map(str, map(told, rows)))
    assert written == sum(1 for _ in packets_in([str(path)]))
    session.close()


def test_packets_of_several_link_types_keep_them(tmp_path: Path) -> None:
    segments = Talk().open().say(0, send(1).frame).say(1, sent(1).frame).segments
    names = [str(tmp_path / f"{link}.pcap") for link in ("ethernet", "sll", "raw")]
    for port, name in enumerate(names, 40000):
        moved = [
            replace(one, **{end: replace(CLIENT, port=port)})
            for one in segments
            for end in ("src", "dst")
            if getattr(one, end) == CLIENT
        ]
        Path(name).write_bytes(pcap_of(moved, Path(name).stem))
    session = session_of(*names)
    frames = session.frames
    assert frames is not None
    kept = [one for n in range(session.exchanges.count) if (one := frames.exchange(n)) is not None]
    path = tmp_path / "all.pcapng"
    assert write_packets(names, kept, path) == 6
    decoded = [row.client_address for batch in Decode([str(path)]).records() for row in batch]
    assert sorted(decoded) == [f"{CLIENT.address}:{port}" for port in (40000, 40001, 40002)]
    session.close()


def test_a_frame_may_cross_the_wrap_of_sequence_numbers() -> None:
    wrap = 1 << 32
    direction = _Direction()
    direction.base = 1000
    # 108 bytes, of which 60 are before the wrap
    direction.frames.append(KeptFrame(b"", 0, b"", b"", 100, 0, 3 * wrap - 60, 5, 0, []))
    found = []
    for packet, (offset, length) in enumerate(
        [(-1000, 100), (-100, 40), (-100, 41), (-10, 20), (40, 8), (48, 50)]
    ):
        found += direction.receive(packet, (1000 + offset) % wrap, length)
    assert found == [5, 2, 3, 4]


def test_a_file_named_json_is_one_array(tmp_path: Path) -> None:
    session = session_of(sample("acl-5x.pcap"))
    store = session.exchanges
    numbers = range(store.count)
    for chosen in (numbers, ()):
        lines, array = tmp_path / f"{len(chosen)}.jsonl", tmp_path / f"{len(chosen)}.json"
        for path in (lines, array):
            assert write_rows(store, chosen, EXCHANGES, path) == len(chosen)
        rows = [json.loads(line) for line in lines.read_text().splitlines()]
        assert json.loads(array.read_text()) == rows
        assert len(rows) == len(chosen)
    session.close()


@pytest.mark.parametrize("reason", [None, errno.EPERM, errno.EOPNOTSUPP])
def test_a_new_file_replaces_none_also_without_hard_links(
    reason: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(reason, "no links")

    if reason is not None:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "new"
    with new_file(path) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), new_file(path) as file:
        file.write(b"second")
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    session = session_of(sample("acl-5x.pcap"))
    assert session.frames is not None
    kept = session.frames.exchange(0)
    assert kept is not None
    path = tmp_path / "there.pcapng"
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        write_packets([sample("acl-5x.pcap")], [kept], path)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]
    session.close()
