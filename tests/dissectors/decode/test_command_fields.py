"""What filters of commands can test; which names mean the same as for exchanges."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.decode.command_fields import COMMAND_ALIASES, command_fields
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.where.fields import ALIASES
from dissectors.where.filter import WhereError, compile_where
from tests.traffic.captures import pcap_of
from tests.traffic.commands import PULL_MESSAGE, Command, send, sent
from tests.traffic.talk import Talk

ROOT = Path(__file__).resolve().parents[3]


def seen_in(talk: Talk, folder: Path) -> list[CommandSeen]:
    path = folder / "a.pcap"
    path.write_bytes(pcap_of(talk.segments))
    return [seen for batch in Decode([str(path)]).commands() for seen in batch]


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("kind == request", 2),
        ("kind == oneway", 1),
        ("name == SEND_MESSAGE_V2", 1),
        ("code == SEND_MESSAGE_V2", 1),
        ("ext_fields.b == Orders", 1),
        ("has ext_fields.queueOffset", 1),
        ("latency >= 100us", 2),
        ("request_name == PULL_MESSAGE and code == PULL_NOT_FOUND", 1),
        ("src ~ ':51234$'", 3),
        ("body_bytes > 0", 1),
        ("absent request_code", 3),
        ("time < 2026-11-20T10:00:00.000350", 1),
        ("expert == GAP", 0),
        ("outcome == SUCCESS", 1),
        ("outcome == oneway", 1),
        ("answer == PULL_NOT_FOUND and operation == PULL_MESSAGE", 1),
        ("response == PULL_NOT_FOUND and operation == PULL_MESSAGE", 1),
        ("request == PULL_MESSAGE", 2),
        ("failed", 0),
        ("broker == broker-a", 2),
        ("broker == 10.0.0.1 and broker == 10.0.0.1:10911", 5),
        ("client == 10.0.0.5:51234 and ip == 10.0.0.1", 5),
        ("client == 10.0.0.1 or ip == 10.0.0.7", 0),
        ("body > 4B and absent note", 1),
    ],
)
def test_filters(tmp_path: Path, expression: str, count: int) -> None:
    talk = Talk().open().say(0, send(1).frame).say(1, sent(1).frame)
    pull = Command(PULL_MESSAGE, 2, ext={"topic": "Orders"})
    talk.say(0, pull.frame).say(1, pull.answer(19).frame)
    talk.say(0, Command(15, 3, 2).frame)
    test = compile_where(expression, command_fields(["a.pcap"]))
    assert sum(map(test, seen_in(talk, tmp_path))) == count


def test_filters_suggest_the_fields_of_commands() -> None:
    with pytest.raises(WhereError, match="did you mean opaque"):
        compile_where("opaqe == 1", command_fields(["a"]))
    with pytest.raises(WhereError, match=r"ext_fields\.NAME"):
        compile_where("ext_field == 1", command_fields(["a"]))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("topic == Orders", "only exchanges have it; for a command, use ext_fields.NAME"),
        ("status == unanswered", "exchanges have it"),
        ("outcome == unanswered", "outcome is never 'unanswered'"),
        ("body > 1s", "not a unit of body"),
    ],
)
def test_what_only_exchanges_have_is_said(expression: str, reason: str) -> None:
    with pytest.raises(WhereError) as caught:
        compile_where(expression, command_fields(["a"]))
    assert reason in caught.value.reason


def test_a_refused_send_is_found_by_its_answer(tmp_path: Path) -> None:
    talk = Talk().open().say(0, send(1).frame).say(1, send(1).answer(14).frame)
    orphan = Command(PULL_MESSAGE, 9).answer(0)
    seen = seen_in(talk.say(1, orphan.frame), tmp_path)
    fields = command_fields(["a.pcap"])
    found = [compile_where(text, fields) for text in ("failed", "outcome == orphan")]
    assert [[test(one) for one in seen] for test in found] == [
        [False, True, False],
        [False, False, True],
    ]


def test_the_names_are_those_of_exchanges_and_documented() -> None:
    names = {one.name for one in ALIASES} | {"latency", "src", "dst"}
    assert {name for name, _ in COMMAND_ALIASES} <= names
    page = (ROOT / "docs" / "decoded-log.md").read_text()
    for name, meaning in COMMAND_ALIASES:
        assert f"| `{name}` | {meaning} |" in page
