"""Plug-ins decode bodies in trees, rows and pages; what they do wrong is a finding."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import rmqtool
from rmqtool.plugins import GROUP
from tests.rmqtool.command import EVIL
from tests.rmqtool.command import rmqtool as command
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.talk import Talk

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "order_bodies.py"
SAMPLE = ROOT / "samples" / "consumer-lag-5x.pcap"
BODY = b"order=4711;amount=12"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Two sends, of which the second has a body of another form."""
    talk = Talk().open()
    for number, body in enumerate((BODY, b"\x00\xff binary"), 1):
        talk.say(0, replace(send(number), body=body).frame).say(1, sent(number, number).frame)
    path = tmp_path / "orders.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    return path


def plugin(folder: Path, code: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(f"def decode_body(message):\n    {code}\n")
    return path


def test_a_tree_shows_what_a_plugin_says(capture: Path) -> None:
    result = command("decode", "pcap", capture, "-V", "--plugin", EXAMPLE)
    assert result.status == 0, result.err
    assert "kind: order_bodies" in result.out
    assert "order: 4711" in result.out
    assert "order: 4711" not in command("decode", "pcap", capture, "-V").out


def test_a_file_may_have_data_classes(capture: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Order:\n    number: int\n"
        "def decode_body(message):\n    return {'order': Order(4711).number}\n"
    )
    assert "order: 4711" in command("decode", "pcap", capture, "-V", "--plugin", path).out
    path.write_text("import json\n\njson.loads('{')\n")
    assert "line 3" in command("decode", "pcap", capture, "-V", "--plugin", path).err


def test_each_plugin_has_properties_of_its_own(capture: Path, tmp_path: Path) -> None:
    clear = plugin(tmp_path, "message.properties.clear()", "clear.py")
    count = plugin(tmp_path, "return {'properties': len(message.properties)}", "count.py")
    shown = ("decode", "pcap", capture, "-V", "--plugin")
    alone, after = command(*shown, count).out, command(*shown, clear, "--plugin", count).out
    assert "properties: " in alone
    assert alone == after


def test_rows_of_commands_have_it(capture: Path) -> None:
    out = command("decode", "pcap", capture, "--commands", "-T", "jsonl", "--plugin", EXAMPLE).out
    contents = [
        message.get("content")
        for line in out.splitlines()
        for message in json.loads(line)["messages"] or ()
    ]
    assert contents == [
        {"kind": "order_bodies", "value": {"order": "4711", "amount": "12"}},
        None,
    ]


def test_rows_of_messages_have_it(capture: Path, tmp_path: Path) -> None:
    out = command("decode", "pcap", capture, "--list-messages", "-T", "jsonl", "--plugin", EXAMPLE)
    found = [(row["body_form"], row["body"]) for row in map(json.loads, out.out.splitlines())]
    assert found[0] == ("json", '{"order":"4711","amount":"12"}')
    assert found[1][0] == "base64"
    log = f"{tmp_path}/log/"
    command("decode", "pcap", capture, "-T", "jsonl", "-o", log, "--plugin", EXAMPLE)
    (part,) = (Path(log) / "messages").iterdir()
    rows = [json.loads(line) for line in part.read_text().splitlines()]
    assert [(row["body_form"], row["body"]) for row in rows] == found


def test_a_body_that_is_longer_than_what_is_shown_is_decoded_whole(tmp_path: Path) -> None:
    talk = Talk().open()
    talk.say(0, replace(send(1), body=b"name=" + b"x" * 50_000).frame).say(1, sent(1, 1).frame)
    path = tmp_path / "long.pcap"
    path.write_bytes(pcap_of(talk.close().segments))
    length = plugin(tmp_path, "return len(message.body)")
    (row,) = rmqtool.read(path, plugins=[length]).messages()
    assert (row.body_form, row.body) == ("json", "50005")


@pytest.mark.parametrize("form", ["ladder", "html", "jsonl"])
def test_the_life_of_a_message_has_it(capture: Path, form: str) -> None:
    where = ("--where", "event = stored")
    result = command("trace", capture, *where, "-T", form, "--plugin", EXAMPLE)
    assert result.status == 0, result.err
    assert "4711" in result.out
    assert "4711" not in command("trace", capture, *where, "-T", form).out


def test_a_plugin_is_given_the_message() -> None:
    seen = []
    capture = rmqtool.read(SAMPLE, plugins=[seen.append])
    rows = list(capture.messages("event = delivered and has body"))
    assert len(rows) == len([row for row in rows if row.body_form == "text"]) > 3
    assert {one.topic for one in seen} == {row.topic for row in rows}
    assert all(isinstance(one.body, bytes) and one.properties["UNIQ_KEY"] for one in seen)


def test_programs_have_it_in_frames_and_lives(capture: Path, tmp_path: Path) -> None:
    read = rmqtool.read(capture, plugins=[EXAMPLE])
    frame = read.to_pandas("messages")
    assert frame["body"].tolist()[0] == '{"order":"4711","amount":"12"}'
    assert read.trace(where="event = stored")[0].steps[0].row.body_form == "json"
    assert read.to_arrow("commands")["messages"].to_pylist()[0].count('"kind":"order_bodies"') == 1
    log = read.to_parquet(tmp_path / "log")
    assert (log / "manifest.json").exists()


def test_the_first_that_knows_a_body_is_taken(capture: Path) -> None:
    def none_of_mine(message: object) -> None:
        return None

    def text(message: object) -> str:
        return "mine"

    read = rmqtool.read(capture, plugins=[none_of_mine, EXAMPLE, text])
    assert [(row.body_form, row.body) for row in read.messages()] == [
        ("json", '{"order":"4711","amount":"12"}'),
        ("text", "mine"),
    ]


def test_it_is_not_there_between_the_rows_of_a_program(capture: Path) -> None:
    with_plugin = rmqtool.read(capture, plugins=[EXAMPLE]).messages()
    next(with_plugin)
    assert {row.body for row in rmqtool.read(capture).messages()} == {None}
    plain = rmqtool.read(capture).messages(body_limit=99)
    assert next(plain).body == BODY.decode()
    assert next(with_plugin).body_form == "base64"


# -- what goes wrong ----------------------------------------------------------------------------

WRONG = {
    "raise ValueError('what is\\nthis \\x1b[2J')": "plug-in mine: ValueError: what is this",
    "raise SystemExit(3)": "plug-in mine: SystemExit: 3",
    "raise BaseException('x')": "plug-in mine: BaseException: x",
    "raise type('E', (Exception,), {'__str__': None})": "plug-in mine: E: it does not say what",
    "return 'x' * 17_000_000": "plug-in mine: ValueError: it returned 17,000,002 bytes",
    "return object()": "plug-in mine: TypeError: Encoding objects of type object",
    "return ['\\ud800']": "plug-in mine: UnicodeEncodeError",
    "return message.nothing": "plug-in mine: AttributeError",
    "return decode_body(message)": "plug-in mine: RecursionError",
}


@pytest.mark.parametrize("code", WRONG)
def test_what_raises_is_a_finding_and_the_run_goes_on(
    code: str, capture: Path, tmp_path: Path
) -> None:
    bad = plugin(tmp_path, code)
    for view in (("-V",), ("--commands", "-T", "jsonl"), ("--list-messages", "-T", "jsonl")):
        result = command("decode", "pcap", capture, *view, "--plugin", bad)
        assert result.status == 0, result.err
        assert not CONTROL.search(result.out)
        if view[0] != "--list-messages":
            assert WRONG[code] in result.out
            assert "BAD_BODY" in result.out
        else:
            assert "BAD_BODY 2" in result.err
            assert len(result.out.splitlines()) == 2
    log = f"{tmp_path}/log/"
    command("decode", "pcap", capture, "-T", "jsonl", "-o", log, "--plugin", bad)
    found = [json.loads(line) for line in (Path(log) / "findings.jsonl").read_text().splitlines()]
    assert [row["detail"].startswith(WRONG[code]) for row in found] == [True, True]


def test_what_it_returns_is_escaped_where_it_is_shown(capture: Path, tmp_path: Path) -> None:
    evil = plugin(tmp_path, f"return {{{EVIL!r}: '<script>' + {EVIL!r}}}")
    tree = command("decode", "pcap", capture, "-V", "--plugin", evil)
    assert not CONTROL.search(tree.out)
    where = ("--where", "event = stored")
    ladder = command("trace", capture, *where, "--plugin", evil)
    assert not CONTROL.search(ladder.out)
    page = command("trace", capture, *where, "-T", "html", "--plugin", evil).out
    assert "&lt;script" in page
    assert page.count("<script") == 1  # the page's own


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("none.py", None, "none.py: No such file or directory"),
        ("other.py", "x = 1", "other.py: it has no function decode_body"),
        ("wrong.py", "def f(:", "it cannot be loaded: SyntaxError"),
        ("ends.py", "raise SystemExit(9)", "it cannot be loaded: SystemExit: 9, line 1"),
        (
            "base.py",
            "raise BaseException('x')",
            "base.py: it cannot be loaded: BaseException: x, line 1",
        ),
        ("number.py", "decode_body = 7", "number.py: int is not a function"),
        ("no-such", None, "no-such: no such plug-in"),
    ],
)
def test_a_plugin_that_cannot_be_loaded_is_said(
    name: str, code: str | None, text: str, capture: Path, tmp_path: Path
) -> None:
    path = tmp_path / name if name.endswith(".py") else Path(name)
    if code is not None:
        path.write_text(code)
    result = command("decode", "pcap", capture, "--plugin", path)
    assert result.status == 1
    assert text in result.err
    assert "Traceback" not in result.err
    with pytest.raises(rmqtool.PluginError):
        rmqtool.read(capture, plugins=path)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what installs a package with an entry point."""

    def install(code: str) -> None:
        folder = tmp_path / "site"
        info = folder / "our_orders-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-orders\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\norders = our_orders:decode_body\n")
        (folder / "our_orders.py").write_text(code)
        monkeypatch.syspath_prepend(str(folder))

    yield install  # type: ignore[misc]
    sys.modules.pop("our_orders", None)


def test_an_installed_plugin_is_used_where_it_is_named(
    capture: Path, installed: Callable[[str], None]
) -> None:
    installed("def decode_body(message):\n    return 'from afar'\n")
    out = command("decode", "pcap", capture, "-V", "--plugin", "orders").out
    assert "kind: orders" in out
    assert "from afar" in out
    assert "from afar" not in command("decode", "pcap", capture, "-V").out
    assert rmqtool.read(capture, plugins="orders").trace(where="event = stored")
    unknown = command("decode", "pcap", capture, "--plugin", "order")
    assert "(orders in group rmqtool.bodies)" in unknown.err


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "raise BaseException('x')"])
def test_an_installed_plugin_that_ends_the_program_is_said(
    code: str, capture: Path, installed: Callable[[str], None]
) -> None:
    installed(code)
    result = command("decode", "pcap", capture, "--plugin", "orders")
    assert result.status == 1
    assert "plug-in orders: it cannot be loaded" in result.err


def test_an_installed_plugin_that_nobody_names_is_not_loaded(
    capture: Path, installed: Callable[[str], None]
) -> None:
    installed("raise RuntimeError('loaded')")
    assert command("decode", "pcap", capture, "-V").status == 0
    named = command("decode", "pcap", capture, "-V", "--plugin", "orders")
    assert named.status == 1
    assert "plug-in orders: it cannot be loaded: RuntimeError: loaded" in named.err
