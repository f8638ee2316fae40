"""The browser by keys: what each view shows, what filters and searches find."""

from __future__ import annotations

from pathlib import Path

import msgspec
from textual.pilot import Pilot
from textual.widgets import Tree

from rmqtool.browse.model.settings import read_settings
from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.dialogs import TextDialog
from rmqtool.browse.views.filter_line import LineInput
from tests.rmqtool.browse.browsing import press, run, sample, sees, settled, shown, text, until


def test_exchanges_are_listed_with_the_fields_and_bytes_of_the_first() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        seen = text(browser)
        assert "TOPIC_NOT_EXIST" in seen
        assert "code: 105 (GET_ROUTEINFO_BY_TOPIC)" in seen
        assert '{"code":' in seen
        assert " 44 " in shown(browser)[-1]

    run(act, sample("acl-5x.pcap"))


def test_a_filter_is_typed_completed_and_corrected() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "f", *"respons")
        await sees(browser, "response_name")
        await press(browser, pilot, "tab")
        line = browser.query_one(LineInput)
        assert line.value.startswith("response_")
        line.value = "response_nam == SUCCESS"
        line.cursor_position = len(line.value)
        await press(browser, pilot, "enter")
        await sees(browser, "did you mean response_name")
        line.value = "response_name == NO_PERMISSION"
        await press(browser, pilot, "enter")
        table = browser.tables["exchanges"]
        assert {
            table.listing.row(table.listing.number_at(n) or 0).response_name
            for n in range(len(table.listing))
        } == {"NO_PERMISSION"}
        assert " of 44" in shown(browser)[-1]
        await press(browser, pilot, "x")
        assert len(table.listing) == 44
        await press(browser, pilot, "backspace")
        assert table.filter == "response_name == NO_PERMISSION"

    run(act, sample("acl-5x.pcap"))


def test_a_cell_becomes_a_filter() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        for _ in range(5):
            await pilot.press("l")
        await press(browser, pilot, "equals_sign")
        table = browser.tables["exchanges"]
        assert table.filter == 'client_address == "127.0.0.1:51902"'
        assert 0 < len(table.listing) < 44
        await press(browser, pilot, "full_stop")
        assert table.filter == 'client_address == "127.0.0.1:51902" and conversation == 0'
        await press(browser, pilot, "x", "minus")
        assert table.filter.startswith("not (")

    run(act, sample("acl-5x.pcap"))


def test_search_marks_and_order() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        table, rows = browser.tables["exchanges"], browser.list_of("exchanges")
        await press(browser, pilot, "slash", *"register_broker", "enter")
        assert table.listing.row(rows.number or 0).request_name == "REGISTER_BROKER"
        first = rows.cursor
        await press(browser, pilot, "n")
        assert rows.cursor > first
        await press(browser, pilot, "m", "m", "M")
        assert len(table.listing) == 2
        await press(browser, pilot, "M", "s")
        assert table.sort == "latency"
        latencies = [
            table.listing.row(table.listing.number_at(n) or 0).latency_us for n in range(3)
        ]
        assert latencies == sorted(latencies, reverse=True)

    run(act, sample("acl-5x.pcap"))


def test_the_bytes_of_a_field_are_marked() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "enter", "down", "down")
        tree = browser.query_one(Tree)
        node = tree.cursor_node
        assert node is not None
        assert node.data.text.startswith("language: JAVA")
        assert node.data.span.end - node.data.span.start == len('"JAVA"')

    run(act, sample("acl-5x.pcap"))


def test_the_other_modes_of_the_details() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "j", "y")
        await sees(browser, "│ Response: packet")
        await press(browser, pilot, "b")
        await sees(browser, '"brokerDatas": [')

    run(act, sample("acl-5x.pcap"))


def test_messages_and_connections() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2")
        await sees(browser, "stored")
        await press(browser, pilot, "3")
        await sees(browser, "ROCKETMQ")
        await sees(browser, "number of the connection")

    run(act, sample("acl-5x.pcap"), size=(160, 45))


def test_problems_lead_to_their_evidence() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "4")
        await sees(browser, "broker-gone")
        await press(browser, pilot, "e")
        await pilot.pause(0.2)
        assert browser.view == "exchanges"
        row = browser.chosen_row()
        assert (row.conversation, row.request_packet, row.status) == (7, 127, "unanswered")
        await press(browser, pilot, "a")
        found = browser.tables["exchanges"].filter
        assert found.startswith("unique_key == ")
        assert " and topic == " in found
        await press(browser, pilot, "5")
        await sees(browser, "Operations")

    run(act, sample("leader-lost-5x.pcap"))


def test_a_life_a_conversation_and_a_part_of_the_time() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2", "L")
        await sees(browser, "── stored ──")
        await press(browser, pilot, "o")
        await sees(browser, "→ request SEND_MESSAGE_V2")
        await press(browser, pilot, "t", "space", "L", "L", "enter")
        table = browser.tables["messages"]
        assert table.filter.startswith("time >= ")
        assert 0 < len(table.listing) < 12
        await press(browser, pilot, "e")
        assert browser.view == "exchanges"

    run(act, sample("leader-lost-5x.pcap"))


def test_rows_become_files_words_and_views(tmp_path: Path) -> None:
    settings = tmp_path / "config" / "browse.json"

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "m", "m", "w")
        browser.query_one(LineInput).value = str(tmp_path / "two.jsonl")
        await press(browser, pilot, "enter")
        await until((tmp_path / "two.jsonl").exists, "the file")
        assert len((tmp_path / "two.jsonl").read_text().splitlines()) == 2
        await press(browser, pilot, "C")
        await sees(browser, "--where 'conversation == 0")
        await sees(browser, "frame.number in {4, ")
        await press(browser, pilot, "escape", "c")
        browser.query_one(LineInput).value = "TIME TOPIC opaque"
        await press(browser, pilot, "enter")
        assert "TOPIC       OPAQUE" in shown(browser)[1]
        await press(browser, pilot, "V", *"mine", "enter")
        assert read_settings(settings).views["mine"].columns == ["TIME", "TOPIC", "opaque"]

    run(act, sample("acl-5x.pcap"), settings=settings)


def test_help_has_all_keys() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(browser.screen, TextDialog)
        await sees(browser, "Views")
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(browser.screen, TextDialog)

    run(act, sample("acl-5x.pcap"))


def test_what_comes_from_the_wire_neither_steers_nor_marks_up() -> None:
    wicked = "\x1b[31m[red]主题[/red]\u202e\n[@click=app.quit]x[/]"

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await settled(browser, pilot)
        row = browser.session.exchanges.row(0)
        assert row is not None
        evil = msgspec.structs.replace(row, topic=wicked, remark=wicked, group=wicked)
        evil.request_time = (row.request_time or 0) + 3_600_000_000_000  # listed last
        browser.session.add([evil])
        await press(browser, pilot, "G", "3", "1", "G")
        await sees(browser, "\\x1b[31m[red]主题")
        seen = text(browser)
        assert not any(char in seen for char in "\x1b\u202e")
        await press(browser, pilot, *"lllll", "equals_sign")
        assert "\x1b" not in text(browser)

    run(act, sample("acl-5x.pcap"), size=(200, 40))
