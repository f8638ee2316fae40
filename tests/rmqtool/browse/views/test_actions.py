"""What becomes of chosen rows: files with exactly these, words for other tools, saved views."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from textual.pilot import Pilot

import rmqtool
from dissectors.remoting.bodies.custom import NamedDecoder
from rmqtool.browse.model.export import where_of, wireshark_of
from rmqtool.browse.model.expressions import test_of_text as compiled
from rmqtool.browse.model.settings import SavedView, Settings, read_settings, write_settings
from rmqtool.browse.views.actions import FullBrowser
from tests.rmqtool.browse.browsing import fill, press, run, sample, sees
from tests.rmqtool.browse.model.test_export_packets import session_of, told

SENDS = "send-sync-5x.pcap"
MARKED = "jjmjjjm"


def test_marked_rows_become_parquet(tmp_path: Path) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, *MARKED, "w")
        await fill(browser, pilot, str(tmp_path / "some.parquet"))
        await sees(browser, "2 rows →")
        table = browser.tables["exchanges"]
        marked = [table.store.row(number) for number in sorted(table.marks)]
        found = pq.read_table(tmp_path / "some.parquet").to_pylist()
        assert [one["opaque"] for one in found] == [one.opaque for one in marked]
        assert [one["topic"] for one in found] == [one.topic for one in marked]
        await press(browser, pilot, "2", "w")
        await fill(browser, pilot, str(tmp_path / "all.parquet"))
        await sees(browser, f"{len(browser.tables['messages'].listing)} rows →")

    run(act, sample(SENDS))


@pytest.mark.parametrize("view", ["exchanges", "messages"])
def test_marked_rows_become_exactly_their_packets(view: str, tmp_path: Path) -> None:
    """They decode to the marked exchanges again, and to nothing else."""

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "1" if view == "exchanges" else "2", *MARKED, "w")
        await fill(browser, pilot, str(tmp_path / "some.pcapng"))
        await sees(browser, "4 packets →")
        session, marks = browser.session, browser.tables[view].marks
        if view == "messages":
            marks = {session.exchange_of_message(number) or 0 for number in marks}
        rows = [session.exchanges.row(number) for number in marks]
        found = list(rmqtool.read(tmp_path / "some.pcapng").exchanges())
        assert sorted(map(str, map(told, found))) == sorted(
            str(told(one)) for one in rows if one is not None
        )

    run(act, sample(SENDS))


@pytest.mark.parametrize(
    ("view", "name", "said"),
    [
        ("1", "some.txt", "the file name must end in .pcapng, .json, .jsonl, or .parquet"),
        ("1", "there.jsonl", "already exists"),
        ("3", "some.pcapng", "packets can be saved only from exchanges or messages"),
        ("1", "no-folder/some.jsonl", "not written: "),
    ],
)
def test_what_is_not_written_is_said(view: str, name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "there.jsonl").write_text("mine")

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, view, "w")
        await fill(browser, pilot, str(tmp_path / name))
        await sees(browser, said)
        assert [one.name for one in tmp_path.iterdir()] == ["there.jsonl"]
        assert (tmp_path / "there.jsonl").read_text() == "mine"

    run(act, sample(SENDS), size=(200, 30))


def test_a_saved_view_is_loaded_and_a_bad_one_is_said(tmp_path: Path) -> None:
    settings = tmp_path / "browse.json"
    good = SavedView(
        "messages", "queue_id == 1", ["TIME", "TOPIC", "queue_offset"], "latency", True
    )
    bad = SavedView("exchanges", "nonsense ==", ["TIME", "no-such-column"], "no-such-sort")
    write_settings(settings, Settings({"connections": ["TIME", "END"]}, {"mine": good, "bad": bad}))

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "3")
        await sees(browser, "TIME         END")
        await press(browser, pilot, "v", "m", "tab")
        await press(browser, pilot, "enter")
        table = browser.tables["messages"]
        assert browser.view == "messages"
        assert (table.filter, table.sort, table.descending) == ("queue_id == 1", "latency", True)
        assert {
            table.listing.row(table.listing.number_at(n) or 0).queue_id
            for n in range(len(table.listing))
        } == {1}
        await sees(browser, "QUEUE_OFFSET", "by latency ↓")
        await press(browser, pilot, "v")
        await fill(browser, pilot, "nobody")
        await sees(browser, "no saved view has this name")
        await press(browser, pilot, "v")
        await fill(browser, pilot, "bad")
        assert browser.view == "exchanges"
        await sees(browser, "nonsense")
        await press(browser, pilot, "V")
        await fill(browser, pilot, "again")
        assert set(read_settings(settings).views) == {"mine", "bad", "again"}

    run(act, sample(SENDS), settings=settings)


def test_bodies_by_a_plug_in() -> None:
    plugin = NamedDecoder("orders", lambda message: {"order": message.body.decode()[::-1]})

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "f")
        await fill(browser, pilot, 'request_name ~ "^SEND"')
        await press(browser, pilot, "b")
        await sees(browser, "by orders:", '"order": ')

    run(act, sample(SENDS), plugins=(plugin,))


def test_words_for_rows_mean_exactly_these(tmp_path: Path) -> None:
    """Also where two captures have packets of the same numbers."""
    one, two = sample(SENDS), sample("send-batch-5x.pcap")

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        table = browser.tables["exchanges"]
        captures = [table.store.row(number).capture for number in range(table.store.count)]
        table.marks = {captures.index(one), captures.index(one) + 1, captures.index(two)}
        where = browser.chosen_where()
        assert where is not None
        test = compiled(where, "exchanges")
        assert test is not None
        store = table.store
        found = {n for n in range(store.count) if test(store.row(n))}
        assert found == table.marks
        await press(browser, pilot, "C")
        await sees(browser, "Command (copied)", "send-sync-5x.pcap: frame.number in {")
        words = shlex.split(browser.clipboard)
        assert words[:5] == ["rmqtool", "decode", "pcap", one, two]
        assert words[-2:] == ["--where", where]

    run(act, one, two)


@pytest.mark.tshark
def test_display_filters_are_tsharks() -> None:
    path = sample("leader-lost-5x.pcap")

    def found(display_filter: str, field: str) -> set[int]:
        words = ["tshark", "-n", "-r", path, "-Y", display_filter, "-T", "fields", "-e", field]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return set(map(int, done.stdout.split()))

    session = session_of(path)
    exchanges = [session.exchanges.row(number) for number in (3, 20, 40)]
    numbers = {
        packet
        for row in exchanges if row is not None
        for packet in (row.request_packet, row.response_packet) if packet is not None
    }  # fmt: skip
    [of_packets] = wireshark_of(exchanges)
    assert found(of_packets, "frame.number") == numbers
    rows = [session.connections.row(number) for number in (0, 5)]
    [of_connections] = wireshark_of(rows)
    assert len(found(of_connections, "tcp.stream")) == 2
    session.close()


def test_too_many_marks_for_an_expression_are_said() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        browser.tables["exchanges"].marks.update(range(2000))
        await press(browser, pilot, "C")
        await sees(browser, "too many marked rows for an expression")

    run(act, sample(SENDS))


def test_an_expression_of_several_conversations_names_each() -> None:
    session = session_of(sample(SENDS))
    rows = [session.exchanges.row(number) for number in range(session.exchanges.count)]
    there = [row for row in rows if row is not None]
    where = where_of(there, "exchanges")
    assert len(re.findall("conversation == ", where)) == len({row.conversation for row in there})
    test = compiled(where, "exchanges")
    assert test is not None
    other = msgspec.structs.replace(there[0], opaque=987654)
    assert not test(other)
    session.close()
