"""Arrays of JSON: every command that offers them writes one that is whole, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rmqtool.cli import app
from rmqtool.ui.json_array import ArrayText, JsonArray
from tests.expected import SAMPLES
from tests.traffic.commands import send

from ..command import PROGRAM, ROOT, Result, rmqtool

KILL = SAMPLES / "fault-kill-5x.pcap"
TWICE = SAMPLES / "stored-twice-5x.pcap"
FRAME = send(1).frame.hex()
ANY_PORT = ("--port", "0", "--namesrv-port", "0", "--duration", "100ms")
ARRAYS = {
    "decode pcap": [
        ("decode", "pcap", KILL),
        ("decode", "pcap", KILL, "-Y", "latency > 1ms"),
        ("decode", "pcap", KILL, "--sort", "time", "-c", "7"),
        ("decode", "pcap", KILL, "--jobs", "2"),
        ("decode", "pcap", KILL, "--commands"),
        ("decode", "pcap", KILL, "--commands", "--jobs", "2"),
        ("decode", "pcap", KILL, "--list-messages"),
        ("decode", "pcap", KILL, "--list-messages", "--jobs", "2"),
    ],
    "decode hex": [("decode", "hex", FRAME)],
    "decode stream": [("decode", "stream", FRAME)],
    "trace": [("trace", TWICE, "key-0")],
    "diagnose": [("diagnose", KILL)],
    "replay": [("replay", KILL, "--dry-run")],
    "codes": [("codes", "310")],
    "broker": [("broker", *ANY_PORT)],
}
"""what each command writes as an array"""
OBJECTS = {
    "decode pcap": [("decode", "pcap", KILL, "--summary")],
    "report": [("report", "overview", KILL)],
    "replay": [("replay", KILL, "--target", "sandbox", "--top-speed", "-o", "journal")],
}
"""what is one object"""
ELSEWHERE = {"watch", "decode live", "decode store", "send", "proxy", "consume", "topic"}
"""commands that need an interface, a store, or a server: their own tests"""


def _commands() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every command: its name, and its options by their long names."""

    def walk(command: Any, way: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
        inner = getattr(command, "commands", {})
        if not inner:
            yield " ".join(way), {one.opts[0]: one for one in command.params}
        for name, each in inner.items():
            yield from walk(each, (*way, name))

    return walk(typer.main.get_command(app), ())


def _forms(option: Any) -> list[str]:
    return list(getattr(option.type, "choices", ())) or str(option.metavar).split("|")


def _cases(table: dict[str, list[tuple[str | Path, ...]]]) -> list[tuple[str | Path, ...]]:
    return [case for cases in table.values() for case in cases]


def test_every_command_with_json_lines_has_arrays_and_a_test() -> None:
    for name, options in _commands():
        forms = [] if "--format" not in options else list(map(str, _forms(options["--format"])))
        assert ("jsonl" not in forms) or "json" in forms, name
        if "json" in forms:
            assert name in ARRAYS or name in OBJECTS or name in ELSEWHERE, name


@pytest.mark.parametrize("case", _cases(ARRAYS), ids=lambda case: " ".join(map(str, case[:9])))
def test_an_array_has_the_rows_of_the_lines(case: tuple[str | Path, ...]) -> None:
    found = rmqtool(*case, "-T", "json")
    rows = json.loads(found.out)
    assert isinstance(rows, list), found.err
    assert rows
    assert found.status == 0, found.err
    if case[0] in ("codes", "broker"):  # has no lines; has times of its own
        return
    lines = rmqtool(*case, "-T", "jsonl").out.splitlines()
    assert rows == list(map(json.loads, lines))


@pytest.mark.parametrize("case", _cases(OBJECTS), ids=lambda case: " ".join(map(str, case[:5])))
def test_an_object_stays_one(
    case: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = rmqtool(*case, "-T", "json")
    assert found.status == 0, found.err
    assert isinstance(json.loads(found.out), dict)


@pytest.mark.parametrize(
    "case",
    [one for one in _cases(ARRAYS | OBJECTS) if one[0] in ("decode", "trace", "diagnose", "report")]
    + [("report", "overview", KILL)],
    ids=lambda case: " ".join(map(str, case[:9])),
)
def test_a_file_named_json_is_one_document(case: tuple[str | Path, ...], tmp_path: Path) -> None:
    if case[1] in ("hex", "stream"):
        pytest.skip("it has no -o")
    path = tmp_path / "out.json"
    found = rmqtool(*case, "-o", path)
    assert found.status == 0, found.err
    assert json.loads(path.read_text())


@pytest.mark.parametrize(
    "rest",
    [
        ("-c", "0"),
        ("-Y", 'topic == "none"'),
        ("--commands", "-Y", "code == 9999"),
        ("--list-messages", "-c", "0"),
        ("--jobs", "2", "-Y", 'topic == "none"'),
    ],
)
def test_no_rows_are_an_empty_array(rest: tuple[str, ...], tmp_path: Path) -> None:
    assert rmqtool("decode", "pcap", KILL, *rest, "-T", "json").out == "[]\n"
    path = tmp_path / "out.json"
    rmqtool("decode", "pcap", KILL, *rest, "-o", path)
    assert path.read_text() == "[]\n"


def test_an_error_closes_the_array(tmp_path: Path) -> None:
    found = rmqtool("decode", "hex", "00", "-T", "json")
    assert (found.status, found.out) == (1, "[]\n")
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(KILL.read_bytes()[:50_000])
    for jobs in ("1", "2"):
        found = rmqtool("decode", "pcap", cut, "-T", "json", "--jobs", jobs)
        assert "CAPTURE_TRUNCATED" in found.err
        assert len(json.loads(found.out)) > 10


@pytest.mark.parametrize(
    "case",
    [
        ("decode", "pcap", KILL, "--follow-conversation", "1"),
        ("decode", "pcap", KILL, "-V"),
        ("diagnose", "--list"),
        ("diagnose", "--explain", "broker-gone"),
    ],
)
def test_text_does_not_get_the_name_of_a_document(
    case: tuple[str | Path, ...], tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    refused = rmqtool(*case, "-o", path)
    assert refused.status == 2
    assert "is text" in refused.err
    assert not path.exists()


# -- reading it again -----------------------------------------------------------------------------

FIX = "jq -c '.[]' OLD.json > NEW.jsonl"


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "ROWS"),
        ("diagnose", "FOLDER"),
        ("report", "overview", "ROWS"),
        ("report", "overview", "FOLDER"),
        ("trace", "ROWS", "key-0"),
        ("decode", "pcap", "ROWS"),
        ("replay", "COMMANDS", "--dry-run"),
    ],
    ids=" ".join,
)
def test_commands_that_read_rows_name_json_lines(words: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    rows, commands = folder / "rows.json", tmp_path / "commands.json"
    rmqtool("decode", "pcap", KILL, "-o", rows)
    rmqtool("decode", "pcap", KILL, "--commands", "-o", commands)
    files = {"ROWS": rows, "FOLDER": folder, "COMMANDS": commands}
    refused = rmqtool(*(files.get(word, word) for word in words))
    assert refused.status == 1
    assert "JSON array" in refused.err
    assert "-o NAME.jsonl" in refused.err
    assert FIX in refused.err


# -- the text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("together", [1, 2, 5])
def test_rows_come_in_any_portions(rows: int, together: int) -> None:
    text = ArrayText()
    lines = [b'{"row":"%d\\n"}\n' % number for number in range(rows)]
    portions = [b"".join(lines[at : at + together]) for at in range(0, rows, together)]
    written = b"".join([text.rows(b""), *map(text.rows, portions), text.end()])
    assert json.loads(written) == [{"row": f"{number}\n"} for number in range(rows)]
    assert len(written.splitlines()) == (rows + 2 if rows else 1)


def test_a_discarded_array_is_whole_where_it_can_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    array = JsonArray(str(path), direct=True)
    array.write(b'{"a":1}\n')
    array.flush()
    assert path.read_bytes() == b'[\n{"a":1}'
    array.write_pieces([b'{"a":2}\n', memoryview(b'{"a":3}\n')])
    array.discard()
    assert json.loads(path.read_bytes()) == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert array.written == path.stat().st_size
    other = JsonArray(str(tmp_path / "y.json"))
    other.write(b'{"a":1}\n')
    other.discard()
    assert os.listdir(tmp_path) == ["x.json"]


# -- signals --------------------------------------------------------------------------------------


def _interrupted(number: int, out: Path, *arguments: str | Path) -> Result:
    """Run with half a capture on standard input, which stays open; send a signal behind rows."""
    data = KILL.read_bytes()[:100_000]
    with out.open("wb") as file:
        child = subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        assert child.stdin is not None
        child.stdin.write(data)
        child.stdin.flush()
        end = time.monotonic() + 60
        while not out.stat().st_size and time.monotonic() < end:
            time.sleep(0.05)
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
    return Result(child.returncode, out.read_text(), err.decode())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("view", [(), ("--commands",), ("--list-messages",)])
def test_a_signal_closes_the_array(number: int, view: tuple[str, ...], tmp_path: Path) -> None:
    found = _interrupted(number, tmp_path / "out", "decode", "pcap", "-", *view, "-T", "json")
    assert found.status == (0 if number == signal.SIGINT else 143), found.err
    rows = json.loads(found.out)
    assert rows
    assert all(isinstance(row, dict) for row in rows)


@pytest.mark.slow
def test_a_signal_while_a_row_is_written_waits_for_its_end(tmp_path: Path) -> None:
    """A reader that is slow: the pipe is full nearly always."""
    command = [*PROGRAM, "decode", "pcap", *[str(KILL)] * 8, "--commands", "-T", "json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert child.stdout is not None
    number = child.stdout.fileno()
    parts = [os.read(number, 4096)]
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    time.sleep(0.2)
    while part := os.read(number, 4096):
        parts.append(part)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert len(json.loads(b"".join(parts))) > 10
    assert list(tmp_path.iterdir()) == []
